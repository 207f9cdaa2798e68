"""How the error falls with the number of runs: whether more runs are worth their cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixing.fitting.average import fit
from mixing.fitting.grouping import canonical, held_together
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError


@dataclass(frozen=True, kw_only=True)
class LearningPoint:
    """Of fits on `runs` mixtures, told the others: mean over draws of the mean absolute error, in the metric's unit,
    its standard deviation over draws, and the mean rank correlation (Spearman)."""

    runs: int
    metric: str
    error: float
    error_deviation: float
    rank_correlation: float


def learning_curve(
    observations: Observations,
    sizes: Sequence[int],
    law: str | Sequence[str] = "auto",
    *,
    draws: int = 3,
    seed: int = 0,
    workers: int | None = None,
) -> tuple[LearningPoint, ...]:
    """Held-out error of fits on random subsets of the mixtures, by size; a row a size and metric.

    Each draw is told all rows that it did not fit, so sizes near the number of mixtures are judged on few rows.
    Raises MixingError where a size leaves nothing to hold out.
    """
    rows = canonical(observations)
    groups = held_together(rows)
    count = int(groups.max(initial=-1)) + 1
    wrong = [size for size in sizes if not 1 <= size < count]
    if wrong or draws < 1:
        raise MixingError(
            f"sizes: {wrong or draws} of {count} mixtures; from 1 to {count - 1}, so that some are held out"
        )
    order = groups[np.sort(np.unique(groups, return_index=True)[1])]
    found: list[LearningPoint] = []
    for size in sizes:
        told = np.full((draws, 2, len(rows.metrics)), np.nan)
        for draw in range(draws):
            taken = np.random.default_rng([seed, draw]).permutation(order)[:size]
            inside = np.isin(groups, taken)
            fitted = fit(rows.rows(inside), law, seed=seed, workers=workers)
            means = fitted.mean(rows.points.rows(~inside))
            for k, metric in enumerate(fitted.metrics):
                values = rows.values[~inside, rows.metrics.index(metric)]
                told[draw, :, rows.metrics.index(metric)] = _compared(means[:, k], values)
        for k, metric in enumerate(rows.metrics):
            known = told[np.isfinite(told[:, 0, k])][:, :, k]
            if len(known):
                found.append(
                    LearningPoint(
                        runs=size,
                        metric=metric,
                        error=float(known[:, 0].mean()),
                        error_deviation=float(known[:, 0].std()),
                        rank_correlation=float(known[:, 1].mean()),
                    )
                )
    return tuple(found)


def _compared(means: Floats, values: Floats) -> tuple[float, float]:
    """Mean absolute error and Spearman's correlation (0 where the prediction is constant)."""
    from scipy.stats import rankdata

    known = np.isfinite(values)
    if not known.any():
        return np.nan, np.nan
    ranks = [rankdata(array[known]) for array in (np.round(means, 12), values)]
    flat = any(np.ptp(rank) == 0 for rank in ranks)
    return float(np.abs(means - values)[known].mean()), 0.0 if flat else float(np.corrcoef(*ranks)[0, 1])
