"""Geometry of the mixture's charts: response curves with bands, predicted against measured, the design's mixtures.

Plain numbers in, plain numbers out; the SVG stands in mixing.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.report.numbers import percent

Row = dict[str, Any]

MOST_CHARTS = 12
"""Small charts of one kind on the page; report.json, or mix.json, has them all."""
CURVE_WIDTH, CURVE_HEIGHT = 220, 132
SCATTER = 200
LEFT, RIGHT, TOP, BASE = 44, 8, 8, 22
AXIS_GAP, AXIS_GAP_MANY, DESIGN_HEIGHT, DESIGN_TOP = 92, 46, 164, 14
MANY_AXES = 10
"""From here on axes stand closer, and their names are slanted."""
MOST_AXES = 24
BAND_ROOM = 1.5
"""How far the axis of the response curves goes for the sake of bands, in spans of the curves themselves."""
TRIANGLE, TRIANGLE_LEFT, TRIANGLE_TOP = 300, 70, 26
SHADES = 5
"""Classes of lines in report.css, from the best fifth of the runs to the worst."""


def response(curve: Mapping[str, Any], weight: float, low: float, high: float) -> Row | None:
    """The objective over one domain's weight, with its band; low, high: the axis, the same for all domains."""
    at, band, allowed = curve["weight"], curve["objective"], curve["allowed"]
    if len(at) < 2 or at[-1] <= at[0] or high <= low:
        return None

    def x(value: float) -> float:
        return float(round(LEFT + (CURVE_WIDTH - LEFT - RIGHT) * (value - at[0]) / (at[-1] - at[0]), 1))

    def y(value: float) -> float:
        inside = min(max(value, low), high)
        return round(TOP + (CURVE_HEIGHT - TOP - BASE) * (high - inside) / (high - low), 1)

    def path(points: Sequence[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{x(one)} {y(other)}" for one, other in points) if points else ""

    rows = [row for row in zip(at, band["low"], band["value"], band["high"], allowed, strict=True) if None not in row]
    if not rows:
        return None
    around = [(one, down) for one, down, _, _, _ in rows] + [(one, up) for one, _, _, up, _ in reversed(rows)]
    kept = [at for at, row in enumerate(rows) if row[4]]
    first, last = (kept[0], kept[-1]) if kept else (len(rows) - 1, len(rows) - 1)
    middle = [(one, value) for one, _, value, _, _ in rows]
    return {
        "width": CURVE_WIDTH, "height": CURVE_HEIGHT, "left": LEFT, "right": CURVE_WIDTH - RIGHT,
        "base": CURVE_HEIGHT - BASE, "top": TOP, "optimum": x(weight), "band": path(around) + "Z",
        "path": path(middle[first : last + 1]),
        "beyond": [path(part) for part in (middle[: first + 1], middle[last:]) if len(part) > 1],
        "x_ticks": [{"x": x(value), "label": percent(value, 1)} for value in (at[0], at[-1])],
        "y_ticks": [{"y": y(value), "label": label} for value, label in zip((low, high), ends(low, high), strict=True)],
    }  # fmt: skip


def span(curves: Mapping[str, Mapping[str, Any]]) -> tuple[float, float]:
    """The axis that all response curves share: all predicted values, and bands as far as there is room."""
    bands = [curve["objective"] for curve in curves.values()]
    values, lows, highs = (
        [value for band in bands for value in band[side] if value is not None] for side in ("value", "low", "high")
    )
    if not values:
        return 0.0, 0.0
    least, most = min(values), max(values)
    room = BAND_ROOM * (most - least) or abs(least) * 0.01 or 0.01
    edge = 0.1 * room
    return max(min(lows, default=least), least - room) - edge, min(max(highs, default=most), most + room) + edge


def ends(low: float, high: float) -> tuple[str, str]:
    """The labels of both ends of an axis, with as many digits as tell them apart."""
    for digits in range(3, 8):
        told = f"{low:.{digits}g}", f"{high:.{digits}g}"
        if abs(float(told[0]) - low) + abs(float(told[1]) - high) < 0.1 * (high - low):
            break
    return told


def scatter(rows: Sequence[Mapping[str, Any]]) -> Row | None:
    """Predicted (without the run) over measured, with the line on which both are the same."""
    told = [row for row in rows if row.get("measured") is not None and row.get("predicted") is not None]
    if not told:
        return None
    pairs = [(row["measured"], row["predicted"]) for row in told]
    low, high = min(map(min, pairs)), max(map(max, pairs))
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)

    def place(value: float, start: float, end: float) -> float:
        return float(round(start + (end - start) * (value - low) / (high - low), 1))

    left, right, top, base = LEFT, SCATTER - RIGHT, TOP, SCATTER - BASE
    return {
        "width": SCATTER, "height": SCATTER, "left": left, "right": right, "top": top, "base": base,
        "dots": [
            {
                "x": place(one, left, right), "y": place(other, base, top),
                "title": f"{row.get('run')}: measured {one:.4f}, predicted {other:.4f}",
            }
            for row, (one, other) in zip(told, pairs, strict=True)
        ],
        "ticks": ends(low, high),
    }  # fmt: skip


def parallel(design: Sequence[Mapping[str, Any]], optimum: Mapping[str, float]) -> Row | None:
    """A line a run over an axis a domain, from 0 to the largest share there; the optimum on top.

    Axes go by the optimum's shares, at most MOST_AXES of them.
    """
    names = _by_share(optimum)[:MOST_AXES]
    runs = _shaded(design)
    if len(names) < 2 or not runs:
        return None
    most = {name: max([row["weights"][name] for row in design] + [optimum[name], 1e-9]) for name in names}
    slanted = len(names) > MANY_AXES
    gap, left, foot = AXIS_GAP_MANY if slanted else AXIS_GAP, 72 if slanted else 60, 90 if slanted else 32

    def line(weights: Mapping[str, float]) -> str:
        heights = (DESIGN_TOP + (DESIGN_HEIGHT - DESIGN_TOP) * (1 - weights[name] / most[name]) for name in names)
        return "M" + "L".join(f"{left + gap * at} {height:.1f}" for at, height in enumerate(heights))

    return {
        "width": left + 60 + gap * (len(names) - 1), "height": DESIGN_HEIGHT + foot,
        "top": DESIGN_TOP, "base": DESIGN_HEIGHT, "slanted": slanted, "more": len(optimum) - len(names),
        "axes": [
            {"x": left + gap * at, "name": name, "most": percent(most[name], 1)} for at, name in enumerate(names)
        ],
        "lines": [{**told, "path": line(row["weights"])} for row, told in runs],
        "optimum": line(optimum),
    }  # fmt: skip


def ternary(design: Sequence[Mapping[str, Any]], optimum: Mapping[str, float]) -> Row | None:
    """A dot a run in the triangle of three domains, each at its corner; None for other numbers of domains."""
    names = _by_share(optimum)
    runs = _shaded(design)
    if len(names) != 3 or not runs:
        return None
    height = TRIANGLE * 3**0.5 / 2
    left, base = TRIANGLE_LEFT, TRIANGLE_TOP + height

    def place(weights: Mapping[str, float]) -> dict[str, float]:
        up, _, right = (weights[name] for name in names)
        return {"x": round(left + TRIANGLE * (right + up / 2), 1), "y": round(base - height * up, 1)}

    corners = [place({other: float(other == name) for other in names}) for name in names]
    return {
        "width": TRIANGLE + 2 * left, "height": round(base + 26),
        "outline": "M" + "L".join(f"{one['x']} {one['y']}" for one in corners) + "Z",
        "grid": [
            "M{x} {y}".format(**place({one: step, other: 1 - step, third: 0.0}))
            + "L{x} {y}".format(**place({one: step, other: 0.0, third: 1 - step}))
            for one, other, third in (names, names[1:] + names[:1], names[2:] + names[:2])
            for step in (0.25, 0.5, 0.75)
        ],
        "corners": [{**one, "name": name} for one, name in zip(corners, names, strict=True)],
        "dots": [{**told, **place(row["weights"])} for row, told in runs],
        "optimum": place(optimum),
    }  # fmt: skip


def _by_share(optimum: Mapping[str, float]) -> list[str]:
    return sorted(optimum, key=lambda name: (-optimum[name], name))


def _shaded(design: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Row]]:
    """The runs with a measured objective, the worst first, each with its shade and title."""
    told = sorted((row for row in design if row.get("objective") is not None), key=lambda row: -float(row["objective"]))
    return [
        (row, {"shade": SHADES - 1 - at * SHADES // len(told), "title": f"{row['run']}: {row['objective']:.4f}"})
        for at, row in enumerate(told)
    ]
