"""Covariance of a Gaussian process over mixtures: Matern-5/2 on features of the weights, and lines in their roots.

    k(x, x') = a^2 M(r) + sum_q v_q f_q(x) f_q(x'),   r^2 = sum_d ((x_d - x'_d) / l_d)^2,
    M(r) = (1 + sqrt5 r + 5/3 r^2) exp(-sqrt5 r)      (Rasmussen and Williams 2006, eq. 4.17)

x: of each weight its root and its logarithm, both finite, with finite slopes, at a weight of 0; f: 1 and the roots.
log N and log D are one x and one f each where a law uses them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mixing.observations.points import Floats, MixingError, Points

OFFSET = 0.001
"""Added to a weight before root and logarithm. Compared on parts of RegMix's training table: .0005 to .001 were alike
(mean absolute error .086 to .087 at 64 runs), .002 worse (.091), .005 and .01 much worse; that table has 3 decimals."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Features:
    """Of n points. curved: [n, p], of the Matern part. straight: [n, q], of the linear part, the first column 1."""

    curved: Floats
    straight: Floats

    def __len__(self) -> int:
        return len(self.curved)

    def rows(self, chosen: Any) -> Features:
        return Features(curved=self.curved[chosen], straight=self.straight[chosen])

    def joined(self, other: Features) -> Features:
        return Features(
            curved=np.concatenate([self.curved, other.curved]),
            straight=np.concatenate([self.straight, other.straight]),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureMap:
    """From points to Features. domains: sorted, so that their order in a table changes nothing. level, unit: [2] mean
    and spread of log N and log D where they are used, else None."""

    domains: tuple[str, ...]
    level: Floats | None
    unit: Floats | None

    @classmethod
    def of(cls, points: Points, *, scaled: bool) -> Self:
        """Raises MixingError where N or D is needed and unknown."""
        domains = tuple(sorted(points.domains))
        if not scaled:
            return cls(domains=domains, level=None, unit=None)
        logs = scale_logs(points)
        unit = logs.std(axis=0)
        return cls(domains=domains, level=logs.mean(axis=0), unit=np.where(unit > 0, unit, 1.0))

    def __call__(self, points: Points) -> Features:
        shares = points.aligned(self.domains).weights + OFFSET
        root, logarithm = np.sqrt(shares), np.log(shares)
        curved, straight = [2 * root, logarithm / 3], [np.ones((len(points), 1)), 2 * root]
        if self.level is not None and self.unit is not None:
            scale = (scale_logs(points) - self.level) / self.unit
            curved.append(scale)
            straight.append(scale)
        return Features(curved=np.concatenate(curved, axis=1), straight=np.concatenate(straight, axis=1))

    def by_weight(self, points: Points, curved: Floats, straight: Floats) -> Floats:
        """[n, m]: derivatives by the points' weights, of derivatives by curved [n, p] and straight [n, q] features."""
        count = len(self.domains)
        shares = points.aligned(self.domains).weights + OFFSET
        by_root = curved[:, :count] + straight[:, 1 : 1 + count]
        slopes = by_root / np.sqrt(shares) + curved[:, count : 2 * count] / (3 * shares)
        return np.asarray(slopes[:, [self.domains.index(name) for name in points.domains]])


def scale_logs(points: Points) -> Floats:
    """[n, 2]: log N and log D. Raises MixingError where one is unknown."""
    for name, values in (("parameters", points.parameters), ("tokens", points.tokens)):
        bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
        if len(bad):
            raise MixingError(
                f"gaussian_process_scaled: {name} of row {bad[0] + 1} is {values[bad[0]]}; "
                "give every run's, or fit one scale with gaussian_process"
            )
    return np.log(np.column_stack([points.parameters, points.tokens]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Kernel:
    """lengths: [p] l_d. amplitude: a^2. slopes: [q] v_q, the first of them the constant's."""

    lengths: Floats
    amplitude: float
    slopes: Floats

    def parts(self, left: Features, right: Features) -> tuple[Floats, Floats]:
        """M(r), and -dM/d(r^2) * 6/5 = (1 + sqrt5 r) exp(-sqrt5 r): each [n, n']."""
        one, other = left.curved / self.lengths, right.curved / self.lengths
        # The middle of all is 0: squares of small numbers lose less.
        middle = other.mean(axis=0)
        one, other = one - middle, other - middle
        squares = np.einsum("ij,ij->i", one, one)[:, None] + np.einsum("ij,ij->i", other, other) - 2 * one @ other.T
        distance = np.sqrt(5 * np.maximum(squares, 0, out=squares), out=squares)
        decay = np.exp(-distance)
        slope = (1 + distance) * decay
        distance *= distance
        distance *= decay
        distance /= 3
        distance += slope
        return distance, slope

    def __call__(self, left: Features, right: Features) -> Floats:
        """[n, n']"""
        matern, _ = self.parts(left, right)
        return np.asarray(self.amplitude * matern + (left.straight * self.slopes) @ right.straight.T)

    def variance(self, points: Features) -> Floats:
        """[n]: k(x, x)."""
        return np.asarray(self.amplitude + np.square(points.straight) @ self.slopes)

    def pulled(self, left: Features, right: Features, coefficients: Floats) -> tuple[Floats, Floats]:
        """Derivatives of sum_i c_i k(x, x'_i) by the features of x: [n, p] and [n, q].

        coefficients: [n'], or [n, n'] where each x has its own.
        """
        _, slope = self.parts(left, right)
        weighted = slope * coefficients
        drawn = left.curved * weighted.sum(axis=1)[:, None] - weighted @ right.curved
        curved = -self.amplitude * 5 / 3 * drawn / np.square(self.lengths)
        summed = np.atleast_2d(coefficients) @ right.straight
        return curved, np.broadcast_to(summed * self.slopes, left.straight.shape)
