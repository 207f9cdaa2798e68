"""Shares with an interval, for reports: of planted answers, of pairs that a judge was asked about."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

LEVEL: Final = 0.95


@dataclass(frozen=True, kw_only=True)
class Rate:
    """count of total, and Wilson's 95% interval of the share (1927; it holds where count is 0 or all, too). Of a total
    of 0 nothing is known: the share is None and the interval is 0 to 1."""

    count: int
    total: int
    low: float
    high: float

    @property
    def share(self) -> float | None:
        """count / total."""
        return self.count / self.total if self.total else None


def rate(count: int, total: int) -> Rate:
    """The share of count in total with its interval."""
    if not total:
        return Rate(count=0, total=0, low=0.0, high=1.0)
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    share = count / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    # At none and at all the formula gives exactly 0 and 1, but for rounding.
    low, high = 0.0 if count == 0 else middle - half, 1.0 if count == total else middle + half
    return Rate(count=count, total=total, low=low, high=high)
