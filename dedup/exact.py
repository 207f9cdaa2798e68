"""Exact duplicates: documents of the same text, white space aside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass as plain_dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from dedup.corpus import ADDS, DOCS, READS, numbered, readable, twins, verdicts
from dedup.order import Keep
from shards.step import Shuffle, Verdicts
from shards.store import join, read_batches


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Exact:
    """Drop documents whose text another one has: equal when runs of white space count as one space.

    keep: which of them stays (first_id: the smallest id; earliest or latest by date; longest). Ties break by id. Rows
        of one id are identical, so one stays. The survivor's `copies` is the sum over its group, `first_seen` the
        earliest date.
    Equal means: equal 128-bit hash. Two of 10**12 different texts collide with a chance of 10**-15.
    """

    keep: Keep = "first_id"

    name: ClassVar[str] = "exact"
    version: ClassVar[int] = 1
    reads: ClassVar[frozenset[str]] = READS
    adds: ClassVar[pa.Schema] = ADDS
    libraries: ClassVar[tuple[str, ...]] = ()

    def decide(self, shards: Sequence[str], shuffle: Shuffle, work: str) -> Verdicts:
        docs = shuffle.map(Keys(keep=self.keep), shards, join(work, "docs"))
        gone = shuffle.query(
            "SELECT t.doc, t.head AS kept, CAST(1 AS DOUBLE) AS similarity FROM twins AS t",
            join(work, "gone"),
            twins=twins(shuffle, docs, work),
        )
        return verdicts(shuffle, docs, gone, work, rule="duplicate", threshold=1.0)


@plain_dataclass(frozen=True, kw_only=True)
class Keys:
    """The documents of a shard with the hash of their normalised text."""

    keep: Keep
    schema = DOCS

    def __call__(self, shard: int, path: str) -> Iterator[pa.RecordBatch]:
        from text import normalised_hash

        row = 0
        for batch in read_batches(path, readable(path)):
            text = batch.column("text")
            characters = pc.fill_null(pc.utf8_length(text), 0).to_numpy(zero_copy_only=False)
            keys = normalised_hash(text)
            yield pa.RecordBatch.from_arrays(
                numbered(batch, shard, row, keep=self.keep, characters=characters.astype(np.int64), keys=keys),
                schema=DOCS,
            )
            row += batch.num_rows
