"""Geometry of the mixture's charts: response curves with bands, predicted against measured, the design's mixtures.

Plain numbers in, plain numbers out; the SVG stands in mixing.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = dict[str, Any]

CURVE_WIDTH, CURVE_HEIGHT = 220, 132
SCATTER = 200
LEFT, RIGHT, TOP, BASE = 44, 8, 8, 22
AXIS_GAP, DESIGN_HEIGHT, DESIGN_TOP = 92, 210, 14
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
    kept = [row[4] for row in rows]
    first = kept.index(True) if True in kept else 0
    last = len(kept) - 1 - kept[::-1].index(True) if True in kept else len(kept) - 1
    middle = [(one, value) for one, _, value, _, _ in rows]
    return {
        "width": CURVE_WIDTH, "height": CURVE_HEIGHT, "left": LEFT, "right": CURVE_WIDTH - RIGHT,
        "base": CURVE_HEIGHT - BASE, "top": TOP, "optimum": x(weight), "band": path(around) + "Z",
        "path": path(middle[first : last + 1]), "beyond": [path(middle[: first + 1]), path(middle[last:])],
        "x_ticks": [{"x": x(value), "label": f"{value:.2f}"} for value in (at[0], at[-1])],
        "y_ticks": [{"y": y(value), "label": f"{value:.3g}"} for value in (low, high)],
    }  # fmt: skip


def span(curves: Mapping[str, Mapping[str, Any]]) -> tuple[float, float]:
    """The axis that all response curves share: least to largest predicted value, bands as far as there is room."""
    values = [value for curve in curves.values() for value in curve["objective"]["value"] if value is not None]
    if not values:
        return 0.0, 0.0
    room = (max(values) - min(values)) * 0.35 or abs(values[0]) * 0.01 or 0.01
    return min(values) - room, max(values) + room


def scatter(rows: Sequence[Mapping[str, Any]]) -> Row | None:
    """Predicted (without the run) over measured, with the line on which both are the same."""
    pairs = [(row["measured"], row["predicted"]) for row in rows]
    pairs = [(one, other) for one, other in pairs if one is not None and other is not None]
    if not pairs:
        return None
    low, high = min(map(min, pairs)), max(map(max, pairs))
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)

    def place(value: float, start: float, end: float) -> float:
        return float(round(start + (end - start) * (value - low) / (high - low), 1))

    left, right, top, base = LEFT, SCATTER - RIGHT, TOP, SCATTER - BASE
    return {
        "width": SCATTER, "height": SCATTER, "left": left, "right": right, "top": top, "base": base,
        "dots": [{"x": place(one, left, right), "y": place(other, base, top)} for one, other in pairs],
        "ticks": [{"at": value, "label": f"{value:.3g}"} for value in (low, high)],
    }  # fmt: skip


def parallel(design: Sequence[Mapping[str, Any]], optimum: Mapping[str, float]) -> Row | None:
    """A line a run over an axis a domain, coloured by how good its objective is; the optimum on top."""
    names = list(optimum)
    if len(names) < 2 or not design:
        return None
    most = {name: max([row["weights"][name] for row in design] + [optimum[name], 1e-9]) for name in names}

    def line(weights: Mapping[str, float]) -> str:
        points = (
            f"{DESIGN_TOP + 26 + AXIS_GAP * at} "
            f"{DESIGN_TOP + (DESIGN_HEIGHT - 60) * (1 - weights[name] / most[name]):.1f}"
            for at, name in enumerate(names)
        )
        return "M" + "L".join(points)

    told = sorted((row for row in design if row["objective"] is not None), key=lambda row: -float(row["objective"]))
    return {
        "width": 2 * (DESIGN_TOP + 26) + AXIS_GAP * (len(names) - 1), "height": DESIGN_HEIGHT, "top": DESIGN_TOP,
        "base": DESIGN_HEIGHT - 60 + DESIGN_TOP,
        "axes": [
            {"x": DESIGN_TOP + 26 + AXIS_GAP * at, "name": name, "most": f"{most[name]:.2f}"}
            for at, name in enumerate(names)
        ],
        "lines": [
            {
                "path": line(row["weights"]),
                "shade": SHADES - 1 - at * SHADES // len(told),
                "title": f"{row['run']}: {row['objective']:.4f}",
            }
            for at, row in enumerate(told)
        ],
        "optimum": line(optimum),
    }  # fmt: skip
