"""Size of the pilot and weight of its mean, fixed by the budget before anything is seen, so that nothing is biased."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

PUBLISHED: Final = ((8, 4, 0.481), (16, 6, 0.351), (32, 10, 0.285), (64, 16, 0.222))
"""Mean rollouts a task, pilot, weight of the pilot's mean: Shen et al. 2026, arXiv:2609.28560, for 100 tasks."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """mean_rollouts: a task on average. pilot: of each task at first. weight: of the pilot's mean in the estimate."""

    mean_rollouts: int
    pilot: int
    weight: float


def design_of(mean_rollouts: int, pilot: int | None = None) -> Design:
    """The published design at its budgets, and in between by this rule.

    The pilot goes geometrically with the budget between the published ones (and from 1 at 2 to 4 at 8; beyond 64 on
    the line of the last two), rounded. The weight is the best one, m r / (m r + b - m) of pilot m and budget b, where
    r is the variance that shares leave of that of equal ones: r follows from the published weights (.927, .901, .877,
    .856), lies in between linearly in log b, is 1 at 2 rollouts, where nothing can be shared, and .856 beyond 64.
    """
    if mean_rollouts < 2:
        raise ValueError("mean_rollouts: below 2, a pilot and one more; give at least 2")
    size = _interpolated(mean_rollouts, [(b, math.log(m)) for b, m, _ in _NODES], beyond=True)
    chosen = pilot or min(max(math.floor(math.exp(size) + 0.5), 1), mean_rollouts - 1)
    if not 0 < chosen < mean_rollouts:
        raise ValueError("pilot: not below mean_rollouts; leave at least one rollout a task to share out")
    left = _interpolated(mean_rollouts, [(b, r) for b, _, r in _NODES], beyond=False)
    return Design(
        mean_rollouts=mean_rollouts, pilot=chosen, weight=chosen * left / (chosen * left + mean_rollouts - chosen)
    )


def _interpolated(budget: int, nodes: list[tuple[int, float]], beyond: bool) -> float:
    """Linear in the budget's logarithm; beyond the last node on the last line, or as at the node."""
    if budget >= nodes[-1][0] and not beyond:
        return nodes[-1][1]
    pair = next((pair for pair in pairwise(nodes) if budget < pair[1][0]), (nodes[-2], nodes[-1]))
    (low, first), (high, second) = pair
    return first + (second - first) * math.log(budget / low) / math.log(high / low)


_NODES: Final = ((2, 1, 1.0), *((b, m, (w / (1 - w)) * (b - m) / m) for b, m, w in PUBLISHED))
