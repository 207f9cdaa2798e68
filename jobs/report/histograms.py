"""Geometry of a signal's histogram: bars, ticks and threshold lines, from buckets of eight an octave.

Small whole numbers get a bar each; large ones a logarithmic axis. Shares and narrow ranges get a linear axis with bins
that are unions or halves of the buckets. Rows at exactly 0, and of shares at exactly 1, stand in bars of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from jobs.report.numbers import percent, plain, short

Row = dict[str, Any]
Span = tuple[float, float, float]

WIDTH, HEIGHT, FOOT, TOP_ROOM = 330, 96, 18, 26
APART = 30
"""Room for a bar that stands apart."""
BAR = 17
STEPS_PER_OCTAVE = 8
SIGNS = {">=": "\u2265", "<=": "\u2264", ">": ">", "<": "<"}
BINS = 32
TINY = 1e-300
"""Below it floats lose digits, and a bucket its width: such values count as 0."""
FEWEST = 7.0
"""Whole numbers that a chart has room for at least, so that one alone is no wall."""
SMALL = 16
"""Below it each whole number has a bucket of its own."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Values to places: from `low` at `left` to `high` at `right`, linear or logarithmic."""

    low: float
    high: float
    left: float
    right: float
    log: bool

    def __call__(self, value: float) -> float:
        value, low, high = max(value, self.low) if self.log else value, self.low, self.high
        if self.log:
            value, low, high = math.log2(value), math.log2(low), math.log2(high)
        share = (value - low) / (high - low or 1.0)
        return self.left + (self.right - self.left) * min(max(share, 0.0), 1.0)


def histogram(signal: Row) -> Row:
    """The chart of one signal: what lies beyond a threshold is marked `beyond`, and split off where it cuts a bar."""
    counts: dict[float, int] = {}
    for edge, rows in signal["buckets"]:
        value = float(edge) if abs(edge) > TINY else 0.0
        counts[value] = counts.get(value, 0) + int(rows)
    whole = all(edge == int(edge) for edge in counts)
    small = whole and max(counts, default=0.0) < SMALL and min(counts, default=0.0) >= 0
    others = {edge: rows for edge, rows in counts.items() if edge != 0 or small}
    log = (
        not small
        and bool(others)
        and min(others) > 0
        and max(others) > 1
        and (whole or max(others) > SMALL * min(others))
    )
    zero = 0 if small else counts.get(0.0, 0)
    one = others.pop(1.0, 0) if not whole and max(others, default=0.0) == 1.0 else 0
    half = 0.5 if whole else 0.0
    marks = [{**mark, "at": mark["value"] + _beside(mark, half)} for mark in signal["thresholds"]]
    spans = _spans(others, whole=whole, log=log, small=small)
    low, high = _range(spans, [mark["at"] for mark in marks], log=log, share=bool(one))
    high = max(high, low + FEWEST) if small else high
    axis = Axis(low=low, high=high, left=APART if zero else 0, right=WIDTH - (APART if one else 0), log=log)
    limits = [(mark["side"], mark["at"]) for mark in marks]
    return {
        "width": WIDTH,
        "height": HEIGHT + TOP_ROOM + FOOT,
        "base": HEIGHT + TOP_ROOM,
        "left": axis.left,
        "right": axis.right,
        "axis": "logarithmic" if log else "linear",
        "bars": _bars(spans, axis, limits, signal["rows"], zero=zero, one=one),
        "ticks": _ticks(axis, zero=bool(zero), one=bool(one), small=small, empty=not spans),
        "marks": _marks(marks, axis, zero=bool(zero)),
    }


def _spans(counts: dict[float, int], *, whole: bool, log: bool, small: bool) -> list[Span]:
    """Intervals with their rows. A whole number stands in the middle of its interval, so that its bar is as wide as
    it counts."""
    buckets = [(edge, _upper(edge), float(rows)) for edge, rows in sorted(counts.items())]
    if small:
        return [(edge - 0.5, edge + 0.5, rows) for edge, _, rows in buckets]
    if whole and log:
        return [(a - 0.5, (a + 0.5) if a < SMALL else b - 0.5, rows) for a, b, rows in buckets]
    return buckets if log else _binned(buckets)


def _upper(edge: float) -> float:
    """The upper edge of the bucket whose lower edge this is: eight equal steps in each octave."""
    mantissa, exponent = math.frexp(edge)
    return math.ldexp(mantissa + 1 / (2 * STEPS_PER_OCTAVE), exponent)


def _binned(buckets: list[Span]) -> list[Span]:
    """The buckets in equal bins, a 32nd of the power of two above all of them wide: bins cut no bucket but in
    halves."""
    if not buckets:
        return []
    top = max(abs(buckets[0][0]), abs(buckets[-1][1]))
    size = 2.0 ** math.ceil(math.log2(top)) / BINS
    bins: dict[int, float] = {}
    for a, b, rows in buckets:
        first, last = math.floor(a / size), math.ceil(b / size)
        for number in range(first, max(last, first + 1)):
            overlap = min(b, (number + 1) * size) - max(a, number * size)
            bins[number] = bins.get(number, 0.0) + rows * overlap / (b - a)
    return [(number * size, (number + 1) * size, rows) for number, rows in sorted(bins.items())]


