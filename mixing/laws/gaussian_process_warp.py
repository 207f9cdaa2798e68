"""A metric as the Gaussian process sees it: log(metric - floor), so that the process never predicts below the floor.

Losses are a floor plus a power of something, so their logarithm above the floor is nearer to a line, and noise nearer
to even. The floor lies below the lowest measured value by `depth` times the mean height above that lowest value; depth
is learned with the rest (a deep floor leaves the metric as it is).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from mixing.observations.points import Floats

CONSTANT_SPREAD = 1e-3
"""Share of its size that a metric which never changed may plausibly change elsewhere."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Heights:
    """One metric measured n times. lowest: its minimum; height: mean above it; above: [n], y - lowest."""

    lowest: float
    height: float
    above: Floats

    @classmethod
    def of(cls, values: Floats) -> Self:
        lowest = float(values.min())
        above = values - lowest
        height = float(above.mean())
        if height <= abs(lowest) * 1e-13:
            share = 1.0 if len(values) == 1 else CONSTANT_SPREAD
            return cls(lowest=lowest, height=share * abs(lowest) or share, above=np.zeros(len(values)))
        return cls(lowest=lowest, height=height, above=above)

    def warp(self, depth: float) -> Warp:
        logs = np.log(self.above + depth * self.height)
        spread = float(logs.std())
        return Warp(
            floor=self.lowest - depth * self.height,
            level=float(logs.mean()),
            spread=spread if self.above.any() else 1.0,
        )

    def standard(self, depth: float) -> tuple[Floats, float, Floats, float]:
        """Of log depth: z [n], -log |dz/dy| summed over rows, and the derivatives of both by log depth."""
        count = len(self.above)
        over = self.above + depth * self.height
        logs, rise = np.log(over), depth * self.height / over
        if not self.above.any():
            return np.zeros(count), 0.0, np.zeros(count), 0.0
        spread = logs.std()
        z = (logs - logs.mean()) / spread
        turn = float(z @ rise) / count
        by_depth = (rise - rise.mean() - z * turn) / spread
        cost = float(logs.sum() + count * np.log(spread))
        return z, cost, by_depth, float(rise.sum() + count * turn / spread)


@dataclass(frozen=True, kw_only=True, eq=False)
class Warp:
    """metric = floor + exp(level + spread z)"""

    floor: float
    level: float
    spread: float

    def value(self, z: Floats) -> Floats:
        return np.asarray(self.floor + np.exp(self.level + self.spread * z))

    def slope(self, z: Floats) -> Floats:
        """d metric / d z"""
        return np.asarray(self.spread * np.exp(self.level + self.spread * z))

    def z(self, values: Floats) -> Floats:
        """Inverse of value; what lies at the floor or below counts as just above it."""
        least = 1e-6 * np.exp(self.level)
        return np.asarray((np.log(np.maximum(values - self.floor, least)) - self.level) / self.spread)
