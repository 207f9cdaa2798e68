"""Repetition by itself: what seeing tokens again is worth, and what overfitting costs, whatever the mixture."""

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
    falls,
)
from mixing.laws.joint_law import JointLaw
from mixing.laws.joint_terms import Batch, Constant
from mixing.observations.points import Floats
from mixing.observations.repetition import (
    HALF_LIFE,
    effective_tokens,
    effective_tokens_gradients,
    marginal_value,
)


class Repetition(JointLaw):
    """Chinchilla's law of effective tokens D', and a penalty of large models that see few tokens often.

    D' is the sum over domains; U the different tokens that the run sees, R = D/U - 1. Tokens whose number is unknown or
    without end count as fresh. The penalty levels off after about R0 repeats, as models of 146M parameters do that
    train for 1,740 epochs.

    Differs from the source: no excess parameters N'; R* is fitted (prior 15.39); the penalty, whose form was chosen by
    cross-validation over configurations of the same C4 runs (see the tests of this module).
    """

    name: ClassVar[str] = "repetition"
    equation: ClassVar[str] = "L = E + A/N^a + B/D'^b + K N^p/U^q R^r/(R0^r + R^r),  D' = U + U R* (1 - exp(-R/R*))"
    source: ClassVar[str] = "Muennighoff et al. 2023, arXiv:2305.16264; an overfitting penalty as in arXiv:2605.01640"
    scalars: ClassVar[tuple[Constant, ...]] = (
        IRREDUCIBLE,
        BY_PARAMETERS,
        PARAMETERS_EXPONENT,
        BY_TOKENS,
        TOKENS_EXPONENT,
        Constant("R*", math.log(HALF_LIFE), 0.7),
        Constant("K", math.log(0.3), 1.5),
        Constant("p", math.log(0.5), 0.5),
        Constant("q", math.log(0.5), 0.5),
        Constant("r", 0.3, 0.5),
        Constant("R0", math.log(55.0), 1.0),
    )

    @staticmethod
    def terms(batch: Batch) -> None:
        batch.add(batch.scalar("E"), {"E": np.ones(1)})
        falls(batch, "A", "a", batch.inputs.log_parameters)
        _add_worth(batch)
        _add_overfitting(batch)

    @property
    def convex(self) -> npt.NDArray[np.bool_]:
        """Unknown: fewer different tokens help no metric, but the penalty bends either way."""
        return np.zeros(len(self.metrics), np.bool_)


def _add_worth(batch: Batch) -> None:
    """B / D'^b."""
    points = batch.inputs.points
    life, rate = np.exp(batch.scalar("R*")), np.exp(batch.scalar("b"))
    seen = (batch.inputs.weights * points.tokens[:, None])[None]
    unique, lives = points.unique_tokens[None], life[..., None]
    worth = effective_tokens(seen, unique, lives).sum(axis=-1)
    by_life = effective_tokens_gradients(seen, unique, lives)[2].sum(axis=-1)
    logs = np.log(worth) - _unit(batch)
    by_weight = marginal_value(seen, unique, lives) * points.tokens[:, None] / worth[..., None]
    by = {"B": np.ones(1), "b": -rate * logs, "R*": -rate * life * by_life / worth}
    batch.add(batch.scalar("B") - rate * logs, by, -rate[..., None] * by_weight)


def _add_overfitting(batch: Batch) -> None:
    """K N^p / U^q R^r / (R0^r + R^r); nothing where no token is seen twice."""
    points = batch.inputs.points
    seen = batch.inputs.weights * points.tokens[:, None]
    bounded = points.unique_tokens < seen
    unique = np.where(bounded, points.unique_tokens, seen).sum(axis=1)
    unique_by_weight = np.where(bounded, 0.0, points.tokens[:, None])
    repeats = seen.sum(axis=1) / unique - 1
    repeated = repeats > 1e-9
    logs = np.log(np.where(repeated, repeats, 1.0))
    by_weight = np.where(
        repeated[:, None],
        (points.tokens[:, None] - (repeats + 1)[:, None] * unique_by_weight)
        / (np.where(repeated, repeats, 1.0) * unique)[:, None],
        0.0,
    )
    held = np.log(unique) - _unit(batch)
    rate = {name: np.exp(batch.scalar(name)) for name in ("p", "q", "r")}
    steep = rate["r"] * (logs - batch.scalar("R0"))
    left = 1 / (1 + np.exp(steep))
    by: dict[str, Floats] = {
        "K": np.ones(1),
        "p": rate["p"] * batch.inputs.log_parameters,
        "q": -rate["q"] * held,
        "r": steep * left,
        "R0": -rate["r"] * left,
    }
    by_weights = (rate["r"] * left)[..., None] * by_weight - rate["q"][..., None] * unique_by_weight / unique[:, None]
    height = batch.scalar("K") + rate["p"] * batch.inputs.log_parameters - rate["q"] * held - np.logaddexp(0, -steep)
    batch.add(np.where(repeated, height, -np.inf), by, by_weights)


def _unit(batch: Batch) -> Floats:
    """[n]: logarithm of the tokens that log_tokens counts in."""
    return np.asarray(np.log(batch.inputs.points.tokens) - batch.inputs.log_tokens)
