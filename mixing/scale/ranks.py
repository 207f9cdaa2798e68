"""Whether small runs rank mixtures as large ones do: the assumption under every proxy, checked on the same mixtures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError

LOW = 0.8
"""Warn below this. Proxies of 15M parameters and more are reported at .89 to 1B and of 1M at .73 (arXiv:2602.12237)."""

FEWEST = 3
DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class RankTransfer:
    """Spearman correlations over the mixtures that both scales trained.

    by_metric: NaN where fewer than FEWEST mixtures tell it, or it is constant. average: of the mean of the metrics.
    """

    mixtures: int
    by_metric: dict[str, float]
    average: float
    warnings: tuple[str, ...]


def rank_transfer(small: Observations, large: Observations) -> RankTransfer:
    """How well the small runs' ranking of mixtures holds for the large ones. Rows of one mixture are averaged.

    Raises MixingError where domains differ, or fewer than three mixtures or no metric stand in both.
    """
    large = Observations.of(large.points.aligned(small.domains), large.metrics, large.values, runs=large.runs)
    shared = [name for name in small.metrics if name in large.metrics]
    if not shared:
        raise MixingError(f"rank_transfer: no metric in both; one has {', '.join(small.metrics)}")
    below, above = _by_mixture(small.only(shared)), _by_mixture(large.only(shared))
    both = sorted(below.keys() & above.keys())
    if len(both) < FEWEST:
        raise MixingError(
            f"rank_transfer: {len(both)} mixtures stand at both scales; train at least {FEWEST} of the same at each"
        )
    first, second = np.array([below[key] for key in both]), np.array([above[key] for key in both])
    by_metric = {name: spearman(first[:, place], second[:, place]) for place, name in enumerate(shared)}
    average = spearman(first.mean(axis=1), second.mean(axis=1))
    told = [*by_metric.items(), *([("the mean of the metrics", average)] if len(shared) > 1 else [])]
    warnings = tuple(
        f"{name}: rank correlation {value:.2f} over {len(both)} mixtures; small runs do not tell which is better at "
        "the large scale: take larger proxies or recalibrate"
        for name, value in told
        if value < LOW
    )
    return RankTransfer(mixtures=len(both), by_metric=by_metric, average=average, warnings=warnings)


def spearman(first: Floats, second: Floats) -> float:
    """Rank correlation of two arrays over what is finite in both, ties averaged; NaN where there is none."""
    known = np.isfinite(first) & np.isfinite(second)
    if known.sum() < FEWEST:
        return float("nan")
    ranks = [_ranks(values[known]) for values in (first, second)]
    if any(np.ptp(rank) == 0 for rank in ranks):
        return float("nan")
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Floats) -> Floats:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[which])


def _by_mixture(observations: Observations) -> dict[tuple[float, ...], npt.NDArray[np.float64]]:
    """Mixture -> [k] mean of its rows that measured each metric."""
    gathered: dict[tuple[float, ...], list[Floats]] = {}
    for weights, values in zip(np.round(observations.weights, DIGITS) + 0.0, observations.values, strict=True):
        gathered.setdefault(tuple(weights.tolist()), []).append(values)
    means = {}
    for key, rows in gathered.items():
        table = np.array(rows)
        count = np.isfinite(table).sum(axis=0)
        means[key] = np.where(count > 0, np.nansum(table, axis=0) / np.maximum(count, 1), np.nan)
    return means
