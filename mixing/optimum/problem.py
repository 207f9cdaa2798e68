"""A law, an objective and constraints as one problem: smooth pieces whose largest is minimised, and smooth limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mixing.laws.law import Law
from mixing.observations.points import Floats, MixingError, Points
from mixing.observations.repetition import effective_weights, half_lives
from mixing.optimum.constraints import Constraints, known, mixture_row
from mixing.optimum.objective import Objective
from mixing.optimum.polytope import Polytope

_STEP = 1e-4
"""Of differences of gradients, in shares of a weight."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """At n mixtures: p pieces [n, p] and c limits [n, c] (kept at 0 or less); their slopes [n, p, m] and [n, c, m]."""

    pieces: Floats
    limits: Floats
    slopes: Floats
    limit_slopes: Floats

    @property
    def value(self) -> Floats:
        """[n]: the objective."""
        return np.asarray(self.pieces.max(axis=1))


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Minimise max over p of (coefficients[p] @ metrics(w) - offsets[p]) + soft terms, for w in the polytope.

    at: one point, the scale of the target. prior: [m], or None. allowed: [k], what each metric may be at most; inf
    where nothing limits it. least_entropy, most_kl: nats, or None. epochs_allowed: caps by domain.
    """

    law: Law
    at: Points
    objective: Objective
    polytope: Polytope
    coefficients: Floats
    offsets: Floats
    prior: Floats | None
    allowed: Floats
    least_entropy: float | None
    most_kl: float | None
    epochs_allowed: Mapping[str, float]

    @classmethod
    def of(cls, law: Law, at: Points, objective: Objective, constraints: Constraints) -> Problem:
        """Raises MixingError where names are unknown, something needed is left out, or constraints clash."""
        prior = constraints.prior_weights(law.domains)
        if prior is None and (objective.kl or constraints.max_kl is not None):
            raise MixingError("kl: measured from what; give constraints.prior, {domain: share} or natural")
        if prior is not None and (objective.kl or constraints.max_kl is not None) and (prior <= 0).any():
            lacking = law.domains[int(np.argmin(prior))]
            raise MixingError(
                f"kl: the prior has nothing of {lacking}, from which every mixture with it is endlessly far"
            )
        coefficients = objective.coefficients(law.metrics)
        problem = cls(
            law=law,
            at=at,
            objective=objective,
            polytope=constraints.polytope(law.domains),
            coefficients=coefficients,
            offsets=np.zeros(len(coefficients)),
            prior=prior,
            allowed=np.full(len(law.metrics), np.inf),
            least_entropy=constraints.min_entropy,
            most_kl=constraints.max_kl,
            epochs_allowed=constraints.epochs_allowed(law.domains),
        )
        return problem._with_baselines(constraints)

    def _with_baselines(self, constraints: Constraints) -> Problem:
        offsets, allowed = self.offsets, self.allowed
        if self.objective.relative_to is not None:
            row = mixture_row(self.law.domains, self.objective.relative_to, "objective.relative_to")
            offsets = self.coefficients @ self.metrics(row[None, :])[0]
        if constraints.no_regression is not None:
            base = self.metrics(constraints.baseline_weights(self.law.domains)[None, :])[0]
            asked = constraints.no_regression
            asked = asked if isinstance(asked, dict) else dict.fromkeys(self.law.metrics, asked)
            allowed = allowed.copy()
            for name, increase in asked.items():
                where = known(self.law.metrics, name, "no_regression", "metric")
                allowed[where] = base[where] + increase
        return replace(self, offsets=offsets, allowed=allowed)

    @cached_property
    def limit_names(self) -> tuple[str, ...]:
        """[c]: what the limits that are not linear are called."""
        names = [f"no_regression.{self.law.metrics[k]}" for k in self._limited]
        names += ["min_entropy"] if self.least_entropy is not None else []
        return (*names, *(["max_kl"] if self.most_kl is not None else []))

    @cached_property
    def _limited(self) -> Any:
        return np.flatnonzero(np.isfinite(self.allowed))

    @cached_property
    def convex(self) -> bool:
        """Whether every piece and every limit is convex for sure."""
        if self.objective.pessimism or self._discounted:
            return False
        used = np.asarray((self.coefficients != 0).any(axis=0))
        sign = np.asarray((self.coefficients >= 0).all(axis=0))
        limited = np.isfinite(self.allowed)
        surely = np.broadcast_to(self.law.convex, sign.shape)
        return bool((surely[used] & sign[used]).all() and surely[limited].all())

    @cached_property
    def _discounted(self) -> bool:
        return self.objective.half_life is not None

    @cached_property
    def flat(self) -> bool:
        """A law of steps, as trees are: its slopes are 0 wherever one looks, though its mean is not the same."""
        weights = np.vstack([self.polytope.sample(8, seed=0, steps=8), self.polytope.centre()])
        points = self.points(weights)[0]
        return bool((self.law.gradient(points) == 0).all() and np.ptp(self.law.mean(points), axis=0).any())

    def points(self, weights: Floats) -> tuple[Points, Floats]:
        """Where the law is asked, and the slope of those weights by ours."""
        points = self.at.at(weights)
        if not self._discounted:
            return points, np.ones_like(weights)
        asked = self.objective.half_life
        assert asked is not None
        worth, slope = effective_weights(points, half_lives(self.law.domains, asked))
        return self.at.at(worth), slope

    def metrics(self, weights: Floats) -> Floats:
        """[n, k]: the law's predictions. Raises MixingError where one is no number."""
        means = self.law.mean(self.points(weights)[0])
        if not np.isfinite(means).all():
            where = self.law.metrics[int(np.flatnonzero(~np.isfinite(means).all(axis=0))[0])]
            raise MixingError(f"law: {self.law.name} predicts no number for {where}; fit it to more or other runs")
        return means

    def values(self, weights: Floats) -> Floats:
        """[n]: the objective."""
        return np.asarray((self._pieces(weights, self.metrics(weights))).max(axis=1))

    def worst_limit(self, weights: Floats) -> Floats:
        """[n]: the largest amount by which a limit that is not linear is missed; -inf where there are none."""
        if not self.limit_names:
            return np.full(len(weights), -np.inf)
        return np.asarray(self._limits(weights, self.metrics(weights)).max(axis=1))

    def _pieces(self, weights: Floats, means: Floats) -> Floats:
        pieces = means @ self.coefficients.T - self.offsets + self._soft(weights)[:, None]
        if self.objective.pessimism:
            pieces = pieces + self.objective.pessimism * self._half_widths(weights) @ np.abs(self.coefficients).T
        return pieces

    def _soft(self, weights: Floats) -> Floats:
        soft = np.zeros(len(weights))
        if self.objective.entropy:
            soft -= self.objective.entropy * entropy(weights)
        if self.objective.kl and self.prior is not None:
            soft += self.objective.kl * divergence(weights, self.prior)
        return soft

    def _limits(self, weights: Floats, means: Floats) -> Floats:
        columns = [means[:, self._limited] - self.allowed[self._limited]]
        if self.least_entropy is not None:
            columns.append((self.least_entropy - entropy(weights))[:, None])
        if self.most_kl is not None and self.prior is not None:
            columns.append((divergence(weights, self.prior) - self.most_kl)[:, None])
        return np.hstack(columns)

    def _half_widths(self, weights: Floats) -> Floats:
        """[n, k]: of the intervals, or the law's deviations where it gives no interval."""
        points = self.points(weights)[0]
        if hasattr(self.law, "predict"):
            told = self.law.predict(points)
            return np.column_stack(
                [(told.high[name].to_numpy() - told.low[name].to_numpy()) / 2 for name in self.law.metrics]
            )
        deviations = self.law.deviation(points)
        if deviations is None:
            raise MixingError(f"objective.pessimism: {self.law.name} tells no interval; use fit(), or pessimism 0")
        return deviations

    def evaluate(self, weights: Floats) -> Evaluation:
        """Values and slopes at rows of weights ([n, m])."""
        points, inner = self.points(weights)
        means = self.metrics(weights)
        by_metric = np.nan_to_num(self.law.gradient(points) * inner[:, None, :], posinf=1e12, neginf=-1e12)
        slopes = np.einsum("pk,nkm->npm", self.coefficients, by_metric) + self._soft_slopes(weights)[:, None, :]
        if self.objective.pessimism:
            slopes = slopes + self.objective.pessimism * self._width_slopes(weights)
        limit_slopes = [by_metric[:, self._limited]]
        logs = np.log(np.maximum(weights, 1e-300))
        if self.least_entropy is not None:
            limit_slopes.append((logs + 1)[:, None, :])
        if self.most_kl is not None and self.prior is not None:
            limit_slopes.append((logs + 1 - np.log(self.prior))[:, None, :])
        return Evaluation(
            pieces=self._pieces(weights, means),
            limits=self._limits(weights, means),
            slopes=slopes,
            limit_slopes=np.concatenate(limit_slopes, axis=1),
        )

    def _soft_slopes(self, weights: Floats) -> Floats:
        slopes = np.zeros_like(weights)
        logs = np.log(np.maximum(weights, 1e-300))
        if self.objective.entropy:
            slopes += self.objective.entropy * (logs + 1)
        if self.objective.kl and self.prior is not None:
            slopes += self.objective.kl * (logs + 1 - np.log(self.prior))
        return slopes

    def _width_slopes(self, weights: Floats) -> Floats:
        """[n, p, m]: of the half-widths, by differences along the simplex towards each domain."""
        count, domains = weights.shape
        step = 1e-5
        moved = weights[:, None, :] * (1 - step) + step * np.eye(domains)
        flat = self._half_widths(moved.reshape(-1, domains)).reshape(count, domains, -1)
        rise = (flat - self._half_widths(weights)[:, None, :]) / step
        return np.asarray(np.einsum("pk,njk->npj", np.abs(self.coefficients), rise))

    def curvature(self, weights: Floats, of_pieces: Floats, of_limits: Floats) -> Floats:
        """[n, m, m]: of pieces and limits with multipliers [n, p] and [n, c], as if weights were free of their sum.

        By central differences of the law's gradients, all in one call.
        """
        count, domains = weights.shape
        steps = np.minimum(np.maximum(_STEP * weights, 1e-9), 0.5 * np.maximum(weights, 1e-12))
        moved = steps[:, None, :] * np.eye(domains)
        both = np.stack([weights[:, None, :] + moved, weights[:, None, :] - moved])
        told = self.evaluate(both.reshape(-1, domains))
        shape = (2, count, domains)
        slopes = np.einsum("np,snjpm->snjm", of_pieces, told.slopes.reshape(*shape, -1, domains))
        limits = told.limit_slopes.reshape(*shape, len(self.limit_names), domains)
        slopes = slopes + np.einsum("nc,snjcm->snjm", of_limits, limits)
        found = (slopes[0] - slopes[1]) / (2 * steps[:, :, None])
        return np.asarray((found + found.transpose(0, 2, 1)) / 2)


def entropy(weights: Floats) -> Floats:
    """[n]: nats."""
    return np.asarray(-(weights * np.log(np.maximum(weights, 1e-300))).sum(axis=1))


def divergence(weights: Floats, prior: Floats) -> Floats:
    """[n]: Kullback-Leibler divergence from the prior, nats."""
    return np.asarray((weights * np.log(np.maximum(weights, 1e-300) / prior)).sum(axis=1))
