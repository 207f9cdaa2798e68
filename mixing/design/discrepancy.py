"""How far a law may be off, and where: a Gaussian process over what the law missed in cross-validation.

Laws tell a mean; a design needs to know how the errors at two mixtures go together. What a law missed on runs held out
from it tells both its wrong form and its constants' errors, whatever the law is: trees and averages have one, too.

    miss(w, s) = sigma h(w, s) + noise;  h: Matern 5/2 in sqrt(w), times c + (1 - c) exp(-d^2 / 2) over scales,
    d: distance in (log N, log D) in units of a factor of 10;  log noise rises with how concentrated a mixture is

Length, noise, its rise and c are those of greatest marginal likelihood on a grid, sigma in closed form: no optimiser, no
starts, the same on every machine. Rise of the noise: marin-community/marin#2345 measured a factor of 25.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from mixing.design.space_filling import matern
from mixing.observations.points import Floats, Points

LENGTHS = tuple(0.15 * 1.5**step for step in range(7))
"""In sqrt(w), where any two mixtures are at most sqrt(2) apart."""
NOISES = tuple(10.0**power for power in (-3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1))
"""Variance of the noise at an even mixture, over sigma^2."""
RISES = (0.0, 2.0, 4.0, 6.0)
"""Log of the noise's variance at a domain alone over that at an even mixture; measured once: 2 log 25 = 6.4."""
SHARED = (0.5, 0.8, 0.95)
"""Share c of the misses that all scales have in common."""
PRIOR_RUNS = 2.0
"""sigma^2 is drawn to the misses' own variance as if by this many runs: three runs that fit well prove little."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Discrepancy:
    """Fitted: length, noise (over sigma^2), rise and shared on the grids above; sigma; the places measured."""

    length: float
    noise: float
    rise: float
    shared: float
    sigma: float
    places: Points

    def covariance(self, points: Points) -> Floats:
        """[n, n]: of the law's errors at points, given the runs measured."""
        prior = _kernel(points, points, self.length, self.shared)
        across = _kernel(points, self.places, self.length, self.shared)
        among = _kernel(self.places, self.places, self.length, self.shared)
        among[np.diag_indices_from(among)] += self.noise * growth(self.places.weights, self.rise) + 1e-9
        return np.asarray(self.sigma**2 * (prior - across @ np.linalg.solve(among, across.T)))

    def noise_variance(self, points: Points) -> Floats:
        """[n]: of one measurement."""
        return np.asarray(self.sigma**2 * self.noise * growth(points.weights, self.rise))


def fit_discrepancy(points: Points, misses: Floats, noise_variance: float = np.nan) -> Discrepancy:
    """The likeliest of the grid for misses [n] at points. noise_variance: known from replicates, or NaN."""
    one_scale = np.ptp(_logs(points), axis=0).max() < 0.02
    best = (-np.inf, 0.0, 0.0, 0.0, 0.0, 0.0)
    spread = float(np.mean(misses**2))
    for length, shared in product(LENGTHS, SHARED[:1] if one_scale else SHARED):
        kernel = _kernel(points, points, length, shared)
        for rise in RISES:
            # With D the noise's growth, D^-1/2 K D^-1/2 + noise I has one decomposition for all noises.
            roots = np.sqrt(growth(points.weights, rise))
            sizes, vectors = np.linalg.eigh(kernel / np.outer(roots, roots))
            turned = (vectors.T @ (misses / roots)) ** 2
            for noise in NOISES:
                total = np.maximum(sizes, 0) + noise
                count = len(misses) + PRIOR_RUNS
                sigma2 = ((turned / total).sum() + PRIOR_RUNS * spread / (1 + noise)) / count
                told = -0.5 * (count * np.log(max(sigma2, 1e-300)) + np.log(total).sum() + 2 * np.log(roots).sum())
                if np.isfinite(noise_variance) and noise_variance > 0:
                    # Replicates tell the noise to within a factor: a soft pull in its logarithm.
                    told -= 0.5 * (np.log(max(sigma2 * noise, 1e-300) / noise_variance)) ** 2
                if told > best[0]:
                    best = (told, length, noise, rise, shared, float(np.sqrt(sigma2)))
    _, length, noise, rise, shared, sigma = best
    return Discrepancy(length=length, noise=noise, rise=rise, shared=shared, sigma=sigma, places=points)


def growth(weights: Floats, rise: float) -> Floats:
    """[n]: variance of the noise, over an even mixture's: 1 there, e^rise at a domain alone."""
    count = weights.shape[1]
    alone = ((weights**2).sum(axis=1) - 1 / count) / max(1 - 1 / count, 1e-9)
    return np.asarray(np.exp(rise * alone))


def _kernel(some: Points, others: Points, length: float, shared: float) -> Floats:
    between = (_logs(some)[:, None] - _logs(others)[None]) / np.log(10)
    alike = np.exp(-(between**2).sum(axis=2) / 2)
    return np.asarray(matern(some.weights, others.weights, length) * (shared + (1 - shared) * alike))


def _logs(points: Points) -> Floats:
    """[n, 2]: log N and log D; unknown ones are 0, alike for all."""
    table = np.stack([points.parameters, points.tokens], axis=1)
    return np.asarray(np.log(np.where(np.isfinite(table) & (table > 0), table, 1.0)))
