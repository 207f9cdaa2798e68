"""What a step is: an object with frozen settings, called with an Arrow RecordBatch.

The same object runs in a test, a notebook, a datatrove task and a Spark executor; it knows none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shards.schema import is_transient

DROPS = pa.schema(
    [
        ("row", pa.int32()),
        ("rule", pa.string()),
        ("rules", pa.list_(pa.string())),
        ("value", pa.float64()),
        ("threshold", pa.float64()),
        ("evidence", pa.string()),
    ]
)

FAILURES = pa.schema([("row", pa.int32()), ("error", pa.string()), ("message", pa.string())])


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a step made of a batch of n rows: each row is kept, dropped or failed, exactly once.

    kept: the rows that stay, in input order, with the columns that the step adds or rewrites.
    kept_rows: int32[kept.num_rows], their positions in the input batch.
    drops: a row a dropped row (DROPS): its position, the first rule that failed, all that failed, and the evidence.
    failures: a row a quarantined row (FAILURES): its position, error class and message, never the text.
    signals: a column a signal, one row an input row in input order; None for a step that measures nothing.
    """

    kept: pa.RecordBatch
    kept_rows: npt.NDArray[np.int32]
    drops: pa.RecordBatch = field(default_factory=lambda: empty(DROPS))
    failures: pa.RecordBatch = field(default_factory=lambda: empty(FAILURES))
    signals: pa.RecordBatch | None = None


@runtime_checkable
class Step(Protocol):
    """One per-document step. `name` is the recipe's kind; `version` is raised when its answers change."""

    name: str
    version: int
    reads: frozenset[str]
    adds: pa.Schema

    def __call__(self, batch: pa.RecordBatch) -> Judged: ...


class CorpusStep(Protocol):
    """A whole-corpus step: documents against documents. It says who goes; the engine applies it shard by shard."""

    name: str
    version: int
    reads: frozenset[str]
    adds: pa.Schema

    def decide(self, shards: Sequence[str], shuffle: Shuffle, work: str) -> Verdicts: ...


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """Two tables (folders of Parquet) that a whole-corpus step made.

    removed: shard int32, row int64, rule string, kept_id string, similarity float64, threshold float64; a row a
        removal.
    survivors: shard int32, row int64, copies int32, first_seen timestamp[us, UTC]; a row a document that stands for
        more than itself.
    Both are sorted by shard, so that applying them reads a slice.
    """

    removed: str
    survivors: str


class Shuffle(Protocol):
    """What an engine offers to whole-corpus steps: kernels over shards, and SQL over what they made.

    A table is the path of a folder of Parquet files. SQL is the common ground of DuckDB and Spark SQL (no unsigned
    types, no UNNEST or EXPLODE); tables are named by keyword. Memory is bounded by the engine's setting, by spilling.
    """

    def map(self, task: ShardTask, shards: Sequence[str], out: str) -> str:
        """Call task(shard_number, path) for each shard, in parallel; what it yields becomes out/part-NNNNN.parquet."""
        ...

    def query(self, sql: str, out: str, **tables: str) -> str:
        """Run SQL over the named tables and write the answer to `out`."""
        ...

    def stream(self, sql: str, kernel: Kernel, out: str, *, key: str, order: Sequence[str], **tables: str) -> str:
        """Run SQL, bring rows of equal `key` together sorted by (key, *order), and pass them through the kernel.

        The kernel gets an iterator of batches in which a key's rows are contiguous (a key may span batches, never
        two calls), and yields batches of its declared schema.
        """
        ...

    def scalar(self, sql: str, **tables: str) -> int:
        """One integer (a count), for loops that stop when nothing changes."""
        ...


class ShardTask(Protocol):
    """A picklable callable over one shard; `schema` is what it yields."""

    schema: pa.Schema

    def __call__(self, shard: int, path: str) -> Iterator[pa.RecordBatch]: ...


class Kernel(Protocol):
    """A picklable callable over a sorted stream of batches; `schema` is what it yields."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]: ...


@dataclass(frozen=True, kw_only=True)
class Check:
    """One rule applied to a batch of n rows. A null value in `failed` is a bug, not an answer."""

    rule: str
    failed: npt.NDArray[np.bool_]
    value: npt.NDArray[np.float64] | None = None
    threshold: float | npt.NDArray[np.float64] | None = None
    evidence: Sequence[str | None] | None = None


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """A batch of no rows."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def judge(
    batch: pa.RecordBatch,
    checks: Sequence[Check],
    *,
    signals: pa.RecordBatch | None = None,
    failures: Mapping[int, tuple[str, str]] | None = None,
) -> Judged:
    """Split a batch by its checks, in their order: the first that fails names the drop, all that fail are listed.

    failures: {row: (error class, message)} of rows that could not be judged; they are neither kept nor dropped.
    """
    failed_rows = np.array(sorted(failures or ()), dtype=np.int32)
    gone = np.zeros(batch.num_rows, dtype=np.bool_)
    for check in checks:
        gone |= check.failed
    gone[failed_rows] = False
    keep = ~gone
    keep[failed_rows] = False
    kept_rows = np.flatnonzero(keep).astype(np.int32)
    kept = batch if len(kept_rows) == batch.num_rows else batch.take(pa.array(kept_rows))
    return Judged(
        kept=kept,
        kept_rows=kept_rows,
        drops=_drops(np.flatnonzero(gone).astype(np.int32), checks),
        failures=_failures(failures or {}, failed_rows),
        signals=signals,
    )


def _drops(rows: npt.NDArray[np.int32], checks: Sequence[Check]) -> pa.RecordBatch:
    if len(rows) == 0:
        return empty(DROPS)
    failed = np.stack([check.failed[rows] for check in checks])
    first = failed.argmax(axis=0)
    names = [check.rule for check in checks]
    columns: list[Any] = [
        pa.array(rows),
        pa.array([names[i] for i in first], pa.string()),
        pa.array([[names[i] for i in np.flatnonzero(column)] for column in failed.T], pa.list_(pa.string())),
        pa.array([_number(checks[i].value, row) for i, row in zip(first, rows, strict=True)], pa.float64()),
        pa.array([_number(checks[i].threshold, row) for i, row in zip(first, rows, strict=True)], pa.float64()),
        pa.array([_text(checks[i].evidence, row) for i, row in zip(first, rows, strict=True)], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=DROPS)


def _failures(failures: Mapping[int, tuple[str, str]], rows: npt.NDArray[np.int32]) -> pa.RecordBatch:
    told = [failures[int(row)] for row in rows]
    return pa.RecordBatch.from_arrays(
        [pa.array(rows), pa.array([e for e, _ in told], pa.string()), pa.array([m for _, m in told], pa.string())],
        schema=FAILURES,
    )


def _number(values: float | npt.NDArray[np.float64] | None, row: int) -> float | None:
    if values is None:
        return None
    return float(values[row]) if isinstance(values, np.ndarray) else float(values)


def _text(values: Sequence[str | None] | None, row: int) -> str | None:
    return None if values is None else values[row]


def with_column(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    """The batch with a column added or replaced. A new `text` drops the transient columns measured on the old one."""
    fields = list(batch.schema)
    arrays = list(batch.columns)
    if name == "text":
        stays = [i for i, field in enumerate(fields) if not is_transient(field.name)]
        fields, arrays = [fields[i] for i in stays], [arrays[i] for i in stays]
    names = [field.name for field in fields]
    if name in names:
        at = names.index(name)
        fields[at], arrays[at] = pa.field(name, column.type), column
    else:
        fields.append(pa.field(name, column.type))
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
