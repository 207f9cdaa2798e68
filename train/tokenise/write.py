"""Token shards on disk: part-NNNNN-of-NNNNN.bin of raw little-endian ids, and where each document lies in them.

    data/part-00000-of-00004.bin            the ids of documents one after another: nothing else, so it can be mapped
    ends/part-00000-of-00004.bin            a uint64 a document, where it ends in tokens of the shard: to be mapped, too
    documents/part-00000-of-00004.parquet   a row a document in the same order: id, source, domain, shard, start,
                                            token_count, language (null where none is known), text_bytes (of UTF-8)

Numbers are little-endian. `start` and `token_count` count tokens of the shard; a document's end is the next one's
start, and is never inferred from an EOS.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from shards.store import ParquetWriter, atomic, join

DOCUMENTS = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("domain", pa.string()),
        ("shard", pa.int32()),
        ("start", pa.int64()),
        ("token_count", pa.int32()),
        ("language", pa.string()),
        ("text_bytes", pa.int64()),
    ]
)
WRITTEN = pa.schema(
    [
        ("shard", pa.int32()),
        ("documents", pa.int64()),
        ("tokens", pa.int64()),
        ("bytes", pa.int64()),
        ("digest", pa.string()),
        ("ends_digest", pa.string()),
        ("documents_digest", pa.string()),
    ]
)


def data_name(shard: int, shards: int) -> str:
    return f"data/part-{shard:05d}-of-{shards:05d}.bin"


def ends_name(shard: int, shards: int) -> str:
    return f"ends/part-{shard:05d}-of-{shards:05d}.bin"


def documents_name(shard: int, shards: int) -> str:
    return f"documents/part-{shard:05d}-of-{shards:05d}.parquet"


@dataclass(frozen=True, kw_only=True)
class WriteKernel:
    """Writes the token shards of a stream of encoded parts sorted by (shard, order of documents, part).

    It yields a row a shard (WRITTEN). A shard's files get their names only when they are whole, so a shard that is
    written twice (a retry, a speculative task) is the same shard.
    """

    out: str
    shards: int
    width: int
    schema = WRITTEN

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with ExitStack() as stack:
            shard: ShardWriter | None = None
            for batch in batches:
                for number, rows in _runs(batch):
                    if shard is None or shard.number != number:
                        stack.close()
                        if shard is not None:
                            yield shard.told()
                        shard = stack.enter_context(self.writing(number))
                    shard.write(rows)
            stack.close()
            if shard is not None:
                yield shard.told()

    @contextmanager
    def writing(self, number: int) -> Iterator[ShardWriter]:
        """A shard to write; its three files appear at the end, if nothing was raised."""
        data_url = join(self.out, data_name(number, self.shards))
        ends_url = join(self.out, ends_name(number, self.shards))
        documents_url = join(self.out, documents_name(number, self.shards))
        with (
            ParquetWriter(documents_url, DOCUMENTS, with_digest=False) as table,
            atomic(ends_url) as ends,
            atomic(data_url) as data,
        ):
            writer = ShardWriter(number, self.width, data, ends, table)
            yield writer
            writer.check()

    def empty(self, number: int) -> pa.RecordBatch:
        """Write a shard of no documents."""
        with self.writing(number) as writer:
            pass
        return writer.told()


class ShardWriter:
    """One token shard and its documents, written as their parts come."""

    def __init__(self, number: int, width: int, data: IO[bytes], ends: IO[bytes], table: ParquetWriter) -> None:
        self.number = number
        self._width = width
        self._data = data
        self._ends = ends
        self._table = table
        self._documents = 0
        self._tokens = 0  # that the documents so far have, by their token_count
        self._bytes = 0  # that were written
        self._digest = xxhash.xxh3_128()
        self._ends_digest = xxhash.xxh3_128()
        self._documents_digest = xxhash.xxh3_128()

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows of train.tokenise.encode.ENCODED in their order."""
        firsts = batch.filter(pc.equal(batch.column("part"), 0))
        if firsts.num_rows:
            self._add_documents(firsts)
        tokens = batch.column("tokens").cast(pa.large_binary())
        offsets = np.frombuffer(tokens.buffers()[1], np.int64)[tokens.offset : tokens.offset + len(tokens) + 1]
        if offsets[-1] > offsets[0]:
            data = memoryview(tokens.buffers()[2])[offsets[0] : offsets[-1]]
            self._data.write(data)
            self._digest.update(data)
            self._bytes += len(data)

    def _add_documents(self, firsts: pa.RecordBatch) -> None:
        counts = np.asarray(firsts.column("token_count"), np.int64)
        ends = self._tokens + np.cumsum(counts)
        starts = ends - counts
        self._ends.write(ends.astype("<u8").tobytes())
        self._ends_digest.update(ends.astype("<u8").tobytes())
        self._tokens += int(counts.sum())
        self._documents += len(counts)
        ids = firsts.column("id").to_pylist()
        lines = [f"{told} {count}\n" for told, count in zip(ids, counts.tolist(), strict=True)]
        self._documents_digest.update("".join(lines).encode())
        columns = [firsts.column(name) for name in ("id", "source", "domain", "shard")]
        columns += [pa.array(starts)]
        columns += [firsts.column(name) for name in ("token_count", "language", "text_bytes")]
        columns = [column.cast(field.type) for column, field in zip(columns, DOCUMENTS, strict=True)]
        self._table.write(pa.record_batch(columns, schema=DOCUMENTS))

    def check(self) -> None:
        if self._bytes != self._tokens * self._width:
            wanted = self._tokens * self._width
            raise RuntimeError(f"token shard {self.number}: {self._bytes} bytes where its documents have {wanted}")

    def told(self) -> pa.RecordBatch:
        row = [
            self.number,
            self._documents,
            self._tokens,
            self._bytes,
            self._digest.hexdigest(),
            self._ends_digest.hexdigest(),
            self._documents_digest.hexdigest(),
        ]
        return pa.record_batch([[value] for value in row], schema=WRITTEN)


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The slices of a batch that lie in one shard each."""
    numbers = np.asarray(batch.column("shard"))
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        if start < stop:
            yield int(numbers[start]), batch.slice(start, stop - start)
