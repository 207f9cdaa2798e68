"""Token shards to read: streams of tokens by domain, mapped on demand, verified when first touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from train.feed.shard_files import ShardFiles
from train.feed.token_manifest import TokenManifest, TokenShardsError

__all__ = ["DomainShards", "TokenShards", "TokenShardsError"]


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
        self._files = ShardFiles(
            manifests, verify=arguments["verify"], cache=arguments["cache"], cache_bytes=arguments["cache_bytes"]
        )
        first = manifests[0]
        self.folders = tuple(manifest.folder for manifest in manifests)
        self.policy = first.policy
        self.dtype = np.dtype(first.dtype).newbyteorder("<")
        self.vocab_size = max(manifest.vocab_size for manifest in manifests)
        self.tokenizer_digest = first.tokenizer_digest
        self.eos_id: int | None = first.policy.get("eos_id")
        self.bos_id: int | None = first.policy.get("bos_id")
        self.digest = xxhash.xxh3_128_hexdigest("".join(manifest.ordered_digest for manifest in manifests).encode())
        self.shard_tokens = np.concatenate([manifest.tokens for manifest in manifests])
        self.shard_documents = np.concatenate([manifest.documents for manifest in manifests])

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
        return self._files.array("tokens", shard)

    def ends(self, shard: int) -> NDArray[np.int64]:
        """Where each document of a shard ends, in tokens of the shard: int64, read-only."""
        return self._files.array("ends", shard)

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
        return self._files.documents(shard, columns)

    def documents_url(self, shard: int) -> str:
        """The Parquet file of a shard's documents."""
        return self._files.documents_url(shard)


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
