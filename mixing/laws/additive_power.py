"""Additive power law (Shukor et al.) at a fixed scale: each domain adds its own power of its weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mixing.laws.robust import FIXED, Prior
from mixing.laws.robust_law import RobustLaw, by_domain
from mixing.observations.points import Floats

C, G, E, S = range(4)
"""Columns of theta: E, common logit of the exponents, log e; from S on log C_j (m wide), then what logit g_j adds."""

LEAST_FLOOR = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class AdditivePower(RobustLaw):
    """L = E + 1 / sum_j C_j (w_j + e)^g_j, with C_j > 0 and 0 < g_j < 1.

    The terms in N and D of the published law are constants at one scale and part of E. Differs from it: g_j are kept
    in (0, 1), where the law is convex in w (1 / S of a positive concave S), and drawn to a common exponent; e > 0 keeps
    the slope at w_j = 0 finite.
    """

    name: ClassVar[str] = "additive_power"
    equation: ClassVar[str] = "L = E + 1 / sum_j C_j (w_j + e)^g_j"
    source: ClassVar[str] = "Shukor et al. 2025, arXiv:2507.09404, additive law at fixed N and D"
    convex_equation: ClassVar[bool] = True

    @staticmethod
    def prior(domains: int) -> Prior:
        # Chosen on RegMix's training rows: fitted on n of the 512, judged on the others.
        return Prior(
            mean=np.r_[-2.5, 0, np.log(2e-4), np.zeros(2 * domains)],
            group=np.r_[C, G, E, np.full(domains, S), np.full(domains, S + 1)],
            variance=np.array([10, 1, 10, 2, 0.1]),
            counts=np.array([FIXED, FIXED, FIXED, 5, FIXED]),
        )

    @staticmethod
    def starts(prior: Prior, domains: int) -> Floats:
        return prior.mean[None]

    @staticmethod
    def curve(theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        logs, floors, terms, total, g = _terms(theta, weights)
        domains = weights.shape[1]
        jacobian = np.empty((*total.shape, theta.shape[1]))
        jacobian[..., C] = 1
        own = jacobian[..., S : S + domains] = -terms / (total**2)[:, :, None]
        bend = jacobian[..., S + domains :] = own * logs * (g * (1 - g))[:, None]
        jacobian[..., G] = bend.sum(axis=2)
        rise = (own * g[:, None] * np.exp(-logs)).sum(axis=2)
        jacobian[..., E] = rise * (floors - LEAST_FLOOR)[:, None]
        return theta[:, [C]] + 1 / total, jacobian

    @staticmethod
    def slope(theta: Floats, weights: Floats) -> Floats:
        logs, _, terms, total, g = _terms(theta, weights)
        return np.asarray(-terms * g[:, None] * np.exp(-logs) / (total**2)[:, :, None])

    def told(self) -> dict[str, Any]:
        """E, e, and C and g by domain, of each metric; 1 / C is in the metric's units."""
        domains = len(self.domains)
        scale = np.where(self.scale > 0, self.scale, 1)
        return {
            metric: {
                "E": float(self.level[row] + self.scale[row] * theta[C]),
                "e": float(LEAST_FLOOR + np.exp(theta[E])),
                "C": by_domain(self.domains, np.exp(theta[S : S + domains]) / scale[row]),
                "g": by_domain(self.domains, _exponents(theta[None], domains)[0]),
                "noise": float(self.noise[row]),
            }
            for row, (metric, theta) in enumerate(zip(self.metrics, self.theta, strict=True))
        }


def _exponents(theta: Floats, domains: int) -> Floats:
    return np.asarray(1 / (1 + np.exp(-(theta[:, [G]] + theta[:, S + domains :]))))


def _terms(theta: Floats, weights: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """log(w + e) [B, n, m], e [B], C (w + e)^g [B, n, m], their sum [B, n], g [B, m]."""
    domains = weights.shape[1]
    g, floors = _exponents(theta, domains), LEAST_FLOOR + np.exp(theta[:, E])
    # A solver may step below 0 by a rounding error.
    logs = np.log(np.maximum(weights, 0)[None] + floors[:, None, None])
    terms = np.exp(g[:, None] * logs + theta[:, None, S : S + domains])
    return logs, floors, terms, terms.sum(axis=2), g
