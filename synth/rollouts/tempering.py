"""Posterior-tempered temperatures: Oh et al. 2026, arXiv:2610.01509, algorithm 1 and equation 4.

Counts of right and wrong rollouts are discounted a wave further on; of the posterior Beta(2 p + s, 2 (1 - p) + f) at
the target p one value is drawn for a prompt and wave (Thompson), and the temperature is reference * tau ** h of it.
Differs from it: waves of rollouts of one prompt instead of steps of training.

The paper assumes (theorem 3) that heat makes rare right answers likelier. A teacher whose success falls with heat gets
worse with it; `heat_effect` says so from what was recorded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from synth.rollouts.history import Rollout, counts, in_waves
from synth.rollouts.settings import Tempering

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def discounted(waves: Iterable[tuple[Any, Any]], gamma: float) -> tuple[Any, Any]:
    """Right and wrong counts of all waves, oldest first, each wave's weighed gamma against the next; of numbers or
    of arrays (a prompt each)."""
    right: Any = 0.0
    wrong: Any = 0.0
    for more_right, more_wrong in waves:
        right, wrong = gamma * right + more_right, gamma * wrong + more_wrong
    return right, wrong


def target(settings: Tempering, wave: int, waves: int) -> float:
    """The wanted share of right answers in a wave, from 0; geometric from the first to the last of `waves`."""
    first, last = settings.targets
    part = min(wave / (waves - 1), 1.0) if waves > 1 else 1.0
    return float(first * (last / first) ** part)


def temperature_at(share: Any, target: float, reference: float, tau: float) -> Array:
    """Equation 4: reference * tau at share 0, reference at the target, reference / tau at share 1."""
    import numpy as np

    share = np.asarray(share, np.float64)
    heat = (target - share) / np.where(share <= target, target, 1 - target)
    return np.asarray(reference * tau**heat, np.float64)


def temperatures(
    right: Any, wrong: Any, number: Any, *, settings: Tempering, wave: int, waves: int, reference: float
) -> Array:
    """Of prompts with these discounted counts, in wave `wave` of `waves`.

    number: of [0, 1), uniform, one a prompt: where in the posterior the draw lies. Arrays of one shape, or numbers.
    """
    import numpy as np
    from scipy.special import betaincinv

    wanted = target(settings, wave, waves)
    share = betaincinv(2 * wanted + np.asarray(right), 2 * (1 - wanted) + np.asarray(wrong), np.asarray(number))
    return temperature_at(share, wanted, reference, settings.tau)


def drawn_number(seed: int, wave: int) -> float:
    """The uniform number of an item, by its seed, and a wave."""
    import numpy as np

    return float(np.random.default_rng([seed, wave]).random())


@dataclass(frozen=True, kw_only=True)
class HeatEffect:
    """What heat does to prompts that had no right answer yet, which tempering heats. slope: change of the share of
    right answers with a doubling of the temperature; standard_error: of it. waves: of one prompt each, compared.
    falls: it is below 0 by more than 2 standard errors; tempering does harm there, and colder is better."""

    slope: float
    standard_error: float
    waves: int

    @property
    def falls(self) -> bool:
        return self.slope < -2 * self.standard_error


def heat_effect(histories: Sequence[Sequence[Rollout]], wave: int) -> HeatEffect:
    """Of prompts' rollouts in the order of asking, in waves of this size, tempered.

    Heat follows failure, so that a regression over all of it would find heat harmful with any teacher. But prompts
    that failed equally often so far get draws of the same posterior: among those temperature is as in an experiment.
    They are compared with each other alone, and what they tell is pooled.
    """
    import numpy as np

    groups: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for history in histories:
        failed = 0
        for at, one in enumerate(in_waves(history, wave)):
            right, wrong = counts(one)
            if right + wrong and one[0].temperature > 0:
                told = (math.log2(one[0].temperature), right / (right + wrong))
                groups.setdefault((at, failed), []).append(told)
            failed += wrong
            if right:
                break
    centred = [np.array(told) - np.mean(told, axis=0) for (at, _), told in groups.items() if at and len(told) > 1]
    heat, share = np.vstack([np.zeros((0, 2)), *centred]).T
    free = len(heat) - len(centred) - 1
    if free < 1 or not np.any(heat):
        return HeatEffect(slope=0.0, standard_error=math.inf, waves=len(heat))
    slope = float(heat @ share / (heat @ heat))
    rest = share - slope * heat
    return HeatEffect(slope=slope, standard_error=math.sqrt(float(rest @ rest / (heat @ heat)) / free), waves=len(heat))
