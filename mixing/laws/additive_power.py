"""Additive power law (Shukor et al.) at a fixed scale: each domain adds its own power of its weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mixing.laws.power_law import TIGHT, PowerLaw, TermPriors


@dataclass(frozen=True, kw_only=True, eq=False)
class AdditivePower(PowerLaw):
    """L = c + 1 / sum_j s_j (w_j + e)^g_j, with s_j > 0 and 0 < g_j < 1: convex in w.

    In the paper's letters c is E (which here holds its terms in N and D, constants at one scale) and s_j is C_j.
    Differs from it: g_j are kept in (0, 1), where the law is convex for sure, and drawn to a common exponent; e > 0
    keeps the slope at w_j = 0 finite. The 1 is one deviation of the metric, which told() has as `a`.
    """

    name: ClassVar[str] = "additive_power"
    equation: ClassVar[str] = "L = c + 1 / sum_j s_j (w_j + e)^g_j"
    source: ClassVar[str] = "Shukor et al. 2025, arXiv:2507.09404, additive law at fixed N and D"

    PRIORS: ClassVar[TermPriors] = TermPriors(a=(0.0, TIGHT), b=(0.0, TIGHT), g=(0.0, 1.0), bend=1.0)
    STARTS: ClassVar[tuple[tuple[float, float], ...]] = ((0.0, 0.0),)
