"""What every mixing law is: an equation with a source, fitted to observations, that tells a mean and its gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from mixing.observations.observations import Observations
from mixing.observations.points import Floats, Points


class Law(ABC):
    """A fitted law over m domains and k metrics.

    name: as `law=` takes it. equation: of one metric, in plain letters. source: paper or code it is from.
    uses_scale: it predicts from N and D too; a law that does not is fitted on one scale at a time.
    """

    name: ClassVar[str]
    equation: ClassVar[str]
    source: ClassVar[str]
    uses_scale: ClassVar[bool] = False

    domains: tuple[str, ...]
    metrics: tuple[str, ...]

    @classmethod
    @abstractmethod
    def fit(cls, observations: Observations, *, seed: int = 0) -> Self:
        """Fit each metric on the rows where it was measured. Raises MixingError where there is too little to fit."""

    @abstractmethod
    def mean(self, points: Points) -> Floats:
        """[n, k]: the predicted metrics. The points' domains are in the law's order (`points.aligned(law.domains)`)."""

    @abstractmethod
    def gradient(self, points: Points) -> Floats:
        """[n, k, m]: derivative of the mean by each weight, as if the weights were free of their sum."""

    @property
    def convex(self) -> npt.NDArray[np.bool_]:
        """[k]: whether the mean is a convex function of the weights on the simplex, for sure."""
        return np.zeros(len(self.metrics), np.bool_)

    def deviation(self, points: Points) -> Floats | None:
        """[n, k]: the law's own standard deviation of the mean, or None where it has none."""
        return None

    def held_out(
        self, observations: Observations, folds: npt.NDArray[np.int64], *, seed: int = 0
    ) -> tuple[Floats, Floats | None]:
        """Predictions [n, k] of each row from a fit on the other folds (folds: [n]), and their deviations.

        `self` was fitted on all of the observations: a law may start from it, so long as what it tells of a row does
        not come from that row.
        """
        means = np.full(observations.values.shape, np.nan)
        deviations: Floats | None = None
        for fold in np.unique(folds):
            inside = folds == fold
            law = type(self).fit(observations.rows(~inside), seed=seed)
            points = observations.points.rows(inside)
            means[inside] = law.mean(points)
            told = law.deviation(points)
            if told is not None:
                deviations = np.full(means.shape, np.nan) if deviations is None else deviations
                deviations[inside] = told
        return means, deviations

    def told(self) -> dict[str, Any]:
        """What the law learned, as plain JSON values for a report: constants by metric and domain."""
        return {}
