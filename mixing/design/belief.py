"""What is believed of the loss at places that could be measured: a joint Gaussian, and what a measurement does to it.

Every acquisition is a formula of it, so that batches, replicates and cheaper scales need nothing of their own: a run
that is under way is one more measurement, and a replicate is a measurement at a place that has one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mixing.observations.points import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Belief:
    """Of p places: a mixture at a scale each.

    mean: [p]; covariance: [p, p] of the true loss. noise: [p], variance of one measurement around it.
    cost: [p], of a measurement, in FLOPs or any one unit; inf where none can be made.
    target: bool[p], places at the scale the mixture is wanted for. even: bool[p], those of them that stand for all that
        is feasible, and are not crowded around a good mixture. seen: bool[p], whether the mixture was measured.
    """

    mean: Floats
    covariance: Floats
    noise: Floats
    cost: Floats
    target: npt.NDArray[np.bool_]
    even: npt.NDArray[np.bool_]
    seen: npt.NDArray[np.bool_]

    @property
    def variance(self) -> Floats:
        """[p]."""
        return np.asarray(np.maximum(np.diagonal(self.covariance), 0))

    def measured(self, place: int) -> Belief:
        """After a measurement there that came out as expected (kriging believer, Ginsbourger 2010): less variance."""
        column = self.covariance[:, place]
        total = column[place] + self.noise[place]
        if total <= 0:
            return self
        seen = self.seen.copy()
        seen[place] = True
        return replace(self, covariance=self.covariance - np.outer(column, column) / total, seen=seen)

    def moves(self) -> Floats:
        """[p, p]: row t, column i: standard deviation of the change of t's mean that measuring i brings."""
        total = np.maximum(self.variance + self.noise, 1e-300)
        return np.asarray(self.covariance / np.sqrt(total))

    def together(self, places: npt.NDArray[np.int64]) -> Floats:
        """[p, p]: covariance of the change of all means that measuring these places (repeats are replicates) brings."""
        among = self.covariance[np.ix_(places, places)] + np.diag(self.noise[places])
        across = self.covariance[:, places]
        jitter = 1e-12 * max(float(np.trace(among)), 1e-300) * np.eye(len(places))
        return np.asarray(across @ np.linalg.solve(among + jitter, across.T))
