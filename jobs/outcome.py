"""One per-document step applied to one batch: isolation of what fails, and every row accounted for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jobs.engines.isolate import describe
from jobs.plan import StepPlan
from jobs.returned import WrongReturnError, checked
from shards.manifest import ConservationError
from shards.schema import DROPPED, QUARANTINE
from shards.step import FAILURES, Judged, empty

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A batch after a step: the rows that stay, and the rows of dropped, signals and quarantine to be written.

    sizes: int64[n], the bytes of the input rows as they came in; kept_rows, dropped_rows, failed_rows index them.
    """

    kept: pa.RecordBatch
    dropped: pa.RecordBatch
    quarantined: pa.RecordBatch
    signals: pa.RecordBatch | None
    sizes: Rows
    kept_rows: Rows
    dropped_rows: Rows
    failed_rows: Rows


def apply(plan: StepPlan, batch: pa.RecordBatch, *, keep_dropped: float) -> Outcome:
    """Call the step on the rows of its domains; other rows pass untouched. A row that makes it raise fails alone."""
    inside = _inside(batch, plan.domains)
    if inside is None:
        return settle(plan.name, batch, isolated(plan, batch), sizes=row_bytes(batch), keep_dropped=keep_dropped)
    sub = batch.take(pa.array(inside))
    judged = isolated(plan, sub)
    outcome = settle(plan.name, sub, judged, sizes=row_bytes(sub), keep_dropped=keep_dropped)
    outside = np.setdiff1d(np.arange(batch.num_rows), inside)
    rows = np.concatenate([inside[outcome.kept_rows], outside])
    kept = _concat(outcome.kept, batch.take(pa.array(outside)), order=np.argsort(rows, kind="stable"))
    return Outcome(
        kept=kept, dropped=outcome.dropped, quarantined=outcome.quarantined, signals=outcome.signals,
        sizes=row_bytes(batch), kept_rows=np.sort(rows), dropped_rows=inside[outcome.dropped_rows],
        failed_rows=inside[outcome.failed_rows],
    )  # fmt: skip


def settle(name: str, batch: pa.RecordBatch, judged: Judged, *, sizes: Rows, keep_dropped: float) -> Outcome:
    """Turn a step's judgement into rows to write; raise ConservationError unless each row has exactly one outcome."""
    kept_rows = judged.kept_rows.astype(np.int64)
    dropped_rows = judged.drops.column("row").to_numpy().astype(np.int64)
    failed_rows = judged.failures.column("row").to_numpy().astype(np.int64)
    told = np.sort(np.concatenate([kept_rows, dropped_rows, failed_rows]))
    if not np.array_equal(told, np.arange(batch.num_rows)) or judged.kept.num_rows != len(kept_rows):
        raise ConservationError(f"{name}: {batch.num_rows} rows went in, {len(told)} outcomes came out")
    if judged.signals is not None and judged.signals.num_rows != batch.num_rows:
        raise ConservationError(f"{name}: {judged.signals.num_rows} rows of signals for {batch.num_rows} documents")
    return Outcome(
        kept=judged.kept,
        dropped=_dropped(name, batch, judged.drops, keep_dropped),
        quarantined=_quarantined(name, batch, judged.failures, sizes),
        signals=_signals(batch, judged.signals),
        sizes=sizes, kept_rows=kept_rows, dropped_rows=dropped_rows, failed_rows=failed_rows,
    )  # fmt: skip


def isolated(plan: StepPlan, batch: pa.RecordBatch) -> Judged:
    """The step's judgement; where it raises, halves are tried until the rows that make it raise stand alone.

    Raises WrongReturnError where it does not raise but returns what no step may.
    """
    try:
        judged = plan.step(batch)
    except WrongReturnError:
        raise
    except Exception as error:
        if batch.num_rows == 1:
            row = pa.array([0], pa.int32())
            failures = pa.RecordBatch.from_arrays(
                [row, pa.array([storable(type(error).__name__)]), pa.array([_words(error)])], schema=FAILURES
            )
            return Judged(kept=batch.slice(0, 0), kept_rows=np.zeros(0, np.int32), failures=failures)
        half = batch.num_rows // 2
        return _join(isolated(plan, batch.slice(0, half)), isolated(plan, batch.slice(half)), half)
    return checked(plan, batch, judged)


def _words(error: Exception) -> str:
    """What an exception says, as a column can hold it; exceptions of others may fail at saying anything."""
    try:
        return storable(describe(error))
    except Exception as failed:
        return f"its message cannot be told ({storable(type(failed).__name__)})"


