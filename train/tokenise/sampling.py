"""A sample of texts for each domain and language: the first in the order of hash(seed, id), however they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from shards.views import connect
from train.tokenise.encode import SAMPLE_TEXT_CHARS
from train.tokenise.layout import UNKNOWN

BATCH_ROWS = 1024
MOST_GROUPS = 5_000
Group = tuple[str, str]
Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """texts: large_string; pairs: uint64 a text, equal for translations of one text, or None."""

    texts: pa.Array
    pairs: Keys | None


def documents_of(out: str) -> Iterator[pa.RecordBatch]:
    """id, domain, language and text of a run's kept documents. Raises what shards.views.connect raises."""
    connection = connect(out)
    try:
        stored = {row[0] for row in connection.execute("DESCRIBE documents").fetchall()}
        language = "language" if "language" in stored else "NULL::VARCHAR AS language"
        told = connection.sql(f"SELECT id, coalesce(domain, source) AS domain, {language}, text FROM documents")
        yield from told.to_arrow_reader(BATCH_ROWS)
    finally:
        connection.close()


def sampled(
    batches: Iterable[pa.RecordBatch], *, sample_bytes: int, seed: int, parallel: str | None = None
) -> dict[Group, Sampled]:
    """{(domain, language): texts}, in order of the names.

    batches: `text`, and where they are known `id`, `domain` and `language` (null: "und"). sample_bytes: of each group,
    the first texts of whose order that hold as many, or all; a text gives its first 2^20 characters. parallel: a
    column in which translations of one text have one value; they are then drawn together. Memory: twice sample_bytes a
    group. Raises ValueError for a column that is missing, and for more than 5,000 groups.
    """
    groups: dict[Group, _Growing] = {}
    for batch in batches:
        columns = {name: batch.column(name) for name in batch.schema.names if name in _wanted(parallel)}
        for needed in ("text", parallel):
            if needed is not None and needed not in columns:
                raise ValueError(f"texts: no column {needed!r}; there are {', '.join(batch.schema.names)}")
        texts = pc.utf8_slice_codeunits(columns["text"].cast(pa.large_string()).fill_null(""), 0, SAMPLE_TEXT_CHARS)
        hashes = _hashes(texts, seed)
        pairs = None if parallel is None else _hashes(columns[parallel].cast(pa.large_string()), seed)
        keys = _hashes(columns["id"].cast(pa.large_string()), seed) if "id" in columns else hashes
        for group, rows in _rows(columns, len(texts)):
            if group not in groups and len(groups) == MOST_GROUPS:
                raise ValueError(f"texts: more than {MOST_GROUPS} pairs of domain and language")
            growing = groups.setdefault(group, _Growing(sample_bytes))
            growing.add(texts, keys if pairs is None else pairs, hashes, rows)
    return {group: groups[group].done(paired=parallel is not None) for group in sorted(groups)}


def _wanted(parallel: str | None) -> set[str | None]:
    return {"id", "domain", "language", "text", parallel}


def _hashes(texts: pa.Array, seed: int) -> Keys:
    seed %= 1 << 64
    told = texts.cast(pa.large_binary()).fill_null(b"").to_pylist()
    return np.array([xxhash.xxh3_64_intdigest(text, seed=seed) for text in told], np.uint64)


def _rows(columns: dict[str, pa.Array], count: int) -> Iterator[tuple[Group, npt.NDArray[np.int64]]]:
    """The row numbers of each group of a batch."""
    empty = pa.nulls(count, pa.string())
    domains = columns.get("domain", empty).cast(pa.string()).fill_null("")
    languages = columns.get("language", empty).cast(pa.string()).fill_null(UNKNOWN)
    coded = [array.dictionary_encode() for array in (domains, languages)]
    names = [array.dictionary.to_pylist() for array in coded]
    numbers = [np.asarray(array.indices, np.int64) for array in coded]
    both = numbers[0] * max(len(names[1]), 1) + numbers[1]
    for code in np.unique(both).tolist():
        domain, language = divmod(code, len(names[1]))
        yield (names[0][domain], names[1][language]), np.flatnonzero(both == code)


class _Growing:
    """The first texts of a group, pruned whenever they are twice what is asked for."""

    def __init__(self, sample_bytes: int) -> None:
        self.sample_bytes = sample_bytes
        self.bytes = 0
        self.last: np.uint64 | None = None  # texts behind it in the order are not needed any more
        self.texts: list[pa.Array] = []
        self.keys: list[Keys] = []
        self.hashes: list[Keys] = []

    def add(self, texts: pa.Array, keys: Keys, hashes: Keys, rows: npt.NDArray[np.int64]) -> None:
        if self.last is not None:
            rows = rows[keys[rows] <= self.last]
        if len(rows) == 0:
            return
        self.texts.append(texts.take(pa.array(rows)))
        self.keys.append(keys[rows])
        self.hashes.append(hashes[rows])
        self.bytes += pc.sum(pc.binary_length(self.texts[-1])).as_py()
        if self.bytes > 2 * self.sample_bytes:
            self._prune()

    def _prune(self) -> None:
        texts, keys, hashes = pa.concat_arrays(self.texts), np.concatenate(self.keys), np.concatenate(self.hashes)
        order = np.lexsort((hashes, keys))
        ends = np.cumsum(np.asarray(pc.binary_length(texts), np.int64)[order])
        order = order[: int(np.searchsorted(ends, self.sample_bytes)) + 1]
        self.texts, self.keys, self.hashes = [texts.take(pa.array(order))], [keys[order]], [hashes[order]]
        self.bytes = int(ends[len(order) - 1])
        if self.bytes >= self.sample_bytes:
            self.last = self.keys[0][-1]

    def done(self, *, paired: bool) -> Sampled:
        self._prune()
        return Sampled(texts=self.texts[0], pairs=self.keys[0] if paired else None)
