"""Shared-exponent power law: domains add up, each with diminishing returns of one exponent, to one power-law loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mixing.laws.robust import FIXED, Prior
from mixing.laws.robust_law import RobustLaw, by_domain
from mixing.observations.points import Floats

C, A, B, G, E, S = range(6)
"""Columns of theta: c, log of the amplitude, log b, logit g, log e; from S on log s_j. S is the last, m wide."""

LEAST_FLOOR = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedPower(RobustLaw):
    """L = c + a (sum_j s_j (w_j + e)^g)^-b, with s_j > 0, b > 0, 0 < g < 1, e > 0.

    Convex in w: (w_j + e)^g is concave for g in (0, 1], so is their positive sum S; S^-b is convex and decreasing, and
    a convex decreasing function of a concave one is convex.

    e stands for weights that are rounded to 0 and for what the other domains hold of this one; it keeps the slope at
    w_j = 0 finite (g s_j e^(g-1) in S), and is fitted, at least LEAST_FLOOR.
    """

    name: ClassVar[str] = "shared_power"
    equation: ClassVar[str] = "L = c + a (sum_j s_j (w_j + e)^g)^-b"
    source: ClassVar[str] = (
        "power law of effective tokens with one exponent for all domains (POWG), own; cf. 2507.09404"
    )
    convex_equation: ClassVar[bool] = True

    @staticmethod
    def prior(domains: int) -> Prior:
        # Chosen on RegMix's training rows: fitted on n of the 512, judged on the others.
        return Prior(
            mean=np.r_[-2.5, 0, 0, 0, np.log(2e-4), np.zeros(domains)],
            group=np.r_[C, A, B, G, E, np.full(domains, S)],
            variance=np.array([10, 10, 1, 0.25, 10, 2]),
            counts=np.array([FIXED, FIXED, FIXED, FIXED, FIXED, 5]),
        )

    @staticmethod
    def starts(prior: Prior, domains: int) -> Floats:
        start = prior.mean.copy()
        start[A] = np.log(2)
        return start[None]

    @staticmethod
    def curve(theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        logs, floors, terms, total, power, g, b = _terms(theta, weights)
        jacobian = np.empty((*total.shape, theta.shape[1]))
        outer = (-b[:, None] * power / total)[:, :, None]
        jacobian[..., C], jacobian[..., A] = 1, power
        jacobian[..., B] = -b[:, None] * power * np.log(total)
        jacobian[..., S:] = outer * terms
        jacobian[..., G] = (jacobian[..., S:] * logs).sum(axis=2) * (g * (1 - g))[:, None]
        rise = (jacobian[..., S:] * np.exp(-logs)).sum(axis=2)
        jacobian[..., E] = rise * (g * (floors - LEAST_FLOOR))[:, None]
        return theta[:, [C]] + power, jacobian

    @staticmethod
    def slope(theta: Floats, weights: Floats) -> Floats:
        logs, _, terms, total, power, g, b = _terms(theta, weights)
        outer = (-b * g)[:, None] * power / total
        return np.asarray(outer[:, :, None] * terms * np.exp(-logs))

    def told(self) -> dict[str, Any]:
        """c, amplitude, b, g, e of each metric, and s by domain, in the metric's units."""
        return {
            metric: {
                "c": float(self.level[row] + self.scale[row] * theta[C]),
                "a": float(self.scale[row] * np.exp(theta[A])),
                "b": float(np.exp(theta[B])),
                "g": float(_squashed(theta[G])),
                "e": float(LEAST_FLOOR + np.exp(theta[E])),
                "s": by_domain(self.domains, np.exp(theta[S:])),
                "noise": float(self.noise[row]),
            }
            for row, (metric, theta) in enumerate(zip(self.metrics, self.theta, strict=True))
        }


def _squashed(number: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-number)))


def _terms(theta: Floats, weights: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats]:
    """log(w + e) [B, n, m], e [B], s (w + e)^g [B, n, m], their sum [B, n], a sum^-b [B, n], g and b [B]."""
    g, b, floors = _squashed(theta[:, G]), np.exp(theta[:, B]), LEAST_FLOOR + np.exp(theta[:, E])
    # A solver may step below 0 by a rounding error.
    logs = np.log(np.maximum(weights, 0)[None] + floors[:, None, None])
    terms = np.exp(g[:, None, None] * logs + theta[:, None, S:])
    total = terms.sum(axis=2)
    power = np.exp(theta[:, A, None] - b[:, None] * np.log(total))
    return logs, floors, terms, total, power, g, b
