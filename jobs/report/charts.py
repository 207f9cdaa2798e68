"""Geometry of the report's charts: plain numbers in, plain numbers out; the SVG stands in charts.html."""

from __future__ import annotations

import math
from typing import Any

from jobs.report.numbers import percent, plain, short, size

Row = dict[str, Any]

FLOW_WIDTH, FLOW_LEFT, FLOW_BAND, GAP, NODE = 520, 108, 200, 9, 7
FLOW_LABEL = FLOW_LEFT + FLOW_BAND + 2 * GAP + 12
ROW_TALL, ROW_LOW = 54, 38
LEAST = 1.2
"""A flow that is there at all is drawn this wide at least."""

WIDTH, HEIGHT, FOOT, TOP_ROOM = 330, 104, 18, 16
STEPS_PER_OCTAVE = 8


def flow(steps: list[Row], what: str) -> Row | None:
    """A Sankey chart from top to bottom, a row a step: what stays goes straight on, what leaves bends to the right.

    what: "rows" or "bytes" (the text's; steps that count raw pages are left out). None where nothing went in.
    """
    told = [step for step in steps if what == "rows" or step["kind"] not in ("read", "extract")]
    if not told or not told[0][what]["in"]:
        return None
    total = max(step[what]["in"] for step in told)
    show = short if what == "rows" else size
    first = told[0][what]["in"]
    nodes = [{"kind": "kept", "x": FLOW_LEFT, "y": 14, "width": _wide(first, total), "title": f"{show(first)} came in"}]
    labels = [{"y": 14, "name": "in", "count": show(first), "notes": [], "rule": ""}]
    bands, y = [], 14
    for step in told:
        counts = step[what]
        leaves = [(outcome, counts[outcome]) for outcome in ("dropped", "quarantined") if counts[outcome]]
        top, y = y + NODE, y + (ROW_TALL if leaves else ROW_LOW)
        x = from_x = FLOW_LEFT + 0.0
        notes = []
        for outcome, count in [("kept", counts["kept"]), *leaves]:
            width = _wide(count, total)
            title = f"{step['step']}: {show(count)} {outcome} ({percent(count, counts['in'])})"
            bands.append({"kind": outcome, "path": _band(from_x, top, x, y, width), "title": title})
            nodes.append({"kind": outcome, "x": x, "y": y, "width": width, "title": title})
            if outcome != "kept":
                notes.append({"kind": outcome, "text": f"{show(count)} {outcome}", "share": percent(count, counts["in"])})
            from_x, x = from_x + width, x + width + GAP
        labels.append({"y": y, "name": step["step"], "count": show(counts["kept"]), "notes": notes, "rule": _rule(step) if leaves else ""})
    return {"width": FLOW_WIDTH, "height": y + 34, "left": FLOW_LEFT, "label": FLOW_LABEL, "node": NODE, "bands": bands, "nodes": nodes, "labels": labels}


def _rule(step: Row) -> str:
    rule = step["top_rule"] or ""
    return rule if len(rule) <= 30 else rule[:29] + "\u2026"


def _wide(count: float, total: float) -> float:
    return round(max(FLOW_BAND * count / total, LEAST), 2) if count else 0.0


def _band(x0: float, y0: float, x1: float, y1: float, width: float) -> str:
    middle = (y0 + y1) / 2
    return (
        f"M{x0:.1f} {y0:.1f}C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
        f"h{width:.1f}C{x1 + width:.1f} {middle:.1f} {x0 + width:.1f} {middle:.1f} {x0 + width:.1f} {y0:.1f}Z"
    )


def histogram(signal: Row) -> Row:
    """Bars of a signal over a linear or a logarithmic axis, split at its thresholds.

    Shares and scores (all within -1..1) and narrow ranges get a linear axis, on which a bar's area counts its rows; counts get a
    logarithmic one, on which all buckets are equally wide. Rows at zero stand in a bar of their own at the left.
    """
    buckets = [(float(edge), int(rows)) for edge, rows in signal["buckets"]]
    zero = sum(rows for edge, rows in buckets if edge == 0)
    others = sorted((edge, rows) for edge, rows in buckets if edge != 0)
    linear = _is_linear(others)
    log = not linear
    room = 26 if zero and (log or not others) else 0
    spans = [(edge, _upper(edge), rows) for edge, rows in others]
    if linear and zero and spans:
        room = 26
    low, high = (_domain(spans, signal["thresholds"], log=log)) if spans else (0.0, 1.0)

    def x(value: float) -> float:
        if log:
            value, start, end = math.log2(max(value, low)), math.log2(low), math.log2(high)
        else:
            start, end = low, high
        return room + (WIDTH - room) * min(max((value - start) / (end - start or 1.0), 0.0), 1.0)

    limits = [(mark["side"], mark["value"]) for mark in signal["thresholds"]]
    heights = [rows / ((x(b) - x(a)) or 1.0) for a, b, rows in spans]
    tallest = max([*heights, zero / 20 if room else 0.0], default=0.0) or 1.0
    bars = []
    if room:
        bars.append(_bar(0, 20, zero / 20 / tallest, _beyond(0.0, limits), f"0: {short(zero)} rows"))
    for (a, b, rows), height in zip(spans, heights, strict=True):
        title = f"{plain(a)} to {plain(b)}: {short(rows)} rows ({percent(rows, signal['rows'])})"
        cuts = [a, *sorted(value for _, value in limits if a < value < b), b]
        bars += [_bar(x(c), x(d) - x(c), height / tallest, _beyond((c + d) / 2, limits), title) for c, d in zip(cuts[:-1], cuts[1:], strict=True)]
    marks = [_mark(mark, x, linear or mark["value"] > 0) for mark in signal["thresholds"]] if spans else []
    return {
        "width": WIDTH, "height": HEIGHT + TOP_ROOM + FOOT, "base": HEIGHT + TOP_ROOM, "bars": bars, "marks": _apart(marks),
        "ticks": ([{"x": 10.0, "label": "0"}] if room else []) + _ticks(low, high, x, room, log=log) if spans else [{"x": 10.0, "label": "0"}],
        "axis": "logarithmic" if log else "linear", "room": room,
    }  # fmt: skip


