"""Shared-exponent power law: domains add up, each with diminishing returns of one exponent, to one power-law loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixing.laws.power_law import PowerLaw, TermPriors


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedPower(PowerLaw):
    """L = c + a (sum_j s_j (w_j + e)^g)^-b, with s_j > 0, b > 0, 0 < g < 1, e > 0: convex in w."""

    name: ClassVar[str] = "shared_power"
    equation: ClassVar[str] = "L = c + a (sum_j s_j (w_j + e)^g)^-b"
    source: ClassVar[str] = "own: a power law of effective tokens, one exponent for all domains; cf. arXiv:2507.09404"

    PRIORS: ClassVar[TermPriors] = TermPriors(b=(-1.2, 0.5), g=(0.0, 0.15), bend=None)
    STARTS: ClassVar[tuple[tuple[float, float], ...]] = ((float(np.log(2)), 0.0),)
