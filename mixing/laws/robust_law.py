"""A law that is one smooth equation a metric, fitted by robust MAP: what the equations have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from mixing.laws.law import Law
from mixing.laws.robust import Estimates, Prior, estimate
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points


@dataclass(frozen=True, kw_only=True, eq=False)
class RobustLaw(Law):
    """level, scale: [k], mean and deviation of each metric's rows; the equation is of (metric - level) / scale.

    theta: [k, p], covariance: [k, p, p] (Laplace's approximation of the posterior), noise: [k], in the metric's units.
    """

    domains: tuple[str, ...]
    metrics: tuple[str, ...]
    level: Floats
    scale: Floats
    theta: Floats
    covariance: Floats
    noise: Floats

    convex_equation: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def curve(cls, theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """theta [B, p], weights [n, m] -> standardised values [B, n] and their Jacobian by theta [B, n, p]."""

    @classmethod
    @abstractmethod
    def slope(cls, theta: Floats, weights: Floats) -> Floats:
        """[B, n, m]: derivative of the standardised values by the weights."""

    @classmethod
    @abstractmethod
    def prior(cls, domains: int) -> Prior:
        """Of the parameters for this many domains."""

    @classmethod
    @abstractmethod
    def starts(cls, prior: Prior, domains: int) -> Floats:
        """[S, p]: where descent begins."""

    @classmethod
    def fit(cls, observations: Observations, *, seed: int = 0) -> Self:
        """All metrics at once. Nothing is random: the seed changes nothing."""
        used = measured(observations)
        level, scale, estimates = cls._estimate(observations, used)
        return cls(
            domains=observations.domains,
            metrics=observations.metrics,
            level=level,
            scale=scale,
            theta=estimates.theta,
            covariance=estimates.covariance,
            noise=estimates.noise * scale,
        )

    @classmethod
    def _estimate(cls, observations: Observations, used: npt.NDArray[np.bool_]) -> tuple[Floats, Floats, Estimates]:
        """Of problems used [B, n], B = any number of times the metrics in their order."""
        weights = observations.weights
        values = np.tile(observations.values.T, (len(used) // len(observations.metrics), 1))
        targets, level, scale = standardised(values, used)
        prior = cls.prior(weights.shape[1])
        starts = cls.starts(prior, weights.shape[1])
        return level, scale, estimate(lambda theta: cls.curve(theta, weights), targets, used, starts, prior)

    def mean(self, points: Points) -> Floats:
        values, _ = self.curve(self.theta, points.weights)
        return np.asarray(self.level + self.scale * values.T)

    def gradient(self, points: Points) -> Floats:
        slope = self.slope(self.theta, points.weights)
        return np.asarray(slope.transpose(1, 0, 2) * self.scale[:, None])

    @property
    def convex(self) -> npt.NDArray[np.bool_]:
        # A constant metric (scale 0) is convex whatever the equation.
        return np.asarray(self.convex_equation | (self.scale == 0))

    def deviation(self, points: Points) -> Floats | None:
        return self.scale * deviations(self.covariance, self.curve(self.theta, points.weights)[1])

    def held_out(
        self, observations: Observations, folds: npt.NDArray[np.int64], *, seed: int = 0
    ) -> tuple[Floats, Floats | None]:
        """Each fold a fit of its own, prior strength and noise included; all folds and metrics in one stack.

        A row of a fold that leaves a metric without rows is nan.
        """
        names = np.unique(folds)
        known = np.isfinite(observations.values.T)
        used = np.concatenate([known & (folds != fold) for fold in names])
        level, scale, estimates = self._estimate(observations, used)
        level[~used.any(axis=1)] = np.nan
        count = len(observations.metrics)
        means, spread = np.full(observations.values.shape, np.nan), np.full(observations.values.shape, np.nan)
        for number, fold in enumerate(names):
            problems, inside = slice(number * count, (number + 1) * count), folds == fold
            values, jacobian = self.curve(estimates.theta[problems], observations.weights[inside])
            means[inside] = level[problems] + scale[problems] * values.T
            spread[inside] = scale[problems] * deviations(estimates.covariance[problems], jacobian)
        return means, spread


def measured(observations: Observations) -> npt.NDArray[np.bool_]:
    """[k, n]: which rows each metric has. Raises MixingError where a metric has none."""
    used = np.isfinite(observations.values.T)
    empty = np.flatnonzero(~used.any(axis=1))
    if len(empty):
        raise MixingError(f"values: no row has a {observations.metrics[empty[0]]}; leave the metric out or measure it")
    return used


def standardised(values: Floats, used: npt.NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Targets [B, n] of about mean 0 and deviation 1 over the rows used, and level and scale [B] that take them back.

    A run far out counts as if it stood two ranges (of the middle four fifths) beyond them, so that one that diverged
    does not set the scale. The scale of a constant is 0: what is predicted then is the constant, and its gradient 0.
    """
    filled = np.where(used | (used.sum(axis=1) == 0)[:, None], np.where(np.isfinite(values), values, 0), np.nan)
    low, high = np.nanquantile(filled, [0.1, 0.9], axis=1)
    # A metric that nearly always is the same has no range: then everything counts.
    reach = np.where(high > low, 2 * (high - low), np.inf)[:, None]
    near = np.clip(filled, low[:, None] - reach, high[:, None] + reach)
    level, scale = np.asarray(np.nanmean(near, axis=1)), np.asarray(np.nanstd(near, axis=1))
    scale[scale <= 1e-12 * np.abs(level)] = 0
    centred: Floats = np.asarray(np.where(used, filled - level[:, None], 0))
    return centred / np.where(scale > 0, scale, 1)[:, None], level, scale


def deviations(covariance: Floats, jacobian: Floats) -> Floats:
    """[n, B]: deviation of the standardised mean, from covariance [B, p, p] and Jacobian [B, n, p]."""
    variance = (np.matmul(jacobian, covariance) * jacobian).sum(axis=2)
    return np.asarray(np.sqrt(np.maximum(variance, 0)).T)


def by_domain(domains: tuple[str, ...], numbers: Any) -> dict[str, float]:
    return {name: float(number) for name, number in zip(domains, numbers, strict=True)}
