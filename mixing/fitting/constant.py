"""The law of no law: a metric is what it was on average. What every other law has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points


@dataclass(frozen=True, kw_only=True, eq=False)
class Constant(Law):
    """level: [k], the mean of each metric over the rows where it was measured."""

    name: ClassVar[str] = "constant"
    equation: ClassVar[str] = "L = c"
    source: ClassVar[str] = "the mean of the observations"

    domains: tuple[str, ...]
    metrics: tuple[str, ...]
    level: Floats

    @classmethod
    def fit(cls, observations: Observations, *, seed: int = 0) -> Self:
        """Raises MixingError where a metric was measured nowhere."""
        measured = np.isfinite(observations.values)
        if len(observations) == 0 or not measured.any(axis=0).all():
            lacking = "nothing" if not len(observations) else observations.metrics[int(measured.any(axis=0).argmin())]
            raise MixingError(f"constant: {lacking} was measured in no row; give at least one")
        level = np.where(measured, observations.values, 0.0).sum(axis=0) / measured.sum(axis=0)
        return cls(domains=observations.domains, metrics=observations.metrics, level=level)

    def mean(self, points: Points) -> Floats:
        return np.tile(self.level, (len(points), 1))

    def gradient(self, points: Points) -> Floats:
        return np.zeros((len(points), len(self.metrics), len(self.domains)))

    @property
    def convex(self) -> npt.NDArray[np.bool_]:
        return np.ones(len(self.metrics), np.bool_)

    def told(self) -> dict[str, Any]:
        return {"level": {metric: float(value) for metric, value in zip(self.metrics, self.level, strict=True)}}
