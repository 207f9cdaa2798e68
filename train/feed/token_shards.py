"""Token shards to read: streams of tokens by domain, mapped on demand, verified when first touched."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from shards.store import filesystem, is_local, join, read_batches
from train.feed.cache import FileCache, default_folder
from train.feed.token_manifest import WIDTHS, TokenManifest, TokenShardsError

__all__ = ["DomainShards", "TokenShards", "TokenShardsError"]

OPEN_FILES = 256  # maps kept open at a time: each holds a file handle, of which a process commonly has 1,024


@dataclass(frozen=True, kw_only=True)
class DomainShards:
    """One domain as one stream of tokens: its k shards that hold any, one after another.

    shards: int64[k], numbers among all shards. offsets: int64[k + 1], where each begins in the stream, in tokens, and
    where the stream ends. documents: int64[k + 1], the same in documents. text_bytes: UTF-8 of all its documents.
    """

    name: str
    shards: NDArray[np.int64]
    offsets: NDArray[np.int64]
    documents: NDArray[np.int64]
    text_bytes: int

    @property
    def tokens(self) -> int:
        return int(self.offsets[-1])

    def locate(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Shard (among all shards) and token of the shard for positions 0 <= p < tokens of the stream."""
        place = np.searchsorted(self.offsets, positions, side="right") - 1
        return self.shards[place], positions - self.offsets[place]


