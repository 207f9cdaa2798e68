"""User steps that return what no step may, each in one way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from shards.step import DROPS, Judged, empty, judge, with_column

Making = Callable[[pa.RecordBatch], Any]


def _texts(batch: pa.RecordBatch, column: pa.Array) -> Judged:
    return judge(with_column(batch, "text", column), [])


def _not_utf8(batch: pa.RecordBatch) -> pa.Array:
    raw = pa.array([b"\xff"] * batch.num_rows, pa.large_binary())
    return pa.Array.from_buffers(pa.large_string(), len(raw), raw.buffers())


def _signals(batch: pa.RecordBatch, name: str, rows: int) -> Judged:
    return judge(batch, [], signals=pa.RecordBatch.from_arrays([pa.array([1] * rows)], names=[name]))


def _rows(batch: pa.RecordBatch, rows: Any) -> Judged:
    return Judged(kept=batch, kept_rows=np.array(rows))


def _drops(batch: pa.RecordBatch, rows: list[int]) -> Judged:
    blank = [pa.nulls(len(rows), field.type) for field in DROPS]
    blank[0] = pa.array(rows, pa.int32())
    return Judged(kept=batch.slice(0, 0), kept_rows=np.zeros(0, np.int32), drops=pa.record_batch(blank, schema=DROPS))


WAYS: dict[str, Making] = {
    "batch": lambda b: b,
    "null_text": lambda b: _texts(b, pa.nulls(b.num_rows, pa.large_string())),
    "no_text": lambda b: judge(b.drop_columns(["text"]), []),
    "integer_text": lambda b: _texts(b, pa.array(range(b.num_rows))),
    "binary_text": lambda b: _texts(b, b.column("text").cast(pa.large_binary())),
    "not_utf8": lambda b: _texts(b, _not_utf8(b)),
    "table": lambda b: Judged(kept=pa.Table.from_batches([b]), kept_rows=np.arange(b.num_rows, dtype=np.int32)),
    "undeclared": lambda b: judge(with_column(b, "more", pa.nulls(b.num_rows)), []),
    "no_stars": lambda b: judge(b.drop_columns(["stars"]), []),
    "signal_id": lambda b: _signals(b, "id", b.num_rows),
    "signal_step": lambda b: _signals(b, "step", b.num_rows),
    "short_signals": lambda b: _signals(b, "length", b.num_rows - 1),
    "few_rows": lambda b: _rows(b, np.arange(b.num_rows - 1)),
    "float_rows": lambda b: _rows(b, np.arange(b.num_rows, dtype=np.float64)),
    "list_rows": lambda b: Judged(kept=b, kept_rows=list(range(b.num_rows))),  # type: ignore[arg-type]
    "twice_rows": lambda b: _rows(b, [0] * b.num_rows),
    "far_rows": lambda b: _rows(b, np.arange(b.num_rows) + 1),
    "back_rows": lambda b: _rows(b, np.arange(b.num_rows)[::-1]),
    "other_order": lambda b: _rows(b.take(pa.array(range(b.num_rows))[::-1]), np.arange(b.num_rows)),
    "no_rule": lambda b: _drops(b, list(range(b.num_rows))),
    "odd_drops": lambda b: Judged(
        kept=b, kept_rows=np.arange(b.num_rows), drops=empty(pa.schema([("row", pa.int32())]))
    ),
    "twin_columns": lambda b: judge(
        pa.record_batch([*b.columns, b.column("text")], names=[*b.schema.names, "text"]), []
    ),
    "short_text": lambda b: _texts(b, b.column("text").cast(pa.string())),
    "fine": lambda b: judge(b, []),
}


class Wrong:
    """Returns what WAYS[way] makes of the batch; `adds` is what it declares."""

    name = "wrong"
    version = 1
    reads = frozenset({"text"})

    def __init__(self, way: str, adds: bool = False) -> None:
        self.way = way
        self.adds = pa.schema([("more", pa.int64())] if adds else [])

    def __call__(self, batch: pa.RecordBatch) -> Any:
        return WAYS[self.way](batch)


class SurrogateError(ValueError):
    """An exception whose words no file can hold."""


class DumbError(ValueError):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Raising:
    """Raises at the first row alone."""

    name = "raising"
    version = 1
    reads = frozenset({"text"})
    adds = pa.schema([])

    def __init__(self, dumb: bool = False) -> None:
        self.dumb = dumb

    def __call__(self, batch: pa.RecordBatch) -> Judged:
        if "poison" in " ".join(batch.column("text").to_pylist()):
            raise DumbError if self.dumb else SurrogateError("a \ud800 b")
        return judge(batch, [])
