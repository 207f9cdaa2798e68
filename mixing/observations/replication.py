"""Noise of a measurement, from runs of one mixture at one scale that differ in nothing but their seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mixing.observations.observations import Observations
from mixing.observations.points import Floats

SAME = 1e-6
"""Weights within this are one mixture."""


def replicates(observations: Observations) -> tuple[npt.NDArray[np.intp], ...]:
    """Groups of two or more rows of one mixture, parameters, tokens and unique tokens, by first row."""
    points = observations.points
    scales = np.stack([points.parameters, points.tokens], axis=1)
    told = np.concatenate(
        [np.round(points.weights / SAME), np.nan_to_num(scales, nan=-1.0), np.nan_to_num(points.unique_tokens, nan=-1)],
        axis=1,
    )
    groups: dict[bytes, list[int]] = {}
    for row, key in enumerate(told + 0.0):  # -0.0 is 0.0, so that equal rows have equal bytes
        groups.setdefault(key.tobytes(), []).append(row)
    return tuple(np.array(rows, np.intp) for rows in groups.values() if len(rows) > 1)


def noise(observations: Observations) -> Floats:
    """[k] standard deviation of each metric among replicates (pure error); NaN where nothing was repeated."""
    squares, degrees = _within(observations, replicates(observations))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.sqrt(squares.sum(axis=0) / np.where(degrees.sum(axis=0) > 0, degrees.sum(axis=0), np.nan)))


@dataclass(frozen=True, kw_only=True)
class UnevenNoise:
    """Whether a metric's noise depends on the mixture: one deviation for all would be wrong.

    deviation, degrees: pure error over all groups, and its degrees of freedom. lowest, highest: deviations of the
        calmest and the noisiest group, and the first run of each. p: of Bartlett's test that all groups are alike.
    """

    metric: str
    deviation: float
    degrees: int
    lowest: float
    highest: float
    lowest_run: str
    highest_run: str
    p: float

    @property
    def uneven(self) -> bool:
        return self.p < 0.01


def uneven_noise(observations: Observations) -> tuple[UnevenNoise, ...]:
    """Bartlett's test for each metric that two or more mixtures were repeated for (his 1937 statistic, chi-squared).

    Repeats of single-domain runs are told to vary 25 times as much as those of proportional ones (marin#2345).
    """
    groups = replicates(observations)
    squares, degrees = _within(observations, groups)
    found = []
    for at, metric in enumerate(observations.metrics):
        held = np.flatnonzero(degrees[:, at] > 0)
        if len(held) < 2:
            continue
        variances, free = squares[held, at] / degrees[held, at], degrees[held, at]
        calm, loud = held[int(variances.argmin())], held[int(variances.argmax())]
        found.append(
            UnevenNoise(
                metric=metric,
                deviation=float(np.sqrt(squares[held, at].sum() / free.sum())),
                degrees=int(free.sum()),
                lowest=float(np.sqrt(variances.min())),
                highest=float(np.sqrt(variances.max())),
                lowest_run=observations.runs[groups[calm][0]],
                highest_run=observations.runs[groups[loud][0]],
                p=_bartlett(variances, free),
            )
        )
    return tuple(found)


def _within(
    observations: Observations, groups: tuple[npt.NDArray[np.intp], ...]
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """[groups, k] sums of squares about each group's mean, and their degrees of freedom, of what was measured."""
    shape = (len(groups), len(observations.metrics))
    squares, degrees = np.zeros(shape), np.zeros(shape, np.int64)
    for at, rows in enumerate(groups):
        values = observations.values[rows]
        count = (~np.isnan(values)).sum(axis=0)
        means = np.nansum(values, axis=0) / np.maximum(count, 1)
        squares[at] = np.nansum((values - means) ** 2, axis=0)
        degrees[at] = np.maximum(count - 1, 0)
    return squares, degrees


def _bartlett(variances: Floats, degrees: npt.NDArray[np.int64]) -> float:
    """p of equal variances; 1 where none varies, 0 where some vary and others do not at all."""
    from scipy.special import chdtrc

    pooled = float((variances * degrees).sum() / degrees.sum())
    if pooled == 0:
        return 1.0
    if not variances.all():
        return 0.0
    statistic = float(degrees.sum() * np.log(pooled) - (degrees * np.log(variances)).sum())
    correction = 1 + ((1 / degrees).sum() - 1 / degrees.sum()) / (3 * (len(variances) - 1))
    return float(chdtrc(len(variances) - 1, max(statistic, 0.0) / correction))