def _range(spans: list[Span], marks: list[float], *, log: bool, share: bool) -> tuple[float, float]:
    """From the lowest to the highest value, and to thresholds that lie near: one far out would squeeze the bars."""
    if not spans:
        return (0.0, 1.0)
    low, high = spans[0][0], 1.0 if share else spans[-1][1]
    if not log and 0 < low < high / 2:
        low = 0.0
    for at in marks:
        near = low / SMALL <= at <= high * SMALL if log else low - (high - low) <= at <= high + (high - low)
        if near and at > (0 if log else -math.inf):
            low, high = min(low, at), max(high, at)
    return low, high if high > low else low + 1.0


def _bars(
    spans: list[Span], axis: Axis, limits: list[tuple[str, float]], total: int, *, zero: int, one: int
) -> list[Row]:
    heights = [rows / ((axis(b) - axis(a)) or 1.0) for a, b, rows in spans]
    # A bar apart is as high as its rows are in bars as wide as the others; where it would dwarf them it is broken off.
    typical = max((axis(b) - axis(a) for a, b, _ in spans), default=BAR)
    tallest = max(heights, default=0.0) or max(zero, one) / typical or 1.0
    bars = []
    for count, value, x in ((zero, 0.0, 0.0), (one, 1.0, WIDTH - BAR)):
        if count:
            share = count / typical / tallest
            title = f"{plain(value)}: {short(count)} rows ({percent(count, total)})"
            bar = _bar(x, BAR, min(share, 1.0), _beyond(value, limits), title)
            bars.append({**bar, "note": percent(count, total), "broken": share > 1.0})
    for (a, b, rows), height in zip(spans, heights, strict=True):
        title = f"{plain(a)} to {plain(b)}: {short(round(rows))} rows ({percent(rows, total)})"
        cuts = [a, *sorted(at for _, at in limits if a < at < b), b]
        for c, d in zip(cuts[:-1], cuts[1:], strict=True):
            bars.append(_bar(axis(c), axis(d) - axis(c) - 0.5, height / tallest, _beyond((c + d) / 2, limits), title))
    return bars


def _bar(x: float, width: float, share: float, beyond: bool, title: str) -> Row:
    height = max(HEIGHT * share, 0.8)
    return {
        "x": round(x, 2),
        "y": round(HEIGHT + TOP_ROOM - height, 2),
        "width": round(max(width, 0.5), 2),
        "height": round(height, 2),
        "beyond": beyond,
        "title": title,
        "note": "",
        "broken": False,
    }


def _beside(mark: Row, half: float) -> float:
    """Where among whole numbers the line stands: on the far side of the threshold itself where that is kept."""
    outward = half if mark["side"] == "max" else -half
    return outward if mark["sign"].endswith("=") else -outward


def _beyond(value: float, limits: list[tuple[str, float]]) -> bool:
    return any(value < limit if side == "min" else value > limit for side, limit in limits)


def _marks(marks: list[Row], axis: Axis, *, zero: bool) -> list[Row]:
    """A dashed line a threshold. Where two lie close, the label of the second is left to its title."""
    shown: list[Row] = []
    for mark in sorted(marks, key=lambda mark: mark["at"]):
        before = (axis.log and mark["at"] <= 0) or (zero and mark["value"] == 0)
        at = APART - 7.0 if before and zero else axis(mark["at"])
        label = f"{SIGNS[mark['sign']]} {plain(mark['value'])}"
        crowded = any(abs(at - other["x"]) < 50 and other["label"] for other in shown)
        shown.append(
            {
                "x": round(at, 2),
                "label": "" if crowded else label,
                "anchor": "start" if at < WIDTH - 70 else "end",
                "title": f"{mark['rule']}: kept at {label}; {short(mark['rows'])} rows fail it",
            }
        )
    return shown


def _ticks(axis: Axis, *, zero: bool, one: bool, small: bool, empty: bool) -> list[Row]:
    ticks: list[Row] = [{"x": BAR / 2, "label": "0"}] if zero else []
    if not empty:
        values = _round_values(axis, small=small)
        wanted = [(round(axis(value), 2), value) for value in values]
        for at, value in wanted:
            clear = at > axis.left + (8 if zero else -1) and not (one and at > axis.right - 12)
            if clear and (not ticks or at - ticks[-1]["x"] > 30):
                ticks.append({"x": at, "label": plain(round(value, 10)) if abs(value) < 10_000 else short(value)})
    return [*ticks, {"x": WIDTH - BAR / 2, "label": "1"}] if one else ticks


def _round_values(axis: Axis, *, small: bool) -> list[float]:
    if small:
        return [float(value) for value in range(math.ceil(axis.low), math.floor(axis.high) + 1)]
    if axis.log:
        powers = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
        many = math.log10(axis.high / axis.low) > 2.2
        values: list[float] = [factor * 10.0**power for power in powers for factor in ((1,) if many else (1, 2, 5))]
    else:
        rough = (axis.high - axis.low) / 4
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
        values = [step * k for k in range(math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9) + 1)]
    return [value for value in values if axis.low <= value <= axis.high]
