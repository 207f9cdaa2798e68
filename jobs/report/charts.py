"""Geometry of the flow and column charts: plain numbers in, plain numbers out; the SVG stands in charts.html."""

from __future__ import annotations

import math
from typing import Any

from jobs.report.numbers import percent, short, size

Row = dict[str, Any]

FLOW_WIDTH, FLOW_LEFT, FLOW_BAND, GAP, NODE = 520, 108, 200, 9, 7
FLOW_LABEL = FLOW_LEFT + FLOW_BAND + 2 * GAP + 12
ROW_TALL, ROW_LOW = 54, 38
LEAST = 1.2
"""A flow that is there at all is drawn this wide at least."""


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
                notes.append(
                    {"kind": outcome, "text": f"{show(count)} {outcome}", "share": percent(count, counts["in"])}
                )
            from_x, x = from_x + width, x + width + GAP
        labels.append(
            {
                "y": y,
                "name": step["step"],
                "count": show(counts["kept"]),
                "notes": notes,
                "rule": _rule(step) if leaves else "",
            }
        )
    return {
        "width": FLOW_WIDTH,
        "height": y + 34,
        "left": FLOW_LEFT,
        "label": FLOW_LABEL,
        "node": NODE,
        "bands": bands,
        "nodes": nodes,
        "labels": labels,
    }


def _rule(step: Row) -> str:
    """The top rule, its end where it is long: what the rule is about stands there."""
    rule = step["top_rule"] or ""
    return rule if len(rule) <= 30 else "\u2026" + rule[-29:]


def _wide(count: float, total: float) -> float:
    return round(max(FLOW_BAND * count / total, LEAST), 2) if count else 0.0


def _band(x0: float, y0: float, x1: float, y1: float, width: float) -> str:
    middle = (y0 + y1) / 2
    return (
        f"M{x0:.1f} {y0:.1f}C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
        f"h{width:.1f}C{x1 + width:.1f} {middle:.1f} {x0 + width:.1f} {middle:.1f} {x0 + width:.1f} {y0:.1f}Z"
    )


def columns(rows: list[Row], key: str, value: str) -> Row:
    """Upright bars for an ordered category (dates, cluster sizes, similarities)."""
    width = min(46.0, 640.0 / max(len(rows), 1))
    tallest = max((row[value] for row in rows), default=0) or 1
    step = max(1, math.ceil(len(rows) * 44 / 640))
    bars = [
        {
            "x": round(width * at, 2),
            "width": round(width * 0.82, 2),
            "height": round(max(84 * row[value] / tallest, 1), 2),
            "label": str(row[key]) if at % step == 0 else "",
            "count": short(row[value]) if width > 26 else "",
            "title": f"{row[key]}: {short(row[value])}",
        }
        for at, row in enumerate(rows)
    ]
    return {"width": max(round(width * len(rows), 1), 60), "height": 124, "base": 104, "bars": bars}
