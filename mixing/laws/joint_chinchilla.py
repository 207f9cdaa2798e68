"""Chinchilla's law: loss by parameters and tokens, whatever the mixture. The baseline that a mixture law must beat."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from mixing.laws.joint_law import JointLaw
from mixing.laws.joint_terms import Batch, Constant

# Priors: exponents about .34 and .28 (arXiv:2203.15556, approach 3), and half of a loss irreducible, as it is there
# for models of 10^8 to 10^9 parameters; wide enough for data to say otherwise.
IRREDUCIBLE = Constant("E", math.log(0.5), 1.0)
BY_PARAMETERS = Constant("A", math.log(0.2), 1.5)
PARAMETERS_EXPONENT = Constant("a", math.log(0.33), 0.4)
BY_TOKENS = Constant("B", math.log(0.2), 1.5)
TOKENS_EXPONENT = Constant("b", math.log(0.33), 0.5)


class Chinchilla(JointLaw):
    """E + A/N^a + B/D^b for each metric. Serves for one domain, and tells what a mixture adds."""

    name: ClassVar[str] = "chinchilla"
    equation: ClassVar[str] = "L = E + A/N^a + B/D^b"
    source: ClassVar[str] = "Hoffmann et al. 2022, arXiv:2203.15556"
    scalars: ClassVar[tuple[Constant, ...]] = (
        IRREDUCIBLE, BY_PARAMETERS, PARAMETERS_EXPONENT, BY_TOKENS, TOKENS_EXPONENT,
    )  # fmt: skip

    @staticmethod
    def terms(batch: Batch) -> None:
        constant_and_scale(batch)


def constant_and_scale(batch: Batch) -> None:
    """E + A/N^a + B/D^b, which other laws start from."""
    batch.add(batch.scalar("E"), {"E": np.ones(1)})
    falls(batch, "A", "a", batch.inputs.log_parameters)
    falls(batch, "B", "b", batch.inputs.log_tokens)


def falls(batch: Batch, amplitude: str, exponent: str, logs: np.typing.NDArray[np.float64]) -> None:
    """amplitude / size^exponent."""
    rate = np.exp(batch.scalar(exponent))
    batch.add(batch.scalar(amplitude) - rate * logs, {amplitude: np.ones(1), exponent: -rate * logs})
