"""The files of token shards: mapped on demand, a bounded number at a time, verified when first touched."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from functools import cached_property
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from numpy.typing import NDArray

from shards.store import filesystem, is_local, join, read_batches
from train.feed.cache import FileCache, default_folder
from train.feed.token_manifest import WIDTHS, TokenManifest, TokenShardsError

OPEN_FILES = 256  # maps kept open at a time: each holds a file handle, of which a process commonly has 1,024


class ShardFiles:
    """Data, ends and tables of documents by the shard's number through all folders. See TokenShards.open."""

    def __init__(
        self, manifests: Sequence[TokenManifest], *, verify: bool, cache: str | None, cache_bytes: int | None
    ) -> None:
        self._manifests, self._verify = tuple(manifests), verify
        self._cache_folder, self._cache_bytes = cache, cache_bytes
        self._firsts = np.cumsum([0, *(len(manifest.tokens) for manifest in manifests)])
        self._open: dict[tuple[str, int], NDArray[Any]] = {}
        self._verified: set[tuple[str, int]] = set()

    def array(self, kind: str, shard: int) -> NDArray[Any]:
        """The `tokens` or `ends` of a shard, read-only."""
        key = (kind, shard)
        # Single operations on a dict only, so that threads need no lock, which a forked process could inherit held.
        found = self._open.pop(key, None)
        if found is None:
            found = self._map(kind, int(shard))
        self._open[key] = found
        while len(self._open) > OPEN_FILES:
            self._open.pop(next(iter(self._open)), None)
        return found

    def documents(self, shard: int, columns: Sequence[str] | None = None) -> pa.Table:
        """A shard's table of documents, verified by their ids and counts."""
        manifest, row = self._place(shard)
        url = self.documents_url(shard)
        wanted = None if columns is None else list(dict.fromkeys([*columns, "id", "token_count"]))
        try:
            batches = list(read_batches(url, wanted, batch_rows=1 << 16))
        except FileNotFoundError as error:
            raise TokenShardsError(f"{url}: no such file; copy the tokens again") from error
        table = pa.Table.from_batches(batches) if batches else _empty_table(url, wanted)
        if self._verify and ("documents", shard) not in self._verified:
            ids, counts = table.column("id").to_pylist(), table.column("token_count").to_pylist()
            lines = "".join(f"{told} {count}\n" for told, count in zip(ids, counts, strict=True))
            _same(url, xxhash.xxh3_128_hexdigest(lines.encode()), manifest.documents_digests[row].decode())
            self._verified.add(("documents", shard))
        return table if columns is None else table.select(list(columns))

    def documents_url(self, shard: int) -> str:
        manifest, row = self._place(shard)
        return join(manifest.folder, manifest.documents_names[row].decode())

    def _place(self, shard: int) -> tuple[TokenManifest, int]:
        if not 0 <= shard < self._firsts[-1]:
            raise IndexError(f"shard {shard}: there are {self._firsts[-1]}")
        folder = int(np.searchsorted(self._firsts, shard, side="right")) - 1
        return self._manifests[folder], shard - int(self._firsts[folder])

    def _map(self, kind: str, shard: int) -> NDArray[Any]:
        manifest, row = self._place(shard)
        if kind == "tokens":
            name, digest = manifest.names[row], manifest.digests[row]
            dtype = np.dtype(manifest.dtype).newbyteorder("<")
            size = int(manifest.tokens[row]) * WIDTHS[manifest.dtype]
        else:
            name, digest, dtype = manifest.ends_names[row], manifest.ends_digests[row], np.dtype("<i8")
            size = int(manifest.documents[row]) * 8
        if size == 0:  # what is empty cannot be mapped
            return np.frombuffer(b"", dtype)
        url = join(manifest.folder, name.decode())
        with self._file(url, size, digest.decode()) as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            state = os.fstat(file.fileno())
        if self._verify and is_local(url) and (kind, shard) not in self._verified:
            self._check(url, data, state, digest.decode())
            self._verified.add((kind, shard))
        array = np.frombuffer(data, dtype)
        if kind == "ends" and array[-1] != manifest.tokens[row]:
            raise TokenShardsError(
                f"{url}: its documents end at {array[-1]}, its tokens at {manifest.tokens[row]}; write the tokens again"
            )
        return array

    def _file(self, url: str, size: int, digest: str) -> IO[bytes]:
        if not is_local(url):
            return self._cache.open(url, size, digest)
        path = filesystem(url)[1]
        try:
            file = open(path, "rb")  # noqa: SIM115 (the caller closes it)
        except FileNotFoundError as error:
            raise TokenShardsError(f"{path}: no such file; copy the tokens again, or write them again") from error
        found = os.fstat(file.fileno()).st_size
        if found != size:
            file.close()
            raise TokenShardsError(
                f"{path}: {found} bytes, where the manifest has {size}; copy the tokens again, or write them again"
            )
        return file

    def _check(self, url: str, data: mmap.mmap, state: os.stat_result, digest: str) -> None:
        """Hash a local file once in a process, or once for all that share a cache folder."""
        shared = self._cache_folder is not None
        if shared and self._cache.is_verified(state, url, digest):
            return
        _same(url, xxhash.xxh3_128_hexdigest(data), digest)
        if shared:
            self._cache.mark_verified(state, url, digest)

    @cached_property
    def _cache(self) -> FileCache:
        return FileCache(self._cache_folder or default_folder(), self._cache_bytes)


def _same(url: str, found: str, wanted: str) -> None:
    if found != wanted:
        raise TokenShardsError(
            f"{url}: digest {found}, where the manifest has {wanted}: the file was changed or damaged; "
            "copy the tokens again, or write them again"
        )


def _empty_table(url: str, columns: list[str] | None) -> pa.Table:
    files, path = filesystem(url)
    with files.open(path, "rb") as source:
        return pq.read_table(source, columns=columns)