def storable(text: str) -> str:
    """The text with what UTF-8 cannot hold (lone surrogates) written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _join(first: Judged, second: Judged, shift: int) -> Judged:
    def moved(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.set_column(0, rows.schema.field(0), pc.add(rows.column(0), pa.scalar(shift, pa.int32())))

    return Judged(
        kept=_concat(first.kept, second.kept),
        kept_rows=np.concatenate([first.kept_rows, second.kept_rows + np.int32(shift)]),
        drops=_concat(first.drops, moved(second.drops)),
        failures=_concat(first.failures, moved(second.failures)),
        signals=_joined_signals(first, second),
    )


def _joined_signals(first: Judged, second: Judged) -> pa.RecordBatch | None:
    """Signals of both; rows of a half that failed as a whole have none, so theirs are null."""
    known = first.signals if first.signals is not None else second.signals
    if known is None:
        return None
    parts = []
    for half in (first, second):
        rows = len(half.kept_rows) + half.drops.num_rows + half.failures.num_rows
        blank = pa.RecordBatch.from_arrays([pa.nulls(rows, field.type) for field in known.schema], schema=known.schema)
        parts.append(half.signals if half.signals is not None else blank)
    return _concat(parts[0], parts[1])


def _concat(first: pa.RecordBatch, second: pa.RecordBatch, order: Rows | None = None) -> pa.RecordBatch:
    """Rows of both; a column that one of them lacks is null there."""
    if second.num_rows == 0 and order is None:
        return first
    table = pa.concat_tables(
        [pa.Table.from_batches([first]), pa.Table.from_batches([second])], promote_options="default"
    )
    if order is not None:
        table = table.take(pa.array(order))
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else empty(table.schema)


def _inside(batch: pa.RecordBatch, domains: tuple[str, ...] | None) -> Rows | None:
    """Positions of the rows of the given domains; None when all are."""
    if domains is None:
        return None
    mask = pc.is_in(batch.column("domain"), value_set=pa.array(domains, pa.string()))
    found: Rows = np.flatnonzero(mask.to_numpy(zero_copy_only=False)).astype(np.int64)
    return None if len(found) == batch.num_rows else found


def row_bytes(batch: pa.RecordBatch) -> Rows:
    """Bytes of each row's content as it is now: the raw page where there is one, else the text."""
    sizes = pc.binary_length(batch.column("text").cast(pa.large_binary()))
    if "_content" in batch.schema.names:
        sizes = pc.coalesce(pc.binary_length(batch.column("_content")), sizes)
    return np.asarray(sizes.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)


def _dropped(name: str, batch: pa.RecordBatch, drops: pa.RecordBatch, keep_dropped: float) -> pa.RecordBatch:
    rows = drops.column("row")
    gone = batch.select([c for c in ("id", "source", "url", "text", "copies") if c in batch.schema.names]).take(rows)
    text = gone.column("text")
    if keep_dropped < 1:
        text = pc.if_else(pa.array(_sampled(gone.column("id"), keep_dropped)), text, pa.scalar(None, text.type))
    copies = gone.column("copies") if "copies" in gone.schema.names else pa.array([1] * len(rows), pa.int32())
    columns = {
        "id": gone.column("id"), "source": gone.column("source"), "url": gone.column("url"),
        "step": pa.array([name] * len(rows), pa.string()), "copies": copies, "text": text,
        **{key: drops.column(key) for key in ("rule", "rules", "value", "threshold", "evidence")},
    }  # fmt: skip
    return pa.RecordBatch.from_arrays([columns[field.name].cast(field.type) for field in DROPPED], schema=DROPPED)


def _sampled(ids: pa.Array, share: float) -> list[bool]:
    """Which rows keep their text: by id, so that the same documents do in every run."""
    return [int(value[-8:], 16) < share * (1 << 32) for value in ids.to_pylist()]


def _quarantined(name: str, batch: pa.RecordBatch, failures: pa.RecordBatch, sizes: Rows) -> pa.RecordBatch:
    rows = failures.column("row")
    gone = batch.select(["id", "source", "url", "source_id"]).take(rows)
    columns = {
        "id": gone.column("id"), "source": gone.column("source"),
        "location": pc.coalesce(gone.column("url"), gone.column("source_id"), gone.column("id")),
        "step": pa.array([name] * len(rows), pa.string()), "error": failures.column("error"),
        "message": failures.column("message"), "bytes": pa.array(sizes[rows.to_numpy()], pa.int64()),
    }  # fmt: skip
    return pa.RecordBatch.from_arrays([columns[field.name] for field in QUARANTINE], schema=QUARANTINE)


def _signals(batch: pa.RecordBatch, signals: pa.RecordBatch | None) -> pa.RecordBatch | None:
    if signals is None:
        return None
    schema = pa.schema([pa.field("id", pa.string()), *signals.schema])
    return pa.RecordBatch.from_arrays([batch.column("id"), *signals.columns], schema=schema)
