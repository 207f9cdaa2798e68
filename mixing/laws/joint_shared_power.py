"""One help of domains in every term of a scaling law: the shared-exponent power law carried over to (w, N, D)."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from mixing.laws.joint_effective_tokens import shared_sum
from mixing.laws.joint_law import Batch, Constant, JointLaw

THIRD, LOSS_THIRD = math.log(0.33), math.log(0.3)


class JointSharedPower(JointLaw):
    """S tells how much a mixture helps a metric; each term falls with it at its own rate.

    The last term is what a run has not yet learned early on: it falls with about D^1.5 and is gone at the end. Without
    it checkpoints of a run, whose rate of learning was still high, drive the exponent of D to 1, and what extrapolates
    to longer runs and larger models is the shape of a schedule. Convex in the mixture: g is within 0..1.

    Priors: exponents of N and D about .33 (.34 and .28 in arXiv:2203.15556, .35 in arXiv:2305.16264).
    """

    name: ClassVar[str] = "joint_shared_power"
    equation: ClassVar[str] = "L = E + S^-e + A S^-p/N^a + B S^-q/D^b + T S^-r N^h/D^t,  S = sum_j(s_j w_j^g)"
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
    )
    blocks: ClassVar[tuple[Constant, ...]] = (Constant("s", -math.log(0.2) / 0.3, 2.0),)

    @staticmethod
    def terms(batch: Batch) -> None:
        parameters, tokens = batch.inputs.log_parameters, batch.inputs.log_tokens
        total, by_help, by_exponent, by_weight = shared_sum(batch)
        one = np.ones(1)
        height = {name: batch.scalar(name) for name in ("A", "B", "T", "h")}
        rate = {name: np.exp(batch.scalar(name)) for name in ("a", "b", "t", "e", "p", "q", "r")}
        batch.add(batch.scalar("E"), {"E": one})
        by_a, by_b, by_t = (-rate[name] * logs for name, logs in (("a", parameters), ("b", tokens), ("t", tokens)))
        for power, rest, by in (
            ("e", np.zeros((1, 1)), {}),
            ("p", height["A"] + by_a, {"A": one, "a": by_a}),
            ("q", height["B"] + by_b, {"B": one, "b": by_b}),
            ("r", height["T"] + by_t + height["h"] * parameters, {"T": one, "t": by_t, "h": parameters}),
        ):
            fall = -rate[power]
            shared = {power: fall * total, "g": fall * by_exponent, "s": fall[..., None] * by_help}
            batch.add(fall * total + rest, by | shared, fall[..., None] * by_weight)
