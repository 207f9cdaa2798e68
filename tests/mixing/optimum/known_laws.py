"""Laws that are known, to hold optima against: convex, with several valleys, of steps, and straight."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, Points


class Known(Law):
    """k metrics of m domains, drawn from a seed."""

    name: ClassVar[str] = "known"
    equation: ClassVar[str] = "known"
    source: ClassVar[str] = "these tests"

    def __init__(self, domains: int, metrics: int = 1, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.domains = tuple(f"d{number:02d}" for number in range(domains))
        self.metrics = tuple(f"loss-{number}" for number in range(metrics))
        self.drawn()

    def drawn(self) -> None:
        """Draw what the law needs."""

    @classmethod
    def fit(cls, observations: Observations, *, seed: int = 0) -> Self:
        raise NotImplementedError


class Power(Known):
    """c + (sum s (w + e)^g)^-b: convex, and steep where a weight is 0."""

    def drawn(self) -> None:
        shape = (len(self.metrics), len(self.domains))
        self.share = self.random.lognormal(0, 1.5, shape)
        self.exponent = self.random.uniform(0.2, 0.9, len(self.metrics))
        self.floor = 10 ** self.random.uniform(-6, -2, len(self.metrics))
        self.level = self.random.uniform(1, 3, len(self.metrics))

    def mean(self, points: Points) -> Floats:
        return np.asarray(self.level + self._total(points)[0] ** -0.5)

    def gradient(self, points: Points) -> Floats:
        total, base = self._total(points)
        inner = self.share * self.exponent[:, None] * base ** (self.exponent[:, None] - 1)
        return np.asarray(-0.5 * total[:, :, None] ** -1.5 * inner)

    def _total(self, points: Points) -> tuple[Floats, Floats]:
        base = points.weights[:, None, :] + self.floor[:, None]
        return np.einsum("km,nkm->nk", self.share, base ** self.exponent[:, None]), base

    @property
    def convex(self) -> npt.NDArray[np.bool_]:
        return np.ones(len(self.metrics), np.bool_)


class Straight(Known):
    """c . w."""

    def drawn(self) -> None:
        self.slope = self.random.standard_normal((len(self.metrics), len(self.domains)))

    def mean(self, points: Points) -> Floats:
        return np.asarray(points.weights @ self.slope.T)

    def gradient(self, points: Points) -> Floats:
        return np.broadcast_to(self.slope, (len(points), *self.slope.shape))

    @property
    def convex(self) -> npt.NDArray[np.bool_]:
        return np.ones(len(self.metrics), np.bool_)


class Valleys(Known):
    """3 - sum of bumps: several minima."""

    def drawn(self) -> None:
        self.middles = self.random.dirichlet(np.full(len(self.domains), 0.7), (len(self.metrics), 4))
        self.depths = self.random.uniform(0.3, 1, (len(self.metrics), 4))
        self.widths = self.random.uniform(0.15, 0.35, (len(self.metrics), 4))

    def _bumps(self, points: Points) -> tuple[Floats, Floats]:
        away = points.weights[:, None, None, :] - self.middles
        return self.depths * np.exp(-(away**2).sum(axis=3) / (2 * self.widths**2)), away

    def mean(self, points: Points) -> Floats:
        return np.asarray(3 - self._bumps(points)[0].sum(axis=2))

    def gradient(self, points: Points) -> Floats:
        bumps, away = self._bumps(points)
        return np.einsum("nkb,nkbm->nkm", bumps / self.widths**2, away)


class Steps(Power):
    """The power law in steps, without slopes, as trees have it."""

    def mean(self, points: Points) -> Floats:
        return np.asarray(np.round(super().mean(points), 2))

    def gradient(self, points: Points) -> Floats:
        return np.zeros((len(points), len(self.metrics), len(self.domains)))

    @property
    def convex(self) -> npt.NDArray[np.bool_]:
        return np.zeros(len(self.metrics), np.bool_)


class Banded(Power):
    """The power law with intervals that widen away from even weights, as a fit tells them."""

    def predict(self, points: Points) -> Any:
        import pyarrow as pa

        mean = self.mean(points)
        half = 0.05 + ((points.weights - 1 / len(self.domains)) ** 2).sum(axis=1)

        class Told:
            low = pa.table({name: mean[:, k] - half for k, name in enumerate(self.metrics)})
            high = pa.table({name: mean[:, k] + half for k, name in enumerate(self.metrics)})
            warnings = ("d00: far from all runs",)

        return Told


def grid(domains: int, parts: int) -> Floats:
    """Every mixture of three domains in steps of 1 / parts."""
    assert domains == 3
    first, second = np.meshgrid(np.arange(parts + 1), np.arange(parts + 1), indexing="ij")
    kept = first + second <= parts
    rows = np.stack([first[kept], second[kept], parts - first[kept] - second[kept]], axis=1)
    return np.asarray(rows / parts)
