"""The kernels of the step `minhash` over shards and sorted streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dedup.corpus import DOCS, numbered, readable
from dedup.order import Keep
from dedup.sets import jaccard, unique_sorted, word_sequence_hash
from dedup.sketch import band_keys, signatures_of
from shards.store import filesystem, read_batches, tables
from text import ngram_hashes, tokenize
from text.jit import kernel

SETS = pa.schema([("doc", pa.int64()), ("shingles", pa.binary())])
EDGES = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("similarity", pa.float64())])

_LEADER = -1


def band_names(bands: int) -> list[str]:
    return [f"band_{band:03d}" for band in range(bands)]


@dataclass(kw_only=True)
class Bands:
    """The documents of a shard, with the hash of their word sequence and the keys of their bands."""

    ngram: int
    bands: int
    rows: int
    seed: int
    keep: Keep
    schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        numbers = ["words", *band_names(self.bands)]
        self.schema = pa.schema([*DOCS, *(pa.field(name, pa.int64()) for name in numbers)])

    def __call__(self, shard: int, path: str) -> Iterator[pa.RecordBatch]:
        row = 0
        for batch in read_batches(path, readable(path)):
            tokens = tokenize(batch.column("text"))
            hashes, offsets = tokens.words_only()
            shingles, shingle_offsets = ngram_hashes(hashes, offsets, self.ngram)
            signature = signatures_of(shingles, shingle_offsets, self.bands * self.rows, self.seed)
            keys = band_keys(signature, self.bands, self.rows)
            sequence = word_sequence_hash(hashes, offsets)
            columns = numbered(batch, shard, row, keep=self.keep, characters=tokens.characters, keys=sequence)
            columns.append(pa.array(np.diff(offsets)))
            columns.extend(pa.array(np.ascontiguousarray(key)) for key in keys.T)
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
            row += batch.num_rows


@dataclass(frozen=True, kw_only=True)
class Sets:
    """The shingle sets (sorted 64-bit hashes, little-endian) of those documents of a shard that some pair names.

    wanted: a table of (shard, row), sorted.
    """

    ngram: int
    wanted: str
    schema = SETS

    def __call__(self, shard: int, path: str) -> Iterator[pa.RecordBatch]:
        rows = self._rows(shard)
        first = 0
        for batch in read_batches(path, ["text"]) if len(rows) else ():
            here = rows[np.searchsorted(rows, first) : np.searchsorted(rows, first + batch.num_rows)]
            if len(here):
                yield self._sets(shard, here, batch.column("text").take(pa.array(here - first)))
            first += batch.num_rows

    def _rows(self, shard: int) -> npt.NDArray[np.int64]:
        found = [np.zeros(0, np.int64)]
        for path in tables(self.wanted):
            files, where = filesystem(path)
            with files.open(where, "rb") as source:
                table = pq.read_table(source, columns=["row"], filters=[("shard", "=", shard)])
            found.append(table.column("row").to_numpy())
        return np.sort(np.concatenate(found))

    def _sets(self, shard: int, rows: npt.NDArray[np.int64], texts: pa.Array) -> pa.RecordBatch:
        shingles, offsets = ngram_hashes(*tokenize(texts).words_only(), self.ngram)
        values, ends = unique_sorted(shingles, offsets)
        data = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(rows), [None, pa.py_buffer(ends * 8), pa.py_buffer(values)]
        )
        return pa.RecordBatch.from_arrays(
            [pa.array((np.int64(shard) << 32) + rows), data.cast(pa.binary())], schema=SETS
        )


@dataclass(frozen=True, kw_only=True)
class Verify:
    """A kernel over (a, b, shingles) sorted by a and b: the set of a itself (b = -1), then those of its partners.

    Yields (a, b, similarity) of the pairs whose exact Jaccard similarity is at least `at_least`.
    """

    at_least: float
    schema = EDGES

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        leader = np.zeros(0, np.uint64)
        for batch in batches:
            a, b = batch.column("a").to_numpy(), batch.column("b").to_numpy()
            values, offsets = _hashes_of(batch.column("shingles"))
            similarity = np.zeros(len(a))
            last = _compare(b, values, offsets, leader, self.at_least, similarity)
            if last >= 0:
                leader = values[offsets[last] : offsets[last + 1]].copy()
            found = similarity >= self.at_least
            yield pa.RecordBatch.from_arrays(
                [pa.array(a[found]), pa.array(b[found]), pa.array(similarity[found])], schema=EDGES
            )


def _hashes_of(column: pa.Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """(values uint64[m], offsets int64[n + 1]) of a column of packed hashes."""
    column = column.cast(pa.large_binary())
    _, offset_buffer, data = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
    raw = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    return raw.copy().view(np.uint64), (offsets - offsets[0]) // 8


@kernel
def _compare(b, values, offsets, leader, at_least, similarity):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    last = -1
    for i in range(len(b)):
        mine = values[offsets[i] : offsets[i + 1]]
        if b[i] == _LEADER:
            last = i
        elif last >= 0:
            similarity[i] = jaccard(values[offsets[last] : offsets[last + 1]], mine, at_least)
        else:
            similarity[i] = jaccard(leader, mine, at_least)
    return last
