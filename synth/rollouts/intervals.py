"""Intervals: of a share, and of anything that is computed from prompts' means, by resampling the prompts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure and the interval that holds it at a level (.95 by default)."""

    value: float
    low: float
    high: float


def wilson(right: int, trials: int, level: float = 0.95) -> Estimate:
    """Of a share, by Wilson's score (1927), which holds for few trials and for shares of 0 and 1; without a trial
    it is anywhere."""
    if not trials:
        return Estimate(value=math.nan, low=0.0, high=1.0)
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = right / trials
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials**2)) / (1 + z * z / trials)
    # Exactly 0 and 1 at the ends, which rounding misses.
    return Estimate(value=share, low=max(middle - half, 0.0) if right else 0.0,
                    high=min(middle + half, 1.0) if right < trials else 1.0)  # fmt: skip


def credible(right: int, trials: int, level: float = 0.95, prior: tuple[float, float] = (0.5, 0.5)) -> Estimate:
    """Of a share, its posterior mean with the middle `level` of the Beta posterior; the prior is Jeffreys'."""
    from scipy.special import betaincinv

    a, b = prior[0] + right, prior[1] + trials - right
    low, high = (float(betaincinv(a, b, part)) for part in ((1 - level) / 2, (1 + level) / 2))
    return Estimate(value=a / (a + b), low=low, high=high)


def bootstrap(
    columns: Array, figure: Callable[[Array], Array], *, replicates: int = 1000, level: float = 0.95, seed: int = 0
) -> tuple[Estimate, ...]:
    """Figures of prompts' columns with percentile intervals over resampled prompts (1000: the paper of the sharpening
    tax, arXiv:2610.01509). What stands in one row stays together, so that differences between columns are paired.

    columns: (prompts, columns), finite. figure: from column means (..., columns) to figures (..., figures), such as
    ratios and differences of them.
    """
    import numpy as np

    columns = np.asarray(columns, np.float64)
    if columns.ndim != 2 or not np.all(np.isfinite(columns)):
        raise ValueError("columns: prompts by columns, of finite numbers; leave prompts without a figure out")
    prompts = len(columns)
    if not prompts:
        return tuple(Estimate(value=math.nan, low=math.nan, high=math.nan)
                     for _ in np.atleast_1d(figure(np.zeros(columns.shape[1]))))  # fmt: skip
    draw = np.random.default_rng(seed)
    means = np.empty((replicates, columns.shape[1]))
    for replicate in range(replicates):
        means[replicate] = np.bincount(draw.integers(prompts, size=prompts), minlength=prompts) @ columns / prompts
    found = np.atleast_1d(figure(columns.mean(axis=0)))
    with np.errstate(invalid="ignore"):
        drawn = np.quantile(figure(means).reshape(replicates, -1), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return tuple(
        Estimate(value=float(value), low=float(low), high=float(high))
        for value, low, high in zip(found, drawn[0], drawn[1], strict=True)
    )
