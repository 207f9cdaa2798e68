"""Linear law (RegMix's baseline): each domain's weight times a constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from mixing.laws.law import Law
from mixing.laws.robust_law import by_domain, measured, standardised
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, Points

RIDGE = 1e-2
"""Penalty on standardised coefficients where the rows do not determine them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Linear(Law):
    """L = sum_j t_j w_j (the constant is in t, since weights sum to 1), by ordinary least squares.

    Where a metric has no more different mixtures than domains, by ridge towards its mean. coefficients: [k, m].
    """

    name: ClassVar[str] = "linear"
    equation: ClassVar[str] = "L = sum_j t_j w_j"
    source: ClassVar[str] = "Liu et al. 2024 (RegMix), arXiv:2407.01492, linear regression"

    domains: tuple[str, ...]
    metrics: tuple[str, ...]
    coefficients: Floats

    @classmethod
    def fit(cls, observations: Observations, *, seed: int = 0) -> Self:
        used = measured(observations)
        targets, level, scale = standardised(observations.values.T, used)
        coefficients = [
            level[row] + scale[row] * _solved(observations.weights[used[row]], targets[row, used[row]])
            for row in range(len(used))
        ]
        return cls(domains=observations.domains, metrics=observations.metrics, coefficients=np.array(coefficients))

    def mean(self, points: Points) -> Floats:
        return np.asarray(points.weights @ self.coefficients.T)

    def gradient(self, points: Points) -> Floats:
        return np.broadcast_to(self.coefficients, (len(points), *self.coefficients.shape)).copy()

    @property
    def convex(self) -> npt.NDArray[np.bool_]:
        return np.ones(len(self.metrics), np.bool_)

    def told(self) -> dict[str, Any]:
        """t by domain, of each metric: the loss that a run on this domain alone is told to have."""
        rows = zip(self.metrics, self.coefficients, strict=True)
        return {metric: {"t": by_domain(self.domains, row)} for metric, row in rows}


def _solved(weights: Floats, targets: Floats) -> Floats:
    domains = weights.shape[1]
    if np.linalg.matrix_rank(weights) == domains and len(weights) > domains:
        return np.asarray(np.linalg.lstsq(weights, targets, rcond=None)[0], np.float64)
    return np.asarray(np.linalg.solve(weights.T @ weights + RIDGE * np.eye(domains), weights.T @ targets))
