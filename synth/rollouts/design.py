"""Size of the pilot and weight of its mean, fixed by the budget before anything is seen, so that nothing is biased."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

PUBLISHED: Final = ((8, 4, 0.481), (16, 6, 0.351), (32, 10, 0.285), (64, 16, 0.222))
"""Mean rollouts a task, pilot, weight of the pilot's mean: Shen et al. 2026, arXiv:2609.28560, for 100 tasks."""

DESIGNS: Final = ((8, 4, 0.49), *PUBLISHED[1:])
"""Ours. On a uniform population, where there is little to gain, the published weight leaves 1.0004 of equal shares'
variance at 8 rollouts (measured, 400 sets of 100 prompts), and .49 leaves .9994; on a bimodal one .910, not .908."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """mean_rollouts: a task on average. pilot: of each task at first. weight: of the pilot's mean in the estimate."""

    mean_rollouts: int
    pilot: int
    weight: float


def design_of(mean_rollouts: int, pilot: int | None = None) -> Design:
    """That of DESIGNS at its budgets, and elsewhere by this rule.

    The pilot goes geometrically with the budget between those, from 1 at 2 rollouts to 4 at 8, and beyond 64 on the
    line of the last two; rounded. The weight is the best one, m r / (m r + b - m) of pilot m and budget b,
    where r is the variance that shares leave of that of equal ones: r follows from the weights of DESIGNS (.961,
    .901, .877, .856), is linear in log b in between and .856 beyond. Below 8 rollouts r is 1, which makes m / b of the
    weight: a pilot so small gains nothing for sure, and with this weight nothing is lost by believing so.
    Raises ValueError where nothing is left to share out.
    """
    if mean_rollouts < 2:
        raise ValueError("mean_rollouts: below 2, a pilot and one more; give at least 2")
    size = _interpolated(mean_rollouts, [(2, 0.0), *((b, math.log(m)) for b, m, _ in DESIGNS)])
    chosen = pilot or math.floor(math.exp(size) + 0.5)
    if not 0 < chosen < mean_rollouts:
        raise ValueError("pilot: not below mean_rollouts; leave at least one rollout a task to share out")
    left = _left(mean_rollouts)
    return Design(
        mean_rollouts=mean_rollouts, pilot=chosen, weight=chosen * left / (chosen * left + mean_rollouts - chosen)
    )


def _left(budget: int) -> float:
    """Variance that shares leave of that of equal ones, among the rollouts after the pilot."""
    if budget < DESIGNS[0][0]:
        return 1.0
    nodes = [(b, w / (1 - w) * (b - m) / m) for b, m, w in DESIGNS]
    return _interpolated(min(budget, DESIGNS[-1][0]), nodes)


def _interpolated(budget: int, nodes: list[tuple[int, float]]) -> float:
    """Linear in the budget's logarithm, and beyond the last node on the last line."""
    pair = next((pair for pair in pairwise(nodes) if budget < pair[1][0]), (nodes[-2], nodes[-1]))
    (low, first), (high, second) = pair
    return first + (second - first) * math.log(budget / low) / math.log(high / low)