class TokenShards:
    """The token shards of one or more folders. Only manifests are read at first; it pickles as its arguments.

    Shards are numbered through all folders in order. Arrays that it gives out are read-only maps and stay good as long
    as they are held, whatever is closed or deleted meanwhile.
    """

    def __init__(self, manifests: Sequence[TokenManifest], arguments: dict[str, Any]) -> None:
        self._manifests = tuple(manifests)
        self._arguments = arguments
        self._verify: bool = arguments["verify"]
        first = manifests[0]
        self.folders = tuple(manifest.folder for manifest in manifests)
        self.policy = first.policy
        self.dtype = np.dtype(first.dtype).newbyteorder("<")
        self.vocab_size = max(manifest.vocab_size for manifest in manifests)
        self.tokenizer_digest = first.tokenizer_digest
        self.eos_id: int | None = first.policy.get("eos_id")
        self.bos_id: int | None = first.policy.get("bos_id")
        self.digest = xxhash.xxh3_128_hexdigest("".join(manifest.ordered_digest for manifest in manifests).encode())
        self._firsts = np.cumsum([0, *(len(manifest.tokens) for manifest in manifests)])
        self.shard_tokens = np.concatenate([manifest.tokens for manifest in manifests])
        self.shard_documents = np.concatenate([manifest.documents for manifest in manifests])
        self._open: dict[tuple[str, int], NDArray[Any]] = {}
        self._verified: set[tuple[str, int]] = set()

    @classmethod
    def open(
        cls,
        folders: str | Sequence[str],
        *,
        cache: str | None = None,
        cache_bytes: int | None = None,
        verify: bool = True,
        tokenizer_digest: str | None = None,
    ) -> TokenShards:
        """Token shards of folders (a run's or a tokens step's, any fsspec URL), which must have one tokenizer.

        cache: local folder for copies of remote files (default: the user's cache folder), bounded by about
        `cache_bytes`. Where it is given, local files that one process has verified are taken as verified by others
        while their path, size, times and inode stay. verify: hash data and ends of a shard when first touched (sizes
        are checked always; a remote file is verified when it is copied, always). tokenizer_digest: refuse other tokens.
        Raises TokenShardsError.
        """
        given = [folders] if isinstance(folders, str) else list(folders)
        if not given:
            raise TokenShardsError("tokens: no folder is named; name the folder of a run or of its tokens step")
        manifests = [TokenManifest.read(folder) for folder in given]
        _agree(manifests)
        if tokenizer_digest is not None and manifests[0].tokenizer_digest != tokenizer_digest:
            raise TokenShardsError(
                f"{manifests[0].folder}: tokens of tokenizer {manifests[0].tokenizer_digest}, where "
                f"{tokenizer_digest} is wanted; tokenise again with that tokenizer"
            )
        arguments = {
            "folders": [manifest.folder for manifest in manifests],
            "cache": cache,
            "cache_bytes": cache_bytes,
            "verify": verify,
            "tokenizer_digest": manifests[0].tokenizer_digest,
        }
        return cls(manifests, arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._arguments, self.digest)

    @property
    def shards(self) -> int:
        """How many, empty ones among them."""
        return len(self.shard_tokens)

    @cached_property
    def domains(self) -> tuple[DomainShards, ...]:
        """A stream a domain that has any token, in the order of names; a domain of several folders is one stream."""
        names, codes = np.unique(
            np.array([name for manifest in self._manifests for name in manifest.domains], dtype=np.str_),
            return_inverse=True,
        )
        order = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[order], np.arange(len(names) + 1))
        found = []
        for code, name in enumerate(names.tolist()):
            shards = order[edges[code] : edges[code + 1]]
            shards = shards[self.shard_tokens[shards] > 0]
            if len(shards):
                found.append(
                    DomainShards(
                        name=name,
                        shards=shards.astype(np.int64),
                        offsets=np.cumsum([0, *self.shard_tokens[shards].tolist()], dtype=np.int64),
                        documents=np.cumsum([0, *self.shard_documents[shards].tolist()], dtype=np.int64),
                        text_bytes=sum(manifest.text_bytes.get(name, 0) for manifest in self._manifests),
                    )
                )
        return tuple(found)

    def tokens(self, shard: int) -> NDArray[Any]:
        """The ids of a shard: read-only, of `dtype`, shard_tokens[shard] of them."""
        return self._array("tokens", shard)

    def ends(self, shard: int) -> NDArray[np.int64]:
        """Where each document of a shard ends, in tokens of the shard: int64, read-only."""
        return self._array("ends", shard)

    def documents_at(self, shard: int, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The documents (row numbers in the shard) that hold the given tokens of the shard."""
        return np.searchsorted(self.ends(shard), tokens, side="right")

    def document_at(self, shard: int, token: int) -> tuple[int, int, int]:
        """The document that holds a token of a shard: its row number, first token, and end."""
        ends = self.ends(shard)
        row = int(np.searchsorted(ends, token, side="right"))
        return row, int(ends[row - 1]) if row else 0, int(ends[row])

    def documents(self, shard: int, columns: Sequence[str] | None = None) -> pa.Table:
        """The table of a shard's documents (id, source, domain, shard, start, token_count, ...), verified."""
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
        """The Parquet file of a shard's documents."""
        manifest, row = self._place(shard)
        return join(manifest.folder, manifest.documents_names[row].decode())

    def _place(self, shard: int) -> tuple[TokenManifest, int]:
        if not 0 <= shard < len(self.shard_tokens):
            raise IndexError(f"shard {shard}: there are {len(self.shard_tokens)}")
        folder = int(np.searchsorted(self._firsts, shard, side="right")) - 1
        return self._manifests[folder], shard - int(self._firsts[folder])

    def _array(self, kind: str, shard: int) -> NDArray[Any]:
        key = (kind, shard)
        # Single operations on a dict only, so that threads need no lock, which a forked process could inherit held.
        found = self._open.pop(key, None)
        if found is None:
            found = self._map(kind, int(shard))
        self._open[key] = found
        while len(self._open) > OPEN_FILES:
            self._open.pop(next(iter(self._open)), None)
        return found

    def _map(self, kind: str, shard: int) -> NDArray[Any]:
        manifest, row = self._place(shard)
        if kind == "tokens":
            name, digest, dtype = manifest.names[row], manifest.digests[row], self.dtype
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
        shared = self._arguments["cache"] is not None
        if shared and self._cache.is_verified(state, url, digest):
            return
        _same(url, xxhash.xxh3_128_hexdigest(data), digest)
        if shared:
            self._cache.mark_verified(state, url, digest)

    @cached_property
    def _cache(self) -> FileCache:
        return FileCache(self._arguments["cache"] or default_folder(), self._arguments["cache_bytes"])


def _reopen(arguments: dict[str, Any], digest: str) -> TokenShards:
    found = TokenShards.open(**arguments)
    if found.digest != digest:
        raise TokenShardsError(f"{found.folders[0]}: the tokens changed while they were in use; start again")
    return found


def _agree(manifests: Sequence[TokenManifest]) -> None:
    """Refuse folders that were not tokenised alike, or one folder twice."""
    first = manifests[0]
    for other in manifests[1:]:
        for what in ("tokenizer_digest", "dtype", "policy"):
            mine, theirs = getattr(first, what), getattr(other, what)
            if mine != theirs:
                raise TokenShardsError(
                    f"{other.folder}: {what.replace('_digest', '')} {theirs} differs from {mine} of {first.folder}; "
                    "tokenise both alike"
                )
    folders = [manifest.folder for manifest in manifests]
    for folder in folders:
        if folders.count(folder) > 1:
            raise TokenShardsError(f"{folder}: named twice; name it once, and repeat it by weight or epochs")


def _same(url: str, found: str, wanted: str) -> None:
    if found != wanted:
        raise TokenShardsError(
            f"{url}: digest {found}, where the manifest has {wanted}: the file was changed or damaged; "
            "copy the tokens again, or write them again"
        )


def _empty_table(url: str, columns: list[str] | None) -> pa.Table:
    import pyarrow.parquet as pq

    files, path = filesystem(url)
    with files.open(path, "rb") as source:
        return pq.read_table(source, columns=columns)
