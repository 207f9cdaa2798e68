"""Which rule of a step reads which signal, and on which side of its threshold a document is dropped.

The step itself is asked (its `checks` on made signals); where it cannot be rebuilt here, its drops tell: a rule reads
the signal whose value they carry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jobs.errors import UserError
from jobs.report import rebuilt
from jobs.report.database import Output, Row, name

SAMPLE = 1000


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """A rule on one signal: rows below (side "min") or above (side "max") the value are dropped.

    inclusive: whether a row at the value itself stays.
    """

    rule: str
    signal: str
    side: str
    value: float
    inclusive: bool = True

    def passes(self, measured: float) -> bool:
        if measured == self.value:
            return self.inclusive
        return measured > self.value if self.side == "min" else measured < self.value

    @property
    def sign(self) -> str:
        """What a kept row's value is to the threshold."""
        return {"min": ">", "max": "<"}[self.side] + ("=" if self.inclusive else "")


def of_step(found: Output, step: Row) -> list[Threshold]:
    """The thresholds of a step on its stored signals, in the order of its rules; [] for a step that measures
    nothing."""
    if found.signal_view(step["step"]) is None:
        return []
    try:
        made = rebuilt.rebuild(step["kind"], found.manifests[step["step"]].get("settings", {}))
        stored = found.columns(f"signals_{step['step']}")
        if rebuilt.judges_signals(made) and set(made.signals.names) <= set(stored):
            return declared(made)
    except (ValueError, ImportError, UserError, OSError, KeyError):
        pass  # settings or lists of another installation: what was dropped still tells
    return _observed(found, step)


def declared(step: Any) -> list[Threshold]:
    """What a step says of itself."""
    told = []
    for check in rebuilt.one_row(step):
        if check.value is None or check.threshold is None:
            continue
        signal = rebuilt.signal_of(step, check)
        threshold = float(np.asarray(check.threshold).reshape(-1)[0])
        side = rebuilt.side_of(step, check, signal, threshold) if signal else None
        if signal and side:
            told.append(Threshold(rule=check.rule, signal=signal, side=side[0], value=threshold, inclusive=side[1]))
    return told


def _observed(found: Output, step: Row) -> list[Threshold]:
    """What the drops tell: value and threshold of a rule, matched with the signals of the same rows."""
    signals = sorted(found.manifests[step["step"]].get("histograms", {}))
    rules = found.rows(
        "SELECT rule, min(threshold) AS threshold, any_value(value) AS value, min_by(id, md5(id), ?) AS ids FROM "
        "dropped "
        "WHERE step = ? AND value IS NOT NULL AND threshold IS NOT NULL GROUP BY rule HAVING min(threshold) = "
        "max(threshold) ORDER BY rule",
        SAMPLE, step["step"],
    )  # fmt: skip
    told = []
    for row in rules:
        signal = _signal(found, step["step"], row["rule"], row["ids"], signals)
        if signal is not None:
            side = "min" if row["value"] < row["threshold"] else "max"
            told.append(Threshold(rule=row["rule"], signal=signal, side=side, value=row["threshold"]))
    return told


def _signal(found: Output, step: str, rule: str, ids: list[str], signals: list[str]) -> str | None:
    """The one signal that equals the value of the rule's drops in every row of the sample."""
    if not signals:
        return None
    equal = ", ".join(f"bool_and(s.{name(signal)}::DOUBLE = d.value) AS {name(signal)}" for signal in signals)
    matched: dict[str, Any] = found.row(
        f"SELECT {equal} FROM dropped d JOIN {name(f'signals_{step}')} s ON s.id = d.id "
        "WHERE d.step = ? AND d.rule = ? AND d.id IN (SELECT unnest(?))",
        step, rule, ids,
    )  # fmt: skip
    return next((signal for signal in signals if matched[signal]), None)
