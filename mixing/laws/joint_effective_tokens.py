"""Effective tokens: a mixture is worth so many tokens of the best kind, and loss falls with those."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from mixing.laws.joint_chinchilla import BY_PARAMETERS, IRREDUCIBLE, PARAMETERS_EXPONENT, falls
from mixing.laws.joint_law import JointLaw
from mixing.laws.joint_terms import Batch, Constant
from mixing.observations.points import Floats


class EffectiveTokens(JointLaw):
    """Small, and steadier than laws with free amplitudes where it extrapolates from two sizes.

    The mixture's effect shrinks as tokens grow; h lets parameters use tokens better or worse.
    """

    name: ClassVar[str] = "effective_tokens"
    equation: ClassVar[str] = "L = E + A/N^a + (D^c N^h sum_j(s_j w_j^g))^-b"
    source: ClassVar[str] = "after POWG (a shared exponent over domains) at one scale; measured here on SlimPajama runs"
    scalars: ClassVar[tuple[Constant, ...]] = (
        IRREDUCIBLE,
        BY_PARAMETERS,
        PARAMETERS_EXPONENT,
        Constant("b", math.log(0.3), 0.7),
        Constant("c", 0.0, 0.7),
        Constant("g", 0.0, 1.0, kind="unit"),
        Constant("h", 0.0, 0.5, kind="free"),
    )
    blocks: ClassVar[tuple[Constant, ...]] = (Constant("s", -math.log(0.3) / 0.3, 2.0),)

    @staticmethod
    def terms(batch: Batch) -> None:
        batch.add(batch.scalar("E"), {"E": np.ones(1)})
        falls(batch, "A", "a", batch.inputs.log_parameters)
        mixture = help_of(batch, batch.scalar("g"), batch.block("s"))
        rate, tokens = np.exp(batch.scalar("b")), np.exp(batch.scalar("c")) * batch.inputs.log_tokens
        effective = tokens + batch.scalar("h") * batch.inputs.log_parameters + mixture.logarithm
        by = {
            "b": -rate * effective,
            "c": -rate * tokens,
            "h": -rate * batch.inputs.log_parameters,
            "g": -rate * mixture.by_exponent,
            "s": -rate[..., None] * mixture.by_parts,
        }
        batch.add(-rate * effective, by, -rate[..., None] * mixture.by_weight)


class Help(NamedTuple):
    """Of S = sum_j s_j w_j^g: its logarithm [b, n], and that one's derivatives.

    S is concave in w, since g is within 0..1: minus its logarithm, and each negative power of it, is convex.
    by_parts: by the inner values of s, [b, n, m]. by_exponent: by the inner value of g, [b, n]. by_weight: [b, n, m].
    """

    logarithm: Floats
    by_parts: Floats
    by_exponent: Floats
    by_weight: Floats


def help_of(batch: Batch, exponent: Floats, parts: Floats) -> Help:
    """S of the inner values of g [b, 1] (logistic) and of s [b, 1, m] (exponential)."""
    power_of = 1 / (1 + np.exp(-exponent))
    power, by_weight, by_exponent = batch.powers(power_of[..., None])
    terms = np.exp(parts) * power
    total = terms.sum(axis=-1)
    shares = terms / total[..., None]
    return Help(
        logarithm=np.log(total),
        by_parts=shares,
        by_exponent=(shares * by_exponent).sum(axis=-1) * power_of * (1 - power_of),
        by_weight=shares * by_weight,
    )
