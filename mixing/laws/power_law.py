"""What the power laws have in common: a constant and one or more power terms, and priors on what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mixing.laws.power_term import A, G, Parameters, term, term_slope
from mixing.laws.robust import FIXED, Prior
from mixing.laws.robust_law import RobustLaw
from mixing.observations.points import Floats

TIGHT = 1e-10
"""Variance of what an equation holds fixed."""


@dataclass(frozen=True, kw_only=True)
class TermPriors:
    """Mean and variance of c, in deviations of the metric from its mean, and of each term's logarithms and logits.

    e: of log e; 2e-4 is below what weights of three decimals show. s: variance of log s_j, worth five domains' own.
    bend: variance of what a domain adds to the common logit of the exponents, likewise; None is one exponent for all.
    """

    c: tuple[float, float] = (-2.5, 10.0)
    a: tuple[float, float] = (0.0, 10.0)
    b: tuple[float, float]
    g: tuple[float, float]
    e: tuple[float, float] = (float(np.log(2e-4)), 10.0)
    s: float = 4.0
    bend: float | None

    COUNTS: ClassVar[float] = 5.0


class PowerLaw(RobustLaw):
    """L = c + the sum of one power term for each of STARTS: convex in w (power_term says why).

    theta: c, then the columns of each term. PRIORS were chosen on RegMix's training rows, fitted on n of the 512 and
    judged on the others; twice or half of any changes the mean absolute error there by about 2% at most from n=64 on.
    STARTS: log a and logit g of each term where descent begins, apart so that the terms do not stay the same. From
    three starts far apart one term's error is the same: one will do.
    """

    PRIORS: ClassVar[TermPriors]
    STARTS: ClassVar[tuple[tuple[float, float], ...]]
    convex_equation: ClassVar[bool] = True

    @classmethod
    def prior(cls, domains: int) -> Prior:
        priors, bends, terms = cls.PRIORS, cls.PRIORS.bend is not None, len(cls.STARTS)
        scalars = (priors.a, priors.b, priors.g, priors.e)
        wide = np.zeros(domains * (2 if bends else 1))
        own = np.r_[[mean for mean, _ in scalars], wide]
        # Groups: c, a, b, g, e; log s_j of the first term, of the others; and what is added to the logits, likewise.
        first = np.r_[1:5, np.full(domains, 5), np.full(domains if bends else 0, 6)]
        other = np.r_[1:5, np.full(domains, 7), np.full(domains if bends else 0, 8)]
        bend = priors.bend or 1.0
        counts = TermPriors.COUNTS
        return Prior(
            mean=np.r_[priors.c[0], np.tile(own, terms)],
            group=np.r_[0, first, np.tile(other, terms - 1)].astype(np.int64),
            variance=np.r_[priors.c[1], [variance for _, variance in scalars], priors.s, bend, priors.s, bend],
            counts=np.r_[np.full(5, FIXED), np.full(4, counts)],
        )

    @classmethod
    def starts(cls, prior: Prior, domains: int) -> Floats:
        start = prior.mean.copy()
        for one, (amplitude, logit) in zip(cls._terms(start[None]), cls.STARTS, strict=True):
            one[:, A], one[:, G] = amplitude, logit
        return start[None]

    @classmethod
    def curve(cls, theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        values = np.repeat(theta[:, :1], len(weights), axis=1)
        jacobian = np.ones((*values.shape, theta.shape[1]))
        width = (theta.shape[1] - 1) // len(cls.STARTS)
        for number, one in enumerate(cls._terms(theta)):
            added, columns = term(one, weights)
            values += added
            jacobian[..., 1 + number * width : 1 + (number + 1) * width] = columns
        return values, jacobian

    @classmethod
    def slope(cls, theta: Floats, weights: Floats) -> Floats:
        return np.asarray(sum(term_slope(one, weights) for one in cls._terms(theta)))

    @classmethod
    def _terms(cls, theta: Floats) -> list[Floats]:
        """Views of each term's columns."""
        return np.split(theta[:, 1:], len(cls.STARTS), axis=1)

    def told(self) -> dict[str, Any]:
        """c, noise and the terms (a, b, e, and g and s by domain) of each metric; c, a and noise in its units."""
        return {metric: self._told(row) for row, metric in enumerate(self.metrics)}

    def _told(self, row: int) -> dict[str, Any]:
        terms = [Parameters.of(one, len(self.domains)).told(self.domains) for one in self._terms(self.theta[[row]])]
        scale = float(self.scale[row])
        return {
            "c": float(self.level[row]) + scale * float(self.theta[row, 0]),
            "noise": float(self.noise[row]),
            "terms": [{**constants, "a": scale * constants["a"]} for constants in terms],
        }
