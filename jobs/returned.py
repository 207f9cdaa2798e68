"""Is what a step returned what a step returns? Asked of every batch, so it compares schemas and counts, not texts.

A wrong shape is the step's fault, not a document's: it fails the shard in the step's name, and quarantines nobody.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shards.schema import is_transient
from shards.step import DROPS, FAILURES, Judged

if TYPE_CHECKING:
    from jobs.plan import StepPlan

MADE_ELSEWHERE = ("python", "datatrove")
"""Kinds whose code is not ours: their answers are checked byte by byte too, which costs far less than they do."""
TAKEN = ("id", "step")
"""Columns that the tables of signals have already."""
_FAMILIES = (
    (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    (pa.types.is_integer,),
    (pa.types.is_floating,),
    (pa.types.is_timestamp,),
    (pa.types.is_list, pa.types.is_large_list),
)


class WrongReturnError(TypeError):
    """A step returned what no step may: `NAME: the step returned ...`, in one line without any text of a document."""


def checked(plan: StepPlan, batch: pa.RecordBatch, judged: Any) -> Judged:
    """The judgement of `batch` as the rest of the run may take it: its columns have the types that were declared.

    Raises WrongReturnError.
    """

    def wrong(what: str) -> WrongReturnError:
        return WrongReturnError(f"{plan.name}: the step returned {what}")

    if not isinstance(judged, Judged):
        raise wrong(f"{type(judged).__name__}, where a step returns shards.step.Judged")
    for part in ("kept", "drops", "failures", "signals"):
        table = getattr(judged, part)
        if not isinstance(table, pa.RecordBatch) and not (part == "signals" and table is None):
            raise wrong(f"{type(table).__name__} as {part}, where a RecordBatch belongs")
        twice = _twice(table.schema.names) if table is not None else None
        if twice:
            raise wrong(f"two columns {twice!r} in {part}")
        if table is not None and plan.kind in MADE_ELSEWHERE:
            try:
                table.validate(full=True)
            except pa.ArrowInvalid as error:
                raise wrong(f"{part} that are no valid Arrow data ({str(error).splitlines()[0][:200]})") from None
    said = _rows(batch, judged) or _kept(plan, batch, judged) or _signals(judged)
    if said:
        raise wrong(said)
    try:
        return replace(
            judged,
            kept=_typed(plan, judged.kept),
            kept_rows=judged.kept_rows.astype(np.int32, copy=False),
            drops=_as(judged.drops, DROPS),
            failures=_as(judged.failures, FAILURES),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise wrong(f"a value that does not fit its column's type ({_words(error)})") from None


def _rows(batch: pa.RecordBatch, judged: Judged) -> str | None:
    """What is wrong with the rows: each of the input's is kept, dropped or failed once, the kept ones in order."""
    rows: Any = judged.kept_rows
    if not isinstance(rows, np.ndarray) or rows.ndim != 1 or not (rows.dtype.kind in "iu" or len(rows) == 0):
        return "kept_rows that are no array of whole numbers"
    if len(rows) != judged.kept.num_rows:
        return f"{judged.kept.num_rows} kept rows and {len(rows)} kept_rows"
    for part, schema in (("drops", DROPS), ("failures", FAILURES)):
        table = getattr(judged, part)
        lacking = [name for name in schema.names if name not in table.schema.names]
        if lacking:
            return f"{part} without the column {lacking[0]!r}"
        for name in ("row", "rule" if part == "drops" else "error"):
            if table.column(name).null_count:
                return f"{part} with nothing in {name!r}"
        if not pa.types.is_integer(table.column("row").type):
            return f"{part} whose 'row' is {table.column('row').type}, where a whole number belongs"
    told = np.concatenate([rows, *(getattr(judged, part).column("row").to_numpy() for part in ("drops", "failures"))])
    if len(told) != batch.num_rows or not np.array_equal(np.sort(told), np.arange(batch.num_rows)):
        return f"{len(told)} outcomes for {batch.num_rows} rows; each row is kept, dropped or failed once"
    if np.any(np.diff(rows.astype(np.int64)) < 0):
        return "kept rows that are not in the order of the input"
    return None


def _kept(plan: StepPlan, batch: pa.RecordBatch, judged: Judged) -> str | None:
    """What is wrong with the kept columns: those of the input and those that the step adds, no others."""
    names = judged.kept.schema.names
    wanted = [name for name in batch.schema.names if not is_transient(name)]
    declared = list(plan.step.adds.names)
    for name in (*wanted, *declared):
        if name not in names:
            return f"kept rows without the column {name!r}" + (", which it adds" if name in declared else "")
    for name in names:
        if is_transient(name):
            continue
        if name not in wanted and name not in declared:
            return f"a column {name!r} that its `adds` does not declare"
        have, want = judged.kept.schema.field(name).type, _type(plan, batch, name)
        if have != want and not _akin(have, want):
            return f"the column {name!r} as {have}, where {want} belongs"
    before = {name: batch.column(name) for name in ("id", "text")}
    if judged.kept.num_rows < batch.num_rows:
        before = {name: column.take(pa.array(judged.kept_rows)) for name, column in before.items()}
    text = judged.kept.column("text")
    if text.null_count > 0 and pc.any(pc.and_(pc.is_null(text), pc.is_valid(before["text"]))).as_py():
        return "no text where there was text; drop such a row, or give it an empty text"
    if not judged.kept.column("id").cast(pa.string()).equals(before["id"].cast(pa.string())):
        return "kept rows whose `id` is not that of their kept_rows"
    return None


def _signals(judged: Judged) -> str | None:
    signals = judged.signals
    if signals is None:
        return None
    rows = judged.kept.num_rows + judged.drops.num_rows + judged.failures.num_rows
    if signals.num_rows != rows:
        return f"{signals.num_rows} rows of signals for {rows} documents"
    taken = next((name for name in signals.schema.names if name in TAKEN or is_transient(name)), None)
    return f"a signal named {taken!r}, a name that is taken; choose another" if taken else None


def _type(plan: StepPlan, batch: pa.RecordBatch, name: str) -> pa.DataType:
    """The type that a column is declared with; the one that it came with where nobody declares it."""
    return (plan.schema if name in plan.schema.names else batch.schema).field(name).type


def _akin(have: pa.DataType, want: pa.DataType) -> bool:
    return any(any(is_a(have) for is_a in family) and any(is_a(want) for is_a in family) for family in _FAMILIES)


def _typed(plan: StepPlan, kept: pa.RecordBatch) -> pa.RecordBatch:
    """The kept rows with their columns' declared types."""
    fields = [
        pa.field(field.name, plan.schema.field(field.name).type) if field.name in plan.schema.names else field
        for field in kept.schema
    ]
    same = all(field.type == own.type for field, own in zip(fields, kept.schema, strict=True))
    return kept if same else kept.cast(pa.schema(fields))


def _as(table: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return table if table.schema.equals(schema) else table.select(schema.names).cast(schema)


def _twice(names: list[str]) -> str | None:
    return next((name for at, name in enumerate(names) if name in names[:at]), None)


def _words(error: Exception) -> str:
    """Arrow's words up to a value, which could be a document's."""
    return str(error).splitlines()[0].partition(":")[0][:100]
