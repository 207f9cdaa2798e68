"""How far a law may be off, and where: a Gaussian process over what the law missed in cross-validation.

Laws tell a mean; a design needs to know how the errors at two mixtures go together. What a law missed on runs held out
from it tells both its wrong form and its constants' errors, whatever the law is: trees and averages have one, too.

    miss(w, s) = sigma h(w, s) + noise;  h: Matern 5/2 in sqrt(w), times c + (1 - c) exp(-d^2 / 2) over scales,
    d: distance in (log N, log D) in units of a factor of 10;  log noise rises with how concentrated a mixture is

Length, noise, its rise and c are averaged over a grid by their posterior, sigma in closed form: no optimiser, no
starts, the same on every machine. The likeliest alone is not enough: a dozen misses often look like noise and nothing
else, or like a surface with none. Rise of the noise: marin-community/marin#2345 measured a factor of 25.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby, product

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


USUAL_LENGTH, LENGTH_FACTOR = 0.7, 0.7
"""Of the lengths before the misses are seen, and the standard deviation of its logarithm."""
LEAST_SHARE = 0.05
"""Grid points whose posterior is below this share of the best one's are left out."""


@dataclass(frozen=True, kw_only=True)
class Guess:
    """Of the noise's variance at an even mixture, before the misses are seen; factor: standard deviation of its log."""

    variance: float
    factor: float


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A point of the grid. noise: over sigma^2. share: its posterior probability among those that are kept."""

    length: float
    shared: float
    rise: float
    noise: float
    sigma: float
    share: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Discrepancy:
    """Fitted: the settings kept, and the places measured."""

    settings: tuple[Setting, ...]
    places: Points

    @property
    def nothing(self) -> bool:
        """The law missed nothing at all: constant or exact values."""
        return all(one.sigma == 0 for one in self.settings)

    def covariance(self, points: Points) -> Floats:
        """[n, n]: of the law's errors at points, given the runs measured."""
        total = np.zeros((len(points), len(points)))
        for (length, shared), same in groupby(self.settings, key=lambda one: (one.length, one.shared)):
            prior = _kernel(points, points, length, shared)
            across = _kernel(points, self.places, length, shared)
            among = _kernel(self.places, self.places, length, shared)
            for one in same:
                noise = np.diag(one.noise * growth(self.places.weights, one.rise) + 1e-9)
                known = across @ np.linalg.solve(among + noise, across.T)
                total += one.share * one.sigma**2 * (prior - known)
        return total

    def noise_variance(self, points: Points) -> Floats:
        """[n]: of a measurement: the settings' harmonic mean, so that it tells as much as it does on average."""
        told = sum(
            one.share / np.maximum(one.sigma**2 * one.noise * growth(points.weights, one.rise), 1e-300)
            for one in self.settings
        )
        return np.asarray(1 / told)


def fit_discrepancy(points: Points, misses: Floats, guess: Guess) -> Discrepancy:
    """Of misses [n] at points, with what is known of the noise beforehand."""
    one_scale = np.ptp(_logs(points), axis=0).max() < 0.02
    spread = float(np.mean(misses**2))
    found: list[tuple[float, Setting]] = []
    for length, shared in product(LENGTHS, SHARED[:1] if one_scale else SHARED):
        kernel = _kernel(points, points, length, shared)
        far = np.log(length / USUAL_LENGTH) / LENGTH_FACTOR
        for rise in RISES:
            # With D the noise's growth, D^-1/2 K D^-1/2 + noise I has one decomposition for all noises.
            roots = np.sqrt(growth(points.weights, rise))
            sizes, vectors = np.linalg.eigh(kernel / np.outer(roots, roots))
            turned = (vectors.T @ (misses / roots)) ** 2
            for noise in NOISES:
                total = np.maximum(sizes, 0) + noise
                count = len(misses) + PRIOR_RUNS
                variance = ((turned / total).sum() + PRIOR_RUNS * spread / (1 + noise)) / count
                told = count * np.log(max(variance, 1e-300)) + np.log(total).sum() + 2 * np.log(roots).sum()
                off = np.log(max(variance * noise, 1e-300) / guess.variance) / guess.factor
                setting = Setting(
                    length=length, shared=shared, rise=rise, noise=noise, sigma=float(np.sqrt(variance)), share=1.0
                )
                found.append((-0.5 * float(told + far**2 + off**2), setting))
    best = max(told for told, _ in found)
    kept = [(np.exp(told - best), one) for told, one in found if told > best + np.log(LEAST_SHARE)]
    whole = sum(share for share, _ in kept)
    return Discrepancy(settings=tuple(replace(one, share=float(share / whole)) for share, one in kept), places=points)


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
