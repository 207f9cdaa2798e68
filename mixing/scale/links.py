"""From losses to a downstream metric: a monotone curve within bounds, robust, and held out before it is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError
from mixing.scale.link_curve import Curve, Shape, fit_curve
from mixing.scale.ranks import spearman

FEWEST = 6
"""Runs that a curve of four numbers needs, so that some can be held out."""

FOLDS = 5
WEAK = 0.5
"""A link that explains less than this of held-out runs comes with a warning; one that explains nothing not at all."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Link:
    """metric = low + height c(z), z = sum_j a_j (x_j - centre_j) / scale_j - b, a_j at least 0.

    Sigmoid: x is the loss, c = 1 / (1 + exp(z)), or exp(-z) for a metric that rises with loss. Power: x is log-loss,
    c = exp(-z), or exp(z): a product of powers of losses.

    deviation: of a held-out run about the curve. explained, rank: share of the variance and Spearman of held-out runs.
    """

    metric: str
    losses: tuple[str, ...]
    curve: Curve
    deviation: float
    explained: float
    rank: float
    runs: int
    warnings: tuple[str, ...] = ()

    @property
    def rising(self) -> bool:
        """Whether a higher metric is better."""
        return self.curve.rising

    def value(self, losses: Floats) -> Floats:
        """[n] of losses [n, p]."""
        return self.curve.at(losses)[0]

    def slopes(self, losses: Floats) -> Floats:
        """[n, p]: derivative of the metric by each loss."""
        return self.curve.at(losses)[2]

    def variance(self, losses: Floats) -> Floats:
        """[n]: of a new run's metric at these losses, known exactly."""
        jacobian = self.curve.at(losses)[1]
        return np.asarray(((jacobian @ self.curve.covariance) * jacobian).sum(axis=1) + self.deviation**2)


def fit_link(
    observations: Observations,
    metric: str,
    losses: Sequence[str],
    *,
    rising: bool = True,
    shape: Shape | Literal["auto"] = "auto",
    bounds: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
) -> Link:
    """How a downstream metric falls out of validation losses, over runs that measured both.

    rising: a higher metric is better, so that it falls with every loss; False for one that rises with them, such as a
    perplexity. shape: "sigmoid" between a low and a high within `bounds` (chance and 1 for an accuracy; Bhagia 2024,
    arXiv:2412.04403), "power" of losses, for metrics without bounds; "auto" is sigmoid for rising metrics.
    Raises MixingError where losses tell nothing of it: where held-out runs (all rows of a run together) are not told
    better than by the mean of the others.
    """
    kind: Shape = ("sigmoid" if rising else "power") if shape == "auto" else shape
    if not losses:
        raise MixingError(f"downstream: {metric}: no losses; name at least one metric of the law")
    chosen = observations.only([metric, *losses])
    rows = chosen.rows(np.isfinite(chosen.values).all(axis=1))
    names = sorted(set(rows.runs))
    needed = max(FEWEST, len(losses) + 4)
    if len(names) < needed:
        raise MixingError(
            f"downstream: {metric}: {len(names)} runs measured it and {', '.join(losses)}; {needed} are needed"
        )
    seen, table = rows.values[:, 0], rows.values[:, 1:]
    _check(metric, seen, table, kind, bounds)
    fold_of = dict(zip(names, np.random.default_rng(seed).permutation(len(names)) % FOLDS, strict=True))
    folds = np.array([fold_of[run] for run in rows.runs])
    told, plain = np.empty(len(seen)), np.empty(len(seen))
    for fold in np.unique(folds):
        inside = folds == fold
        part = fit_curve(seen[~inside], table[~inside], kind, rising=rising, bounds=bounds)
        told[inside], plain[inside] = part.at(table[inside])[0], seen[~inside].mean()
    explained, warnings = _judged(metric, losses, told, plain, seen)
    return Link(
        metric=metric,
        losses=tuple(losses),
        curve=fit_curve(seen, table, kind, rising=rising, bounds=bounds),
        deviation=float(np.sqrt(np.mean((told - seen) ** 2))),
        explained=explained,
        rank=spearman(told, seen),
        runs=len(names),
        warnings=warnings,
    )


def _judged(
    metric: str, losses: Sequence[str], told: Floats, plain: Floats, seen: Floats
) -> tuple[float, tuple[str, ...]]:
    """Share explained of held-out runs, and a warning where it is small. Raises MixingError where it is none."""
    ours, theirs = (float(np.sqrt(np.mean((guess - seen) ** 2))) for guess in (told, plain))
    explained = 1 - (ours / theirs) ** 2
    if not explained > 0:
        raise MixingError(
            f"downstream: {metric} is not told by {', '.join(losses)}: held-out errors are {ours:.3g}, those of its "
            f"mean {theirs:.3g}; take other losses, larger models, or a metric that moves earlier"
        )
    weak = f"{metric}: losses explain {explained:.0%} of held-out runs only; a mixture chosen by it may not be better"
    return explained, (weak,) if explained < WEAK else ()


def _check(metric: str, seen: Floats, losses: Floats, shape: Shape, bounds: tuple[float, float]) -> None:
    if np.ptp(seen) == 0:
        raise MixingError(f"downstream: {metric} is {seen[0]:g} in all runs; it cannot be told from losses")
    low, high = bounds
    if shape == "sigmoid" and not (low < high and (seen >= low).all() and (seen <= high).all()):
        raise MixingError(
            f"downstream: {metric} goes from {seen.min():g} to {seen.max():g}, bounds are {low:g} and {high:g}; give "
            "bounds that hold it"
        )
    if shape == "power" and not (losses > 0).all():
        raise MixingError(f"downstream: {metric}: a power link takes losses above 0; take the sigmoid")
