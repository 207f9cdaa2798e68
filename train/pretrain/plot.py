"""OUT/loss.svg: the losses of a run, drawn from its metrics. The same metrics give the same bytes."""

from __future__ import annotations

import io
import warnings
from typing import Any

from shards.store import join, write_bytes
from train.pretrain.metrics import read_metrics

NAME = "loss.svg"
SMOOTHED = 0.02  # the bold line is an exponential mean over about this share of the steps


def plot_losses(out: str) -> str:
    """Draw OUT/metrics.jsonl to OUT/loss.svg: training loss by step, and held-out bits per byte by domain."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    rows = list(read_metrics(out))
    with mpl.rc_context({"svg.hashsalt": "gristmill", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        FigureCanvasSVG(figure)
        left, right = figure.subplots(1, 2)
        _draw_training(left, [row for row in rows if row["kind"] == "step"])
        _draw_held_out(right, [row for row in rows if row["kind"] == "evaluation"])
        for axes in (left, right):
            axes.set_xlabel("step")
            axes.grid(alpha=0.3)
            axes.spines[["top", "right"]].set_visible(False)
        drawn = io.BytesIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # letters that matplotlib's font lacks; a reader's has them
            figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    url = join(out, NAME)
    write_bytes(url, drawn.getvalue())
    return url


def _draw_training(axes: Any, rows: list[dict[str, Any]]) -> None:
    steps, losses = [row["step"] for row in rows], [row["loss"] for row in rows]
    axes.plot(steps, losses, linewidth=0.6, alpha=0.4, color="C0")
    axes.plot(steps, _smooth(losses), linewidth=1.6, color="C0")
    axes.set_title("training loss (nats a token)", loc="left")


def _draw_held_out(axes: Any, rows: list[dict[str, Any]]) -> None:
    steps = [row["step"] for row in rows]
    names = sorted({name for row in rows for name in row["by_domain"]})
    for name in names:
        values = [_value(row["by_domain"].get(name)) for row in rows]
        # matplotlib leaves labels out that begin with an underscore.
        axes.plot(steps, values, marker=".", linewidth=1.2, label=f" {name}" if name.startswith("_") else name)
    axes.set_title("held-out bits per byte", loc="left")
    if names:
        for text in axes.legend(frameon=False, fontsize=7, ncols=1 + len(names) // 9).get_texts():
            text.set_parse_math(False)  # a name is no formula


def _value(score: dict[str, Any] | None) -> float:
    value = None if score is None else score["bits_per_byte"]
    return float("nan") if value is None else float(value)


def _smooth(values: list[float]) -> list[float]:
    """An exponential mean that starts without bias (Kingma and Ba 2015, arXiv:1412.6980, section 3)."""
    kept = 1.0 - 1.0 / max(1.0, SMOOTHED * len(values))
    found, total, weight = [], 0.0, 0.0
    for value in values:
        total, weight = kept * total + (1.0 - kept) * value, kept * weight + 1.0 - kept
        found.append(total / weight if weight else value)
    return found
