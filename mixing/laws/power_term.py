"""The term that the power laws are made of: a (sum_j s_j (w_j + e)^g_j)^-b, convex in w, with its derivatives.

Why convex: for g_j in (0, 1) each (w_j + e)^g_j is concave, and so is their sum S with s_j > 0; S^-b is convex and
decreasing for b > 0, and a convex decreasing function of a concave one is convex. Sums of such terms are convex, too.

e stands for weights that were rounded to 0 and for what the other domains hold of this one. It keeps the slope at
w_j = 0 finite (g_j s_j e^(g_j-1) in S), and is at least LEAST_FLOOR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixing.laws.robust_law import by_domain
from mixing.observations.points import Floats

A, B, G, E, S = range(5)
"""Columns of a term's theta [B, 4 + m or 4 + 2 m]: log a, log b, common logit of the exponents, log e; from S on
log s_j (m wide); then, where exponents differ by domain, what each adds to the logit (m wide)."""

LEAST_FLOOR = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Parameters:
    """a, b, e: [B]. g, s: [B, m]."""

    a: Floats
    b: Floats
    e: Floats
    g: Floats
    s: Floats

    @classmethod
    def of(cls, theta: Floats, domains: int) -> Parameters:
        logits = theta[:, [G]] + (theta[:, S + domains :] if theta.shape[1] > S + domains else np.zeros((1, domains)))
        return cls(
            a=np.exp(theta[:, A]),
            b=np.exp(theta[:, B]),
            e=LEAST_FLOOR + np.exp(theta[:, E]),
            g=1 / (1 + np.exp(-logits)),
            s=np.exp(theta[:, S : S + domains]),
        )

    def told(self, domains: tuple[str, ...]) -> dict[str, Any]:
        """Of the first problem, as JSON values."""
        numbers: dict[str, Any] = {name: float(getattr(self, name)[0]) for name in ("a", "b", "e")}
        return numbers | {"g": by_domain(domains, self.g[0]), "s": by_domain(domains, self.s[0])}


def term(theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Values [B, n] and their Jacobian by theta [B, n, 4 + m or 4 + 2 m] at weights [n, m]."""
    domains = weights.shape[1]
    known = Parameters.of(theta, domains)
    shifted, logs, powers, total, value = _parts(known, weights)
    jacobian = np.empty((*total.shape, theta.shape[1]))
    jacobian[..., A] = value
    jacobian[..., B] = -known.b[:, None] * value * np.log(total)
    outer = -known.b[:, None] * value / total
    own = jacobian[..., S : S + domains] = outer[:, :, None] * powers
    bend = own * logs * (known.g * (1 - known.g))[:, None]
    jacobian[..., G] = bend.sum(axis=2)
    jacobian[..., S + domains :] = bend[..., : theta.shape[1] - S - domains]
    jacobian[..., E] = (own * known.g[:, None] / shifted).sum(axis=2) * (known.e - LEAST_FLOOR)[:, None]
    return value, jacobian


def term_slope(theta: Floats, weights: Floats) -> Floats:
    """[B, n, m]: derivative of the term by the weights."""
    known = Parameters.of(theta, weights.shape[1])
    shifted, _, powers, total, value = _parts(known, weights)
    return np.asarray((-known.b[:, None] * value / total)[:, :, None] * powers * known.g[:, None] / shifted)


def _parts(known: Parameters, weights: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """w + e, its log, s (w + e)^g (all [B, n, m]), their sum S and a S^-b ([B, n])."""
    # A solver may step below 0 by a rounding error.
    shifted = np.maximum(weights, 0)[None] + known.e[:, None, None]
    logs = np.log(shifted)
    powers = known.s[:, None] * np.exp(known.g[:, None] * logs)
    total = powers.sum(axis=2)
    return shifted, logs, powers, total, known.a[:, None] * np.exp(-known.b[:, None] * np.log(total))
