"""Effective tokens: a mixture is worth so many tokens of the best kind, and loss falls with those."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from mixing.laws.joint_chinchilla import BY_PARAMETERS, IRREDUCIBLE, PARAMETERS_EXPONENT, falls
from mixing.laws.joint_law import Batch, Constant, JointLaw
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
        total, by_help, by_exponent, by_weight = shared_sum(batch)
        rate, tokens = np.exp(batch.scalar("b")), np.exp(batch.scalar("c")) * batch.inputs.log_tokens
        effective = tokens + batch.scalar("h") * batch.inputs.log_parameters + total
        by = {
            "b": -rate * effective,
            "c": -rate * tokens,
            "h": -rate * batch.inputs.log_parameters,
            "g": -rate * by_exponent,
            "s": -rate[..., None] * by_help,
        }
        batch.add(-rate * effective, by, -rate[..., None] * by_weight)


def shared_sum(batch: Batch) -> tuple[Floats, Floats, Floats, Floats]:
    """log of S = sum_j s_j w_j^g ([b, n]), and its derivatives by s [b, n, m], g [b, n] and w [b, n, m].

    S is concave in w, since g is within 0..1: minus its logarithm, and each negative power of it, is convex.
    """
    exponent = 1 / (1 + np.exp(-batch.scalar("g")))
    power, by_weight, by_exponent = batch.powers(exponent[..., None])
    parts = np.exp(batch.block("s")) * power
    total = parts.sum(axis=-1)
    shares = parts / total[..., None]
    return np.log(total), shares, (shares * by_exponent).sum(axis=-1) * exponent * (1 - exponent), shares * by_weight
