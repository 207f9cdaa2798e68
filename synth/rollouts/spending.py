"""What an accepted sample costs, by source, teacher and temperature, and what another wave would yield."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from synth.rollouts.history import Rollout, counts
from synth.rollouts.intervals import Estimate, wilson
from synth.rollouts.population import population_of
from synth.rollouts.settings import Rollouts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

By = Literal["source", "teacher", "temperature"]


@dataclass(frozen=True, kw_only=True)
class Spent:
    """One rollout's cost: completion tokens, and cost in the teacher's currency. accepted: it became a kept sample."""

    source: str = ""
    teacher: str = ""
    temperature: float = 1.0
    tokens: int = 0
    cost: float = 0.0
    accepted: bool = False


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Of a group of rollouts. acceptance: the share accepted, with Wilson's interval."""

    rollouts: int
    accepted: int
    tokens: int
    cost: float

    @property
    def acceptance(self) -> Estimate:
        return wilson(self.accepted, self.rollouts)

    @property
    def tokens_per_accepted(self) -> float:
        """Infinite where nothing was accepted: what was spent bought nothing."""
        return self.tokens / self.accepted if self.accepted else math.inf

    @property
    def cost_per_accepted(self) -> float:
        return self.cost / self.accepted if self.accepted else math.inf


def costs(
    rollouts: Iterable[Spent], by: Sequence[By] = ("source", "teacher", "temperature")
) -> dict[tuple[str, ...], Cost]:
    """By what stands in `by`, in the order of the names; temperatures, which tempering draws, to one decimal."""
    sums: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0, 0, 0, 0.0])
    for one in rollouts:
        told = {"source": one.source, "teacher": one.teacher, "temperature": f"{one.temperature:.1f}"}
        into = sums[tuple(told[name] for name in by)]
        for at, value in enumerate((1, one.accepted, one.tokens, one.cost)):
            into[at] += value
    return {
        key: Cost(rollouts=int(count), accepted=int(accepted), tokens=int(tokens), cost=cost)
        for key, (count, accepted, tokens, cost) in sorted(sums.items())
    }


@dataclass(frozen=True, kw_only=True)
class Marginal:
    """What another wave of each prompt is expected to yield: right answers that are still wanted, and the completion
    tokens it takes. Arrays, one value a prompt; a prompt that wants no more, or may have none, yields and takes 0."""

    accepted: Array
    tokens: Array

    @property
    def tokens_per_accepted(self) -> float:
        """Of the whole wave, over all prompts."""
        accepted = float(self.accepted.sum())
        return float(self.tokens.sum()) / accepted if accepted > 0 else math.inf

    def worth(self, tokens_per_accepted: float) -> NDArray[np.bool_]:
        """The prompts whose next wave costs at most so many tokens for each right answer."""
        worth: NDArray[np.bool_] = (self.accepted > 0) & (self.tokens <= tokens_per_accepted * self.accepted)
        return worth


def marginal_yield(settings: Rollouts, histories: Sequence[Sequence[Rollout]]) -> Marginal:
    """By the posterior of each prompt in the population of all (so that a prompt of which little is known goes by
    the others), and by its tokens so far, or where it has none by those of all."""
    import numpy as np

    found = np.array([counts(one, settings.truncated) for one in histories], np.int64).reshape(-1, 2)
    right, trials = found[:, 0], found.sum(axis=1)
    asked = np.array([len(one) for one in histories], np.int64)
    spent = np.array([sum(each.tokens for each in one) for one in histories], np.float64)
    mean = spent.sum() / max(int(asked.sum()), 1)
    more = np.minimum(settings.wave, np.maximum(settings.cap - asked, 0))
    wanted = more if settings.accepted is None else np.clip(settings.accepted - right, 0, None)
    more = np.where(wanted > 0, more, 0)
    people = population_of(trials, right)
    accepted = np.zeros(len(more))
    for size in np.unique(more[more > 0]):
        these = more == size
        accepted[these] = people.useful(trials[these], right[these], int(size), wanted[these])
    return Marginal(accepted=accepted, tokens=more * np.where(asked > 0, spent / np.maximum(asked, 1), mean))