def _is_linear(buckets: list[tuple[float, int]]) -> bool:
    if not buckets:
        return True
    low, high = buckets[0][0], buckets[-1][0]
    return low < 0 or high <= 1 or high / low <= 8


def _upper(edge: float) -> float:
    """The upper edge of the bucket whose lower edge this is: eight equal steps in each octave."""
    mantissa, exponent = math.frexp(edge)
    return math.ldexp(mantissa + 1 / (2 * STEPS_PER_OCTAVE), exponent)


def _domain(spans: list[tuple[float, float, int]], marks: list[Row], *, log: bool) -> tuple[float, float]:
    """From the lowest to the highest edge, and to thresholds that lie near; a threshold far out would squeeze the bars."""
    low, high = spans[0][0], spans[-1][1]
    if not log:
        low, high = (0.0 if low >= 0 and high <= 1.125 else low), (1.0 if 0.5 < high <= 1.0 else high)
    for mark in marks:
        value = mark["value"]
        near = (low / 16 <= value <= high * 16) if log else (low - 2 * (high - low) <= value <= high + 2 * (high - low))
        if near:
            low, high = min(low, value), max(high, value * 1.02 if value > 0 else value)
    return low, high if high > low else low + 1.0


def _beyond(value: float, limits: list[tuple[str, float]]) -> bool:
    return any(value < limit if side == "min" else value > limit for side, limit in limits)


def _bar(x: float, width: float, share: float, beyond: bool, title: str) -> Row:
    height = max(HEIGHT * share, 0.8 if share else 0.0)
    return {"x": round(x, 2), "y": round(HEIGHT + TOP_ROOM - height, 2), "width": round(max(width - 0.6, 0.5), 2), "height": round(height, 2), "beyond": beyond, "title": title}


def _mark(mark: Row, x: Any, on_axis: bool) -> Row:
    at = x(mark["value"]) if on_axis else 23.0
    sign = "\u2265" if mark["side"] == "min" else "\u2264"
    return {"x": round(at, 2), "label": f"{sign} {plain(mark['value'])}", "title": f"{mark['rule']}: kept at {sign} {plain(mark['value'])}; {short(mark['rows'])} rows fail it", "anchor": "start" if at < WIDTH - 60 else "end"}


def _apart(marks: list[Row]) -> list[Row]:
    """Labels of thresholds that lie close: the second is told by its title only."""
    shown: list[Row] = []
    for mark in sorted(marks, key=lambda mark: mark["x"]):
        crowded = any(abs(mark["x"] - other["x"]) < 48 and other["label"] for other in shown)
        shown.append({**mark, "label": "" if crowded else mark["label"]})
    return shown


def _ticks(low: float, high: float, x: Any, room: float, *, log: bool) -> list[Row]:
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        values = [10.0**power for power in range(first, last + 1)]
        if len(values) < 3:
            values = [factor * 10.0**power for power in range(first - 1, last + 1) for factor in (1, 2, 5)]
        values = [value for value in values if low <= value <= high]
    else:
        step = _round_step((high - low) / 4)
        values = [step * k for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    ticks: list[Row] = []
    for value in values:
        at = round(x(value), 2)
        if (not ticks or at - ticks[-1]["x"] > 34) and not (room and at < room + 6):
            ticks.append({"x": at, "label": plain(round(value, 10)) if abs(value) < 10_000 else short(value)})
    return ticks


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)


def columns(rows: list[Row], key: str, value: str) -> Row:
    """Upright bars for an ordered category (dates, cluster sizes, similarities)."""
    width = min(46.0, 640.0 / max(len(rows), 1))
    tallest = max((row[value] for row in rows), default=0) or 1
    step = max(1, math.ceil(len(rows) * 44 / 640))
    bars = [
        {
            "x": round(width * at, 2), "width": round(width * 0.82, 2), "height": round(max(84 * row[value] / tallest, 1), 2),
            "label": str(row[key]) if at % step == 0 else "", "count": short(row[value]) if width > 26 else "", "title": f"{row[key]}: {short(row[value])}",
        }
        for at, row in enumerate(rows)
    ]  # fmt: skip
    return {"width": max(round(width * len(rows), 1), 60), "height": 124, "base": 104, "bars": bars}
