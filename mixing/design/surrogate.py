"""From observations to a Belief: a law's mean, and how far it may be off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mixing.design.belief import Belief
from mixing.design.discrepancy import Discrepancy, Guess, fit_discrepancy
from mixing.fitting.fitted import Fitted
from mixing.fitting.grouping import SAME_DIGITS, folds
from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, Points

Mask = npt.NDArray[np.bool_]
Value = Callable[[tuple[str, ...], Floats], Floats]
"""(metrics, [n, k]) -> [n]: what is minimised, of measured or predicted metrics. NaN where one it needs is NaN."""

NOISE_SHARE, NOISE_FACTOR = 1e-3, 1.2
"""Variance of the noise over that between mixtures, and the standard deviation of its logarithm, without replicates:
runs of RegMix differ by .3 to .6 between mixtures, repeats by .0016 to .041 (marin-community/marin#2345). Without it a
dozen runs that a law misses look like noise, and nothing seems worth another run."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Surrogate:
    """A law, what is minimised of its metrics, and a Gaussian process of the errors it makes in that."""

    law: Law
    value: Value
    discrepancy: Discrepancy

    def mean(self, points: Points) -> Floats:
        """[n]: of what is minimised."""
        return self.value(self.law.metrics, self.law.mean(points.aligned(self.law.domains)))

    def belief(self, points: Points, *, cost: Floats, target: Mask, even: Mask, seen: Mask) -> Belief:
        """At places, whose cost and kind Belief explains."""
        return Belief(
            mean=self.mean(points),
            covariance=self.discrepancy.covariance(points),
            noise=self.discrepancy.noise_variance(points),
            cost=cost,
            target=target,
            even=even,
            seen=seen,
        )


def surrogate(observations: Observations, law: Law, value: Value, *, seed: int = 0) -> Surrogate:
    """Of observations in the law's order of domains, `value` being a number in every row."""
    measured = value(observations.metrics, observations.values)
    misses = measured - value(law.metrics, held_out(law, observations, seed))
    known = np.isfinite(misses)
    noise = noise_guess(observations, measured)
    return Surrogate(
        law=law, value=value, discrepancy=fit_discrepancy(observations.points.rows(known), misses[known], noise)
    )


def held_out(law: Law, observations: Observations, seed: int) -> Floats:
    """[n, k]: predictions of each row by fits on other runs.

    An average's shares are kept as they are, which flatters it a little: choosing them anew in each fold takes as many
    fits again as there are folds.
    """
    apart = folds(observations, seed=seed)
    if not isinstance(law, Fitted):
        return law.held_out(observations, apart, seed=seed)[0]
    means = np.tile(law.levels, (len(observations), 1))
    varying = [law.metrics[column] for column in law.varying]
    if varying:
        there = observations.only(varying)
        means[:, law.varying] = 0.0
        for one, share in zip(law.laws, law.shares, strict=True):
            if share.any():
                means[:, law.varying] += np.where(share > 0, one.held_out(there, apart, seed=seed)[0] * share, 0)
    return means


def noise_guess(observations: Observations, measured: Floats) -> Guess:
    """Of the noise in `measured` [n]: from runs of one mixture at one scale, or else from how much mixtures differ."""
    points = observations.points
    scales = np.nan_to_num(np.column_stack([points.parameters, points.tokens]))
    keys = np.column_stack([points.weights.round(SAME_DIGITS), scales])
    group = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    counts = np.bincount(group)
    within = measured - (np.bincount(group, measured) / counts)[group]
    freedom = int((counts - 1).sum())
    usual = max(float(np.var(measured)), 1e-300)
    if not freedom:
        return Guess(variance=NOISE_SHARE * usual, factor=NOISE_FACTOR)
    pure = max(float((within**2).sum()) / freedom, 1e-8 * usual)
    return Guess(variance=pure, factor=float(np.hypot(np.sqrt(2 / freedom), 0.5)))
