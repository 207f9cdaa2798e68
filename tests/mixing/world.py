"""A simulated world: losses by a known law, noise that grows towards single domains, costs by N and D.

The law is POWG's in the mixture with terms in N and D, and where asked a ripple: products of pairs of domains, with
either sign, which make it neither convex nor of the form of any law that is fitted.

    L_k = floor_k + a N^-.34 + (D^.28 sum_j s_kj w_j^g_kj)^-b_k + ripple sum_ij q_kij w_i w_j     (N, D over the base's)

Noise at the natural mixture and at a single domain differ by a factor of 25, as one user measured (sd .0016 and .041,
marin-community/marin#2345).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mixing.observations.observations import Observations
from mixing.observations.points import Floats, Points

BASE = (1e6, 1e9)
"""N and D of a run whose size is not given; 6 N D FLOPs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """m domains, k metrics. natural: [m]. strengths, exponents: [k, m]; powers, floors: [k]; pairs: [k, m, m]."""

    domains: tuple[str, ...]
    metrics: tuple[str, ...]
    natural: Floats
    floors: Floats
    strengths: Floats
    exponents: Floats
    powers: Floats
    pairs: Floats
    noise: float
    corner_noise: float

    def true(self, points: Points) -> Floats:
        """[n, k]: losses without noise."""
        points = points.aligned(self.domains)
        size = np.where(np.isfinite(points.parameters), points.parameters, BASE[0]) / BASE[0]
        length = np.where(np.isfinite(points.tokens), points.tokens, BASE[1]) / BASE[1]
        weights = np.maximum(points.weights, 0)
        learned = (self.strengths * weights[:, None] ** self.exponents).sum(axis=2)
        mixture = (length[:, None] ** 0.28 * np.maximum(learned, 1e-9)) ** -self.powers
        ripple = np.einsum("ni,kij,nj->nk", weights, self.pairs, weights)
        return np.asarray(self.floors + 0.5 * size[:, None] ** -0.34 + mixture + ripple)

    def deviation(self, weights: Floats) -> Floats:
        """[n]: standard deviation of the noise: `noise` at the natural mixture, `corner_noise` at a domain alone."""
        alone = _concentration(weights)
        base = _concentration(self.natural[None])[0]
        share = np.clip((alone - base) / max(1 - base, 1e-9), 0, 1)
        return np.asarray(self.noise * (self.corner_noise / max(self.noise, 1e-12)) ** share)

    def measure(self, mixtures: Any, size: tuple[float, float] = BASE, *, seed: int = 0) -> Observations:
        """Runs of these mixtures (Points, or rows in the world's order of domains) at N, D, each with its noise."""
        if not isinstance(mixtures, Points):
            mixtures = Points.of(self.domains, mixtures, parameters=size[0], tokens=size[1])
        rng = np.random.default_rng(seed)
        # Half of the variance is a run's own, alike for all its metrics: a seed that is bad is bad everywhere.
        drawn = (
            rng.standard_normal((len(mixtures), len(self.metrics))) + rng.standard_normal((len(mixtures), 1))
        ) / 2**0.5
        values = self.true(mixtures) + self.deviation(mixtures.aligned(self.domains).weights)[:, None] * drawn
        flops = 6 * mixtures.parameters * mixtures.tokens
        seeds = rng.integers(1 << 30, size=len(mixtures))
        return Observations.of(mixtures, self.metrics, values, flops=flops, seeds=seeds)

    def loss(self, weights: Floats, size: tuple[float, float] = BASE) -> Floats:
        """[n]: the mean of all true losses at rows of weights."""
        points = Points.of(self.domains, weights, parameters=size[0], tokens=size[1])
        return np.asarray(self.true(points).mean(axis=1))

    @cached_property
    def best(self) -> tuple[Floats, float]:
        """The mixture with the least mean of true losses at the base's size, and that mean."""
        return self.best_at(BASE)

    def best_at(self, size: tuple[float, float]) -> tuple[Floats, float]:
        """The same at N, D, by twelve starts over the whole simplex."""
        from scipy.optimize import minimize

        def height(logits: Floats) -> float:
            return float(self.loss(_softmax(logits)[None], size)[0])

        drawn = np.random.default_rng(0).dirichlet(np.ones(len(self.domains)), 2000)
        starts = drawn[np.argsort(self.loss(drawn, size))[:12]]
        answers = [minimize(height, np.log(start + 1e-6), method="L-BFGS-B") for start in starts]
        least = min(answers, key=lambda answer: float(answer.fun))
        return _softmax(least.x), float(least.fun)


def world(
    domains: int = 6,
    *,
    metrics: int | None = None,
    seed: int = 0,
    bend: float = 0.0,
    ripple: float = 0.0,
    noise: float = 0.004,
    corner_noise: float = 0.04,
) -> World:
    """A world of so many domains, of which one dominates the natural mixture.

    metrics: losses on so many of the domains, the rarest; None is all. The best mixture for the mean of few of them
    lies far from the natural one. bend: spread of the exponents within a metric; 0 is POWG's one exponent, more is the
    additive power law. ripple: size of the products of pairs; 0 leaves every loss convex.
    """
    rng = np.random.default_rng([seed, domains])
    count = metrics or domains
    natural = (1.0 / np.arange(1, domains + 1)) ** 1.5
    likeness = 0.3 * rng.dirichlet(np.full(domains, 0.5), domains)
    strengths = (likeness + np.diag(rng.uniform(0.4, 1.0, domains)))[-count:]
    exponents = rng.uniform(0.25, 0.6, (count, 1)) * np.exp(bend * rng.standard_normal((count, domains)))
    pairs = rng.standard_normal((count, domains, domains))
    names = tuple(f"domain_{number:02d}" for number in range(domains))
    return World(
        domains=names,
        metrics=tuple(f"loss_{name}" for name in names[-count:]),
        natural=natural / natural.sum(),
        floors=rng.uniform(1.0, 2.0, count),
        strengths=strengths,
        exponents=np.clip(exponents, 0.05, 0.95),
        powers=rng.uniform(0.5, 1.0, count),
        pairs=ripple * (pairs + pairs.transpose(0, 2, 1)) / 2,
        noise=noise,
        corner_noise=corner_noise,
    )


def _concentration(weights: Floats) -> Floats:
    """[n]: 0 where all domains are equal, 1 where there is one alone."""
    count = weights.shape[1]
    return np.asarray(((weights**2).sum(axis=1) - 1 / count) / max(1 - 1 / count, 1e-9))


def _softmax(logits: Floats) -> Floats:
    shares = np.exp(logits - logits.max())
    return np.asarray(shares / shares.sum())
