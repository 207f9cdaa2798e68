"""A user's step that cannot stand some documents."""

from __future__ import annotations

import os

import pyarrow as pa

from shards.step import Judged, judge


class Poison:
    """Raises at a text with the word `raise`, ends the process at one with `abort`."""

    name = "poison"
    version = 1
    reads = frozenset({"text"})
    adds = pa.schema([])

    def __call__(self, batch: pa.RecordBatch) -> Judged:
        for text in batch.column("text").to_pylist():
            if "raise" in text:
                raise ValueError("cannot stand it")
            if "abort" in text:
                os.abort()
        return judge(batch, [])
