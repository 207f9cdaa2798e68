"""Rollouts shared out over prompts by how uncertain each one's difficulty is, and the difficulty estimated from them.

Source: Shen et al. 2026, arXiv:2609.28560 (HBN): after a pilot of equal size, integer Neyman shares by the posterior
mean of p (1 - p), and for each prompt w * pilot's mean + (1 - w) * the rest's mean. As w is fixed beforehand, nothing
is biased; the plain share of right ones is, since a prompt's rollouts then depend on its first ones.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from synth.errors import SynthError
from synth.rollouts.design import Design, design_of
from synth.rollouts.population import population_of
from synth.rollouts.settings import Rollouts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.int64]

LEAST_SCORE: Final = 1e-200
"""What a score of 0 counts for: far below any other, and far above underflow."""


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """rollouts: of each prompt in all, the pilot's included; they sum to mean_rollouts a prompt exactly.

    gain_bound: the most that any shares could save of equal ones' variance, by the pilot's posterior; print it.
    """

    rollouts: Counts
    design: Design
    gain_bound: float


def allocate(settings: Rollouts, pilots: Sequence[tuple[int, int]], seed: int) -> Allocation:
    """Shares of all prompts, of their pilots' trials and right ones.

    A pilot whose rollouts failed has fewer trials than were asked for, perhaps none; what it was asked is counted.
    seed: which of prompts with equal counts get one more where it does not come out even.
    Raises SynthError where the settings do not allocate.
    """
    if settings.mean_rollouts is None:
        raise SynthError("rollouts.allocation: is each; set allocation: hbn and mean_rollouts to share rollouts out")
    import numpy as np

    design = design_of(settings.mean_rollouts, settings.pilot)
    told = np.asarray(pilots, np.int64).reshape(-1, 2)
    trials, right = told[:, 0], told[:, 1]
    people = population_of(trials, right)
    rest = (design.mean_rollouts - design.pilot) * len(told)
    shares = neyman(people.variance(trials, right), rest, most=settings.cap - design.pilot, seed=seed)
    return Allocation(rollouts=shares + design.pilot, design=design, gain_bound=people.gain_bound)


def neyman(scores: Any, total: int, *, most: int | None = None, seed: int = 0) -> Counts:
    """Whole numbers n of at least 1 that sum to `total` and make sum(scores / n) least: each further one goes where
    scores / (n (n + 1)) is largest.

    scores: at least 0, one a prompt. most: of one prompt. seed: who of equals gets what is left over.
    By level: what all prompts of a score have is found by bisection, and only what is left over is given one by one,
    so that 100,000 prompts take milliseconds.
    """
    import numpy as np

    scores = np.asarray(scores, np.float64)
    most = total if most is None else most
    if not len(scores):
        return np.zeros(0, np.int64)
    if not len(scores) <= total <= most * len(scores) or not np.all(np.isfinite(scores)) or scores.min() < 0:
        raise ValueError("scores, total: scores at least 0, and of 1 to `most` for each of them in all")
    # Prompts without variance share evenly what others, at their most, leave.
    levels, where, prompts = np.unique(np.maximum(scores, LEAST_SCORE), return_inverse=True, return_counts=True)
    each = _below_total(levels, prompts, total, most)
    left = total - int(each @ prompts)
    queue = [(-_gain(score, n), at) for at, (score, n) in enumerate(zip(levels, each, strict=True)) if n < most]
    heapq.heapify(queue)
    last = np.zeros(0, np.int64)
    while left:
        _, at = heapq.heappop(queue)
        if left < prompts[at]:
            last = np.random.default_rng(seed).permutation(np.flatnonzero(where == at))[:left]
            break
        left -= int(prompts[at])
        each[at] += 1
        if each[at] < most:
            heapq.heappush(queue, (-_gain(levels[at], each[at]), at))
    shares: Counts = each[where]
    shares[last] += 1
    return shares


def _gain(score: float, n: int) -> float:
    return float(score) / (float(n) * (n + 1))


def _below_total(levels: Array, prompts: Counts, total: int, most: int) -> Counts:
    """The most that prompts of each score get by one threshold on the gain, within the total."""
    import numpy as np

    def by(threshold: float) -> Counts:
        # The last rollout that is worth more: n with scores / ((n - 1) n) > threshold.
        root = (np.sqrt(1 + 4 * levels / threshold) - 1) / 2
        return np.asarray(np.clip(np.ceil(root), 1, most), np.int64)

    low, high = math.log(LEAST_SCORE) - 60, math.log(float(levels.max()))
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if int(by(math.exp(middle)) @ prompts) > total else (low, middle)
    return by(math.exp(high))


@dataclass(frozen=True, kw_only=True)
class Difficulty:
    """shares: the estimated chance of success of each prompt; NaN where it was neither tried in the pilot nor after.
    mean: over prompts. standard_error: of the mean, by the rollouts' chance, for these prompts.
    standard_error_population: by the choice of prompts, too, where they are a sample of many. prompts: estimated."""

    shares: Array
    mean: float
    standard_error: float
    standard_error_population: float
    prompts: int


def difficulty(pilot: tuple[Any, Any], rest: tuple[Any, Any], weight: float) -> Difficulty:
    """Of trials and right ones of each prompt, in the pilot and in the rest; weight: the design's, of the pilot.

    Unbiased where the rollouts that were not verified are no different from others. A prompt with trials in one of
    the two alone is estimated from those. The variance of a rollout of each prompt is taken from the population's
    posterior, as single rollouts have none of their own to show.
    """
    import numpy as np

    (n, k), (more, right) = ([np.asarray(part, np.int64) for part in stage] for stage in (pilot, rest))
    weights = np.where(more == 0, 1.0, np.where(n == 0, 0.0, weight))
    known = (n + more) > 0
    first, second = k / np.maximum(n, 1), right / np.maximum(more, 1)
    shares = np.where(known, weights * first + (1 - weights) * second, np.nan)
    noise = population_of(n + more, k + right).variance(n + more, k + right)
    noise = noise * (weights**2 / np.maximum(n, 1) + (1 - weights) ** 2 / np.maximum(more, 1))
    count = int(known.sum())
    if not count:
        return Difficulty(shares=shares, mean=math.nan, standard_error=math.inf,
                          standard_error_population=math.inf, prompts=0)  # fmt: skip
    spread = float(np.std(shares[known], ddof=1)) / math.sqrt(count) if count > 1 else math.inf
    return Difficulty(
        shares=shares, mean=float(shares[known].mean()), standard_error=math.sqrt(float(noise[known].sum())) / count,
        standard_error_population=spread, prompts=count,
    )  # fmt: skip
