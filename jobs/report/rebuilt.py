"""A step as it ran, rebuilt from its manifest: to judge stored signals again, with its own thresholds or others."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from jobs.report.database import Row
from jobs.steps import STEPS
from shards.step import Check

NEUTRAL = 1_000_000
"""A number that every signal may have: far above any "min", so that one signal can be tried while others pass."""


def rebuild(kind: str, settings: Row) -> Any:
    """The step object of a kind with the settings of a manifest. Raises ValueError, ImportError or UserError."""
    from pydantic import TypeAdapter

    values = {key: value for key, value in settings.items() if key != "domains"}
    return TypeAdapter(STEPS[kind].load()).validate_json(json.dumps(values), strict=True)


def judges_signals(step: Any) -> bool:
    """Whether the step can decide on stored signals, with no text at hand."""
    return hasattr(step, "checks") and hasattr(step, "signals")


def as_measured(step: Any, rows: pa.Table) -> pa.RecordBatch:
    """Stored signals as the step measured them: its columns with their types, in its order."""
    columns = [rows.column(field.name).combine_chunks().cast(field.type) for field in step.signals]
    return pa.RecordBatch.from_arrays(columns, schema=step.signals)


def signal_of(step: Any, check: Check) -> str | None:
    """Which signal a rule compares with its threshold: the one that its value follows when each is set to another
    number."""
    numeric = numeric_signals(step)
    told: dict[str, float] = {name: NEUTRAL + 8 * number for number, name in enumerate(numeric)}
    found = next((one for one in step.checks(_row(step, told)) if one.rule == check.rule), None)
    if found is None or found.value is None:
        return None
    return next((name for name, value in told.items() if float(found.value[0]) == value), None)


def side_of(step: Any, check: Check, signal: str, threshold: float) -> tuple[str, bool] | None:
    """Which side of its threshold fails a rule, and whether the threshold itself passes; None where no side fails
    alone.

    ("min", True): rows below fail; ("max", False): rows at the threshold and above fail.
    """
    whole = pa.types.is_integer(step.signals.field(signal).type)
    away = 1.0 if whole else max(abs(threshold), 1e-6) * 1e-6
    below, at, above = (_fails(step, check, signal, value) for value in (threshold - away, threshold, threshold + away))
    if below == above:
        return None
    return ("min" if below else "max", not at)


def _fails(step: Any, check: Check, signal: str, value: float) -> bool:
    found = next(one for one in step.checks(_row(step, {signal: value})) if one.rule == check.rule)
    return bool(found.failed[0])


def numeric_signals(step: Any) -> list[str]:
    return [f.name for f in step.signals if pa.types.is_floating(f.type) or pa.types.is_integer(f.type)]


def one_row(step: Any) -> list[Check]:
    """The rules of a step, each applied to one neutral row."""
    return list(step.checks(_row(step, {})))


def _row(step: Any, told: dict[str, float]) -> pa.RecordBatch:
    """One row of signals: the given numbers, NEUTRAL for other numbers, a word for text, false for flags."""
    columns = []
    for field in step.signals:
        if pa.types.is_boolean(field.type):
            columns.append(pa.array([False]))
        elif pa.types.is_integer(field.type):
            columns.append(pa.array([round(told.get(field.name, NEUTRAL))], field.type))
        elif pa.types.is_floating(field.type):
            columns.append(pa.array(np.array([told.get(field.name, NEUTRAL)]), field.type))
        else:
            columns.append(pa.array(["-"], field.type))
    return pa.RecordBatch.from_arrays(columns, schema=step.signals)
