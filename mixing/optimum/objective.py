"""What is minimised: weighted metrics, the worst of several, and soft terms, as a recipe says it."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from mixing.observations.points import Floats, MixingError
from mixing.optimum.constraints import Share, known

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Factor = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Objective:
    """Lower is better. Without settings it is the mean of all metrics of the law.

    weights: {metric: share} of a weighted mean; shares are scaled to add up to 1 in size. A share below 0 is of a
        metric that rises as things get better.
    worst: metrics of which the largest is minimised (added to the mean where weights are given, too).
    relative_to: a mixture, {domain: share}; metrics count from what is predicted at it, so that `worst` is the metric
        that gains least.
    kl, entropy: added times the divergence from the prior, or taken off times the entropy of the mixture: the
        objective's unit for a nat. Soft pulls away from mixtures of few domains.
    pessimism: so many half-widths of a prediction's interval are added to it, so that mixtures little is known of lose.
    half_life: repeats of a domain after which another one is worth 1/e of fresh tokens (R*, arXiv:2305.16264: 15.39):
        the law is asked at the fresh tokens' worth of each weight; one number, or by domain. None for laws that know
        repetition themselves, and where it is left to hard caps.
    """

    weights: dict[str, Factor] = Field(default_factory=dict)
    worst: tuple[str, ...] = ()
    relative_to: dict[str, Share] | None = None
    kl: Weight = 0.0
    entropy: Weight = 0.0
    pessimism: Weight = 0.0
    half_life: Weight | dict[str, Weight] | None = None

    def coefficients(self, metrics: tuple[str, ...]) -> Floats:
        """[p, k]: of metrics y the objective is max over p of coefficients @ y. Raises MixingError on unknown ones."""
        shares = np.zeros(len(metrics))
        asked = self.weights or ({} if self.worst else dict.fromkeys(metrics, 1.0))
        for name, share in asked.items():
            shares[known(metrics, name, "objective", "metric")] = share
        size = np.abs(shares).sum()
        if asked and not size > 0:
            raise MixingError("objective: all weights are 0; give at least one metric a share")
        if size > 0:
            shares /= size
        if not self.worst:
            return shares[None, :]
        rows = [shares + np.eye(len(metrics))[known(metrics, name, "objective.worst", "metric")] for name in self.worst]
        return np.array(rows)

    def value(self, metrics: tuple[str, ...], table: Floats) -> Floats:
        """[n]: of measured metrics ([n, k]): the mean or the worst, without what hangs on a law or a prior."""
        rows = self.coefficients(metrics)
        used = (rows != 0).any(axis=0)
        return np.asarray((table[:, used] @ rows[:, used].T).max(axis=1))
