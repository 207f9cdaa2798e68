"""One help of domains in every term of a scaling law: the shared-exponent power law carried over to (w, N, D)."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from mixing.laws.joint_effective_tokens import Help, help_of
from mixing.laws.joint_law import JointLaw
from mixing.laws.joint_terms import Batch, Constant
from mixing.observations.points import Floats

THIRD, LOSS_THIRD = math.log(0.33), math.log(0.3)


class JointSharedPower(JointLaw):
    """S tells how much a mixture helps a metric; each term that scale shrinks falls with it at its own rate.

    What remains at any scale falls with a sum of its own, whose parts are drawn to those of S (k_j to 1): a metric that
    is several tasks in one, such as a chat loss, gains from other domains in the end than it gains speed from.

    The last term is what a run has not yet learned early on: it falls with about D^1.5 and is gone at the end. Without
    it checkpoints of a run, whose rate of learning was still high, drive the exponent of D to 1, and what extrapolates
    to longer runs and larger models is the shape of a schedule. Convex in the mixture: g is within 0..1.

    Priors: exponents of N and D about .33 (.34 and .28 in arXiv:2203.15556, .35 in arXiv:2305.16264).
    """

    name: ClassVar[str] = "joint_shared_power"
    equation: ClassVar[str] = (
        "L = E + R^-e + A S^-p/N^a + B S^-q/D^b + T S^-r N^h/D^t,  S = sum_j(s_j w_j^g), R = sum_j(k_j s_j w_j^f)"
    )
    source: ClassVar[str] = "own: POWG in each term of Chinchilla's law, and a transient of the first tokens"
    scalars: ClassVar[tuple[Constant, ...]] = (
        Constant("E", math.log(0.4), 1.0),
        Constant("A", math.log(0.2), 0.8),
        Constant("a", THIRD, 0.35),
        Constant("B", math.log(0.2), 0.8),
        Constant("b", THIRD, 0.35),
        Constant("T", math.log(0.03), 1.0),
        Constant("t", math.log(1.5), 0.3),
        Constant("h", 0.0, 0.5, kind="free"),
        Constant("e", LOSS_THIRD, 0.7),
        Constant("p", LOSS_THIRD, 0.7),
        Constant("q", LOSS_THIRD, 0.7),
        Constant("r", LOSS_THIRD, 0.7),
        Constant("g", 0.0, 1.5, kind="unit"),
        Constant("f - g", 0.0, 0.5, kind="free"),  # between their logits
    )
    blocks: ClassVar[tuple[Constant, ...]] = (
        Constant("s", -math.log(0.2) / 0.3, 2.0),
        Constant("k", 0.0, 1.0),
    )

    @staticmethod
    def terms(batch: Batch) -> None:
        parameters, tokens = batch.inputs.log_parameters, batch.inputs.log_tokens
        exponent, parts, one = batch.scalar("g"), batch.block("s"), np.ones(1)
        height = {name: batch.scalar(name) for name in ("A", "B", "T", "h")}
        rate = {name: np.exp(batch.scalar(name)) for name in ("a", "b", "t", "e", "p", "q", "r")}
        batch.add(batch.scalar("E"), {"E": one})
        remains = help_of(batch, exponent + batch.scalar("f - g"), parts + batch.block("k"))
        by, by_weight = _fall(remains, -rate["e"], "e")
        own = {"f - g": by["g"], "k": by["s"]}
        batch.add(-rate["e"] * remains.logarithm, by | own, by_weight)
        shared = help_of(batch, exponent, parts)
        by_a, by_b, by_t = (-rate[name] * logs for name, logs in (("a", parameters), ("b", tokens), ("t", tokens)))
        for power, rest, scale in (
            ("p", height["A"] + by_a, {"A": one, "a": by_a}),
            ("q", height["B"] + by_b, {"B": one, "b": by_b}),
            ("r", height["T"] + by_t + height["h"] * parameters, {"T": one, "t": by_t, "h": parameters}),
        ):
            by, by_weight = _fall(shared, -rate[power], power)
            batch.add(-rate[power] * shared.logarithm + rest, by | scale, by_weight)


def _fall(mixture: Help, rate: Floats, power: str) -> tuple[dict[str, Floats], Floats]:
    """Derivatives of rate * log S: by the inner values of its power, of g and of s; and by the weights."""
    by = {power: rate * mixture.logarithm, "g": rate * mixture.by_exponent, "s": rate[..., None] * mixture.by_parts}
    return by, rate[..., None] * mixture.by_weight
