"""A budget as a picture: what size does at equal FLOPs and at equal loss. The same budget gives the same bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from shards.store import write_bytes
from train.compute.laws import INFERENCE_FLOPS, LAWS, TRAIN_FLOPS
from train.compute.surface import Surface

if TYPE_CHECKING:
    from train.compute.budgets import Budget

# Okabe and Ito's colours, told apart by everyone; the dash differs too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
SETTINGS = {"svg.hashsalt": "gristmill", "svg.fonttype": "none", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3}


def draw(made: Budget, path: str) -> None:
    """Write the SVG at `path`, a local name or any fsspec URL."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        _equal_flops(made, left)
        _equal_loss(made, right)
        held = io.BytesIO()
        figure.savefig(held, format="svg", metadata={"Date": None, "Title": "Compute budget"})
    write_bytes(path, held.getvalue())


def _sizes(made: Budget) -> Any:
    return made.chosen.parameters * np.logspace(-1.6, 1.2, 281)


def _equal_flops(made: Budget, axes: Any) -> None:
    """Loss over size, tokens following from the FLOPs."""
    sizes, law = _sizes(made), LAWS[made.question.law]
    for at, factor in enumerate((0.1, 1.0, 10.0)):
        flops = TRAIN_FLOPS * made.chosen.parameters * made.chosen.tokens * factor
        surface = Surface(law, made.question.supply)
        axes.plot(
            sizes, surface.losses(sizes, flops / TRAIN_FLOPS / sizes), color=COLOURS[at], label=f"{flops:.1e} FLOPs"
        )
        if made.question.supply is not None:
            fresh = Surface(law).losses(sizes, flops / TRAIN_FLOPS / sizes)
            axes.plot(sizes, fresh, color=COLOURS[at], linestyle=":", linewidth=1)
    axes.plot([made.chosen.parameters], [made.chosen.loss], "o", color="black", label=made.chosen.name)
    told = " (dotted: all fresh)" if made.question.supply is not None else ""
    axes.set(xscale="log", xlabel="parameters", ylabel="loss, nats a token", title=f"Equal training FLOPs{told}")
    axes.legend()


def _equal_loss(made: Budget, axes: Any) -> None:
    """FLOPs over size, tokens following from the loss."""
    sizes = _sizes(made)
    tokens = Surface(LAWS[made.question.law], made.question.supply).tokens_for(sizes, made.chosen.loss)
    train = TRAIN_FLOPS * sizes * np.where(np.isfinite(tokens), tokens, np.nan)
    axes.plot(sizes, train, color=COLOURS[0], label="training")
    if made.question.inference_tokens:
        lifetime = train + INFERENCE_FLOPS * sizes * made.question.inference_tokens
        axes.plot(sizes, lifetime, color=COLOURS[1], linestyle="--", label="training and inference")
    for plan in made.plans:
        if abs(plan.loss - made.chosen.loss) < 1e-6:
            axes.plot(
                [plan.parameters], [TRAIN_FLOPS * plan.parameters * plan.tokens], "o", color="black", markersize=4
            )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="parameters",
        ylabel="FLOPs",
        title=f"Equal loss, {made.chosen.loss:.3f} nats",
    )
    axes.legend()
