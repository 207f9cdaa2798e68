"""Scaling laws for optimal data mixtures: the additive and the joint law of Shukor et al. in (w, N, D)."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mixing.laws.joint_chinchilla import (
    BY_PARAMETERS,
    BY_TOKENS,
    IRREDUCIBLE,
    PARAMETERS_EXPONENT,
    TOKENS_EXPONENT,
    constant_and_scale,
)
from mixing.laws.joint_law import JointLaw
from mixing.laws.joint_terms import Batch, Constant
from mixing.observations.points import Floats

SOURCE = "Shukor et al. 2025, arXiv:2507.09404"
HELP = Constant("C", -math.log(0.1), 2.0)
HELP_EXPONENT = Constant("g", 0.0, 1.5, kind="unit")


class JointAdditive(JointLaw):
    """The mixture adds the same at every scale; the law that ranks mixtures best when it extrapolates.

    Differs from the paper: g is held within 0..1, which makes the law convex in the mixture; priors.
    """

    name: ClassVar[str] = "joint_additive"
    equation: ClassVar[str] = "L = E + 1/sum_j(C_j w_j^g_j) + A/N^a + B/D^b"
    source: ClassVar[str] = SOURCE
    scalars: ClassVar[tuple[Constant, ...]] = (
        IRREDUCIBLE, BY_PARAMETERS, PARAMETERS_EXPONENT, BY_TOKENS, TOKENS_EXPONENT,
    )  # fmt: skip
    blocks: ClassVar[tuple[Constant, ...]] = (HELP, HELP_EXPONENT)

    @staticmethod
    def terms(batch: Batch) -> None:
        constant_and_scale(batch)
        mixture_term(batch)


class JointPower(JointLaw):
    """What parameters and tokens are worth depends on the mixture, too; the best inside the measured scales.

    Differs from the paper: g is held within 0..1; priors.
    """

    name: ClassVar[str] = "joint_power"
    equation: ClassVar[str] = "L = E + 1/sum_j(C_j w_j^g_j) + (sum_j A_j w_j)^p/N^a + (sum_j B_j w_j)^q/D^b"
    source: ClassVar[str] = SOURCE
    scalars: ClassVar[tuple[Constant, ...]] = (
        IRREDUCIBLE,
        PARAMETERS_EXPONENT,
        TOKENS_EXPONENT,
        Constant("p", -0.5, 0.5, kind="free"),
        Constant("q", -0.5, 0.5, kind="free"),
    )
    # (sum A_j w_j)^-0.5 is .2 of the loss where all A_j are alike.
    blocks: ClassVar[tuple[Constant, ...]] = (
        HELP,
        HELP_EXPONENT,
        Constant("A", -2 * math.log(0.2), 1.0),
        Constant("B", -2 * math.log(0.2), 1.0),
    )

    @staticmethod
    def terms(batch: Batch) -> None:
        batch.add(batch.scalar("E"), {"E": np.ones(1)})
        mixture_term(batch)
        _scaled(batch, "A", "p", "a", batch.inputs.log_parameters)
        _scaled(batch, "B", "q", "b", batch.inputs.log_tokens)

    @property
    def convex(self) -> npt.NDArray[np.bool_]:
        """A power of a linear form is convex where its exponent is not between 0 and 1."""
        powers = self.theta[:, 3:5]
        return np.asarray(((powers <= 0) | (powers >= 1)).all(axis=1))


def mixture_term(batch: Batch) -> None:
    """1 / sum_j C_j w_j^g_j."""
    exponent = 1 / (1 + np.exp(-batch.block("g")))
    power, by_weight, by_exponent = batch.powers(exponent)
    parts = np.exp(batch.block("C")) * power
    total = parts.sum(axis=-1)
    shares = parts / total[..., None]
    by = {"C": -shares, "g": -shares * by_exponent * exponent * (1 - exponent)}
    batch.add(-np.log(total), by, -shares * by_weight)


def _scaled(batch: Batch, block: str, power: str, exponent: str, logs: Floats) -> None:
    """(sum_j block_j w_j)^power / size^exponent."""
    inner = np.exp(batch.block(block))
    parts = inner * batch.inputs.weights[None]
    total = parts.sum(axis=-1)
    height, rate = batch.scalar(power), np.exp(batch.scalar(exponent))
    slope = height[..., None] / total[..., None]
    by = {block: slope * parts, power: np.log(total), exponent: -rate * logs}
    batch.add(height * np.log(total) - rate * logs, by, slope * inner)
