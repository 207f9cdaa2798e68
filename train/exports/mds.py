"""MosaicML streaming's MDS: index.json and shard.NNNNN.mds of samples with one column, `tokens`.

A shard (little-endian): u32 samples, u32 offset of each sample and of the end, the columns as JSON with sorted keys,
then the samples. A sample whose column has no fixed size begins with its u32 bytes. An ndarray of a fixed dtype and an
open shape is a byte (axes << 2 | code of the shape's width), the shape, the values; one of a fixed shape is its values
alone.
SOURCE: mosaicml-streaming, base/format/mds/writer.py and encodings.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from train.exports.account import Account
from train.exports.folder import COPY_BYTES, ExportError, Folder, Written, safe_name
from train.exports.streams import Run, Source, Stream, lengths

HASH = "xxh3_128"
MAX_SHARD_BYTES = (1 << 32) - 1  # offsets have 32 bits
HEAD_BYTES = 9  # at most: u32 size, a byte, u32 shape
OFFSET_BYTES = 4


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Mds:
    """A stream (a folder with an index.json) a domain; a sample is a document, or `sequence_tokens` tokens.

    sequence_tokens: None gives each document a sample of its own length; a number cuts the domain's tokens into samples
        of that many, through documents; what is left at a domain's end is left out and told.
    shard_bytes: size of a shard, about; a longer document has one to itself.
    """

    sequence_tokens: int | None = Field(default=None, ge=1, le=1 << 24)
    shard_bytes: int = Field(default=1 << 26, ge=1 << 10, le=1 << 31)

    def write(self, source: Source, folder: Folder, account: Account) -> None:
        """Raises ExportError for a document that does not fit a shard of 4 GiB."""
        account.note(f"Shards have their {HASH}; StreamingDataset checks it when validate_hash={HASH!r} is given.")
        if self.sequence_tokens is not None:
            account.note("Samples are cut through documents, whose ends are not stored.")
        dtype = source.shards.dtype.name
        for stream in source.streams:
            told: list[dict[str, Any]] = []
            for runs in self._shards(stream, account):
                name = f"{safe_name(stream.name)}/shard.{len(told):05d}.mds"
                with folder.file(name) as out:
                    samples = self._write(out, runs, dtype, stream.name)
                shard = {"basename": name.rsplit("/", 1)[-1], "bytes": folder.size_of(name)}
                raw = {**shard, "hashes": {HASH: folder.digest_of(name)}}
                told.append({**self._columns(dtype), "raw_data": raw, "samples": samples, "zip_data": None})
            index = json.dumps({"version": 2, "shards": told}, sort_keys=True)
            folder.write(f"{safe_name(stream.name)}/index.json", index.encode())

    def _shards(self, stream: Stream, account: Account) -> Iterator[Sequence[Run]]:
        """The runs of each shard, and the account of them."""
        width, sequence = stream.shards.dtype.itemsize, self.sequence_tokens
        if sequence is None:
            for runs in stream.files(self.shard_bytes, token_cost=width, document_cost=HEAD_BYTES + OFFSET_BYTES):
                account.wrote(stream.name, documents=len(lengths(runs)), tokens=sum(run.count for run in runs))
                yield runs
            return
        whole = stream.tokens // sequence * sequence
        inside = _documents_before(stream, whole)
        account.wrote(stream.name, documents=inside, tokens=whole)
        account.leave_out(
            "the end of a domain, shorter than a sequence",
            documents=stream.documents() - inside,
            tokens=stream.tokens - whole,
        )
        for runs in stream.cuts(max(1, self.shard_bytes // (sequence * width)) * sequence):
            if sum(run.count for run in runs) >= sequence:
                yield runs

    def _columns(self, dtype: str) -> dict[str, Any]:
        size = None if self.sequence_tokens is None else self.sequence_tokens * np.dtype(dtype).itemsize
        shape = "" if self.sequence_tokens is None else f":{self.sequence_tokens}"
        return {
            "column_encodings": [f"ndarray:{dtype}{shape}"],
            "column_names": ["tokens"],
            "column_sizes": [size],
            "compression": None,
            "format": "mds",
            "hashes": [HASH],
            "size_limit": self.shard_bytes,
            "version": 2,
        }

    def _write(self, out: Written, runs: Sequence[Run], dtype: str, stream: str) -> int:
        """One shard; the number of its samples."""
        width = np.dtype(dtype).itemsize
        if self.sequence_tokens is None:
            counts = lengths(runs)
            sizes = counts * width + _heads(counts, width)[1]
        else:
            samples = sum(run.count for run in runs) // self.sequence_tokens
            sizes = np.full(samples, self.sequence_tokens * width)
        columns = json.dumps(self._columns(dtype), sort_keys=True).encode()
        start = 4 + OFFSET_BYTES * (len(sizes) + 1) + len(columns)
        offsets = start + np.cumsum([0, *sizes.tolist()])
        if offsets[-1] > MAX_SHARD_BYTES:
            raise ExportError(
                f"{stream}: a shard of {offsets[-1]} bytes; mds holds fewer than 2^32, so split its document"
            )
        out.write_array(np.array([len(sizes)]), "uint32")
        out.write_array(offsets, "uint32")
        out.write(columns)
        left = int(sizes.sum()) // width  # of sequences only: what does not fill one is not written
        for run in runs:
            if self.sequence_tokens is None:
                _write_documents(out, run, dtype)
            else:
                out.write_array(run.tokens[:left], dtype)
                left -= min(left, run.count)
        return len(sizes)


def _documents_before(stream: Stream, tokens: int) -> int:
    """How many documents end within the first `tokens` of a stream."""
    found = 0
    for run in stream.runs():
        found += int(np.searchsorted(run.ends, tokens, side="right"))
        tokens -= run.count
    return found


def _heads(counts: NDArray[np.int64], width: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """What stands before each document's values: n rows of 9 bytes, and how many bytes of each row count."""
    code = (counts > 0xFF).astype(np.int64) + (counts > 0xFFFF)  # of the shape: a byte, two, or four
    used = 5 + (1 << code)
    heads = np.zeros((len(counts), HEAD_BYTES), np.uint8)
    heads[:, :4] = (used - 4 + counts * width).astype("<u4").view(np.uint8).reshape(-1, 4)
    heads[:, 4] = 1 << 2 | code  # one axis
    heads[:, 5:] = counts.astype("<u4").view(np.uint8).reshape(-1, 4)
    return heads, used


def _write_documents(out: Written, run: Run, dtype: str) -> None:
    """Each document behind its head, joined in batches of a few MiB."""
    ends, tokens, width = run.ends, run.tokens, np.dtype(dtype).itemsize
    first = 0
    while first < len(ends):
        start = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, start + COPY_BYTES // width, side="right")))
        here = ends[first:last]
        heads, used = _heads(np.diff(here, prepend=start), width)
        if last == first + 1:
            out.write(heads[0, : used[0]])
            out.write_array(tokens[start : int(here[-1])], dtype)
        else:
            flat = heads[np.arange(HEAD_BYTES) < used[:, None]]
            bodies = _binary(tokens[start : int(here[-1])].view(np.uint8), (here - start) * width)
            joined = pc.binary_join_element_wise(_binary(flat, np.cumsum(used)), bodies, _NOTHING)
            out.write(joined.buffers()[2])
        first = last


_NOTHING = pa.scalar(b"", pa.large_binary())


def _binary(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> pa.Array:
    """Pieces of a buffer as Arrow's binaries, without a copy."""
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    return pa.Array.from_buffers(pa.large_binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
