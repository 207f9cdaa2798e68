"""What the repeats of a mixture are worth, domain by domain, and what the next epoch would be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mixing.observations.points import MixingError, Points, by_name
from mixing.observations.repetition import (
    HALF_LIFE,
    effective_tokens,
    half_lives,
    marginal_value,
    next_epoch_value,
)


@dataclass(frozen=True, kw_only=True)
class RepeatValue:
    """A domain in a run. tokens: seen in all; epochs: tokens / unique_tokens.

    effective_tokens: the fresh tokens that they are worth. efficiency: effective / tokens, 1 up to one epoch.
    marginal: worth of one more token, next_epoch: of a whole further epoch as a share of a fresh one.
    unique_tokens, epochs and next_epoch are None where the domain's tokens are not known, or are without end.
    """

    domain: str
    tokens: float
    unique_tokens: float | None
    epochs: float | None
    effective_tokens: float
    efficiency: float
    marginal: float
    next_epoch: float | None


def value_of_repeats(
    weights: Mapping[str, float],
    *,
    tokens: float,
    unique_tokens: Mapping[str, float],
    half_life: float | Mapping[str, float] = HALF_LIFE,
) -> tuple[RepeatValue, ...]:
    """Each domain's epochs in a run of `tokens` and what they are worth, after Muennighoff (see
    mixing.observations.repetition). half_life: R*, one or by domain.

    Raises MixingError where weights do not sum to 1, or a name is unknown.
    """
    names = tuple(weights)
    points = Points.of(names, list(weights.values()), tokens=tokens, unique_tokens=unique_tokens)
    if np.isnan(points.tokens[0]):
        raise MixingError("tokens: not told; give the length of the run")
    lives = half_lives(names, half_life)
    seen, unique = points.weights[0] * tokens, by_name(names, unique_tokens, where="unique_tokens")
    worth, slope = effective_tokens(seen, unique, lives), marginal_value(seen, unique, lives)
    following = next_epoch_value(seen, unique, lives)
    return tuple(
        RepeatValue(
            domain=name,
            tokens=float(seen[at]),
            unique_tokens=_known(unique[at]),
            epochs=_known(points.epochs[0, at]) if np.isfinite(unique[at]) else None,
            effective_tokens=float(worth[at]),
            efficiency=float(worth[at] / seen[at]) if seen[at] > 0 else 1.0,
            marginal=float(slope[at]),
            next_epoch=_known(following[at]),
        )
        for at, name in enumerate(names)
    )


def epochs_worth(value: float, half_life: float = HALF_LIFE) -> float:
    """Epochs after which one more token is worth `value` of a fresh one: 1 + R* ln(1 / value), 0 < value <= 1.

    With R* = 15.39 a repeat is worth half of a fresh token after 11.7 epochs. Raises MixingError outside these.
    """
    if not 0 < value <= 1:
        raise MixingError(f"value: {value}; give a share of a fresh token's worth, above 0 and at most 1")
    if not 0 <= half_life < float("inf"):
        raise MixingError(f"half_life: {half_life}; give repeats, 0 or more")
    return 1 + half_life * float(np.log(1 / value))


def _known(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
