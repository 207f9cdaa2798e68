"""Teachers and populations with known laws, to schedule rollouts of: seeded, and many prompts at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synth.rollouts import Rollout, Rollouts, Tempering, Wave, next_wave
from synth.rollouts.tempering import discounted, temperatures
from synth.verdicts import Outcome

Array = NDArray[np.float64]

POPULATIONS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "bimodal": lambda draw, size: draw.beta(0.15, 0.15, size),
    "uniform": lambda draw, size: draw.random(size),
    "hard": lambda draw, size: draw.beta(0.4, 3.6, size),  # a tenth right
    "easy": lambda draw, size: draw.beta(3.6, 0.4, size),
}
"""Chances of success of prompts."""

BUDGETS = (8, 16, 32, 64)
WAVE, WAVES = 4, 4


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """Six answers a prompt, softmax of fixed logits at the temperature; right: which of them is. falls: success goes
    down with heat whatever the logits are, half as likely a doubling of the temperature."""

    logits: Array
    right: NDArray[np.int64]
    falls: bool = False

    def chance(self, temperature: Array | float) -> Array:
        """Of each prompt, that it is solved."""
        heat = np.broadcast_to(np.asarray(temperature, np.float64), self.right.shape)[:, None]
        at_rest = 1.0 if self.falls else heat
        scaled = self.logits / at_rest
        weights = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        shares = (weights / weights.sum(axis=1, keepdims=True))[np.arange(len(self.right)), self.right]
        return np.asarray(np.minimum(shares / heat[:, 0], 1.0) if self.falls else shares, np.float64)

    def of(self, prompt: int) -> Teacher:
        """Of one prompt alone."""
        one = slice(prompt, prompt + 1)
        return Teacher(logits=self.logits[one], right=self.right[one], falls=self.falls)


def six_modes(prompts: int, seed: int, *, falls: bool = False) -> Teacher:
    """Of 45% of the prompts the likeliest answer is right, of 55% another one (the reference's shares); logits are
    normal of deviation 1.5, which solves 29% at temperature 1."""
    draw = np.random.default_rng(seed)
    logits = -np.sort(-draw.normal(0, 1.5, (prompts, 6)), axis=1)
    right = np.where(draw.random(prompts) < 0.45, 0, draw.integers(1, 6, prompts))
    return Teacher(logits=logits, right=right, falls=falls)


def solved(teacher: Teacher, seed: int, *, temperature: float = 1.0, tempering: Tempering | None = None) -> Array:
    """Right ones of each prompt's 16 rollouts in 4 waves, at a fixed temperature or a tempered one."""
    draw = np.random.default_rng(seed)
    prompts = len(teacher.right)
    past: list[tuple[Array, Array]] = [(np.zeros(prompts), np.zeros(prompts))]
    for wave in range(WAVES):
        heat: Array | float = temperature
        if tempering is not None:
            right, wrong = discounted(past, tempering.gamma)
            heat = temperatures(
                right, wrong, draw.random(prompts),
                settings=tempering, wave=wave, waves=WAVES, reference=temperature,
            )  # fmt: skip
        found = draw.binomial(WAVE, teacher.chance(heat)).astype(np.float64)
        past.append((found, WAVE - found))
    return np.asarray(np.sum([right for right, _ in past], axis=0), np.float64)


def rolled_out(settings: Rollouts, chances: Array, seed: int, teacher: Teacher | None = None) -> list[list[Rollout]]:
    """Histories of prompts by the front door alone, a prompt at a time: of fixed chances, or of a teacher's."""
    histories = []
    for prompt, chance in enumerate(chances):
        draw = np.random.default_rng([seed, prompt])
        history: list[Rollout] = []
        while isinstance(step := next_wave(settings, history, seed + prompt), Wave):
            for told in step.temperatures:
                heat = 1.0 if told is None else told
                share = chance if teacher is None else teacher.of(prompt).chance(heat)[0]
                outcome = Outcome.RIGHT if draw.random() < share else Outcome.WRONG
                history.append(Rollout(outcome=outcome, temperature=heat, tokens=100))
        histories.append(history)
    return histories
