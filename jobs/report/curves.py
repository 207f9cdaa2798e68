"""Geometry of line charts: series of points in, paths and ticks out; the SVG stands in charts.html."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jobs.report.numbers import short

Row = dict[str, Any]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BASE = 620, 230, 46, 610, 10, 200
MOST_POINTS = 600
SERIES = 8
"""Kinds of strokes in report.css; further series begin again."""


def curves(series: Sequence[Row], y_label: str = "") -> Row | None:
    """Lines over one pair of axes. series: {"name", "points": [(x, y), ...]} with x ascending.

    Points that are no numbers are left out, and long series are thinned to MOST_POINTS, the extremes of each stretch
    kept. None where there is no point.
    """
    told = [{"name": one["name"], "points": _thinned(_finite(one["points"]))} for one in series]
    told = [one for one in told if one["points"]]
    if not told:
        return None
    low_x, high_x = _span([point[0] for one in told for point in one["points"]])
    low_y, high_y = _span([point[1] for one in told for point in one["points"]])
    x_ticks, y_ticks = _ticks(low_x, high_x, 6), _ticks(low_y, high_y, 5)
    low_y, high_y = min(low_y, y_ticks[0]), max(high_y, y_ticks[-1])

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (RIGHT - LEFT) * (x - low_x) / (high_x - low_x),
            BASE - (BASE - TOP) * (y - low_y) / (high_y - low_y),
        )

    return {
        "width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "top": TOP, "base": BASE, "y_label": y_label,
        "x_ticks": [
            {"x": round(place(at, low_y)[0], 1), "label": short(at)} for at in x_ticks if low_x <= at <= high_x
        ],
        "y_ticks": [{"y": round(place(low_x, at)[1], 1), "label": _label(at, y_ticks)} for at in y_ticks],
        "series": [
            {
                "name": one["name"],
                "stroke": at % SERIES,
                "path": "M" + "L".join("{:.1f} {:.1f}".format(*place(x, y)) for x, y in one["points"]),
                "dots": [dict(zip(("x", "y"), place(x, y), strict=True)) for x, y in one["points"]]
                if len(one["points"]) <= 12 else [],
                "title": f"{one['name']}: {one['points'][0][1]:.3f} to {one['points'][-1][1]:.3f}",
            }
            for at, one in enumerate(told)
        ],
    }  # fmt: skip


def _finite(points: Sequence[Sequence[Any]]) -> list[tuple[float, float]]:
    pairs = ((x, y) for x, y in points if isinstance(x, int | float) and isinstance(y, int | float))
    return [(float(x), float(y)) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The lowest and the highest point of each of MOST_POINTS / 2 stretches, so that no spike is lost."""
    if len(points) <= MOST_POINTS:
        return points
    size = -(-len(points) // (MOST_POINTS // 2))
    kept: list[tuple[float, float]] = []
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        kept += sorted({min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])})
    return kept


def _span(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers that span low to high: steps of 1, 2 or 5 times a power of ten."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(at * step, 12) for at in range(first, last + 1)]


def _label(value: float, ticks: list[float]) -> str:
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    return f"{value:.{max(0, min(6, -math.floor(math.log10(step))))}f}"
