"""What more runs are worth, and when to stop: ten more runs that gain less than x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixing.design.acquisition import batch, knowledge_gradient
from mixing.design.problem import SAME_WEIGHT, Problem, Scale
from mixing.design.proposal import Places, first_lacking
from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError
from mixing.optimum.constraints import Constraints
from mixing.single_thread import single_threaded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mixing.optimum.objective import Objective

DRAWS = 4000
"""Of what the runs may show; the expected gain is known to about 2% then."""
LEVEL = 0.9
JUDGED = 3
"""Mixtures a domain before a worth is told: a law of few runs does not know what it does not know. With 2 (16 runs, 8
domains) ten more runs seemed worth .01 and .02% of the loss in two of three simulated worlds, and were worth 1%."""


@dataclass(frozen=True, kw_only=True)
class Worth:
    """Of n more runs, in the objective's unit: by how much the loss of the mixture that is chosen is expected to fall.

    gain: expected; low, high: the 90% interval of what it may turn out to be; 0 is "the same mixture is chosen".
    limit: the gain from knowing the loss everywhere without error, which no number of runs exceeds on average.
    flops: cost of the n runs, in FLOPs or the unit of `costs`. best: predicted loss of the mixture chosen now.
    stop: whether the gain is less than `least`; False where no `least` is told. why: a sentence.
    """

    runs: int
    gain: float
    low: float
    high: float
    limit: float
    flops: float
    best: float
    stop: bool
    why: str


@single_threaded
def worth(
    known: Observations,
    n: int = 10,
    *,
    law: str | tuple[str, ...] | Law | None = None,
    constraints: Constraints | None = None,
    objective: Objective | None = None,
    sizes: Mapping[str, Scale] | None = None,
    costs: Mapping[str, float] | None = None,
    target: Scale | None = None,
    least: float | None = None,
    seed: int = 0,
) -> Worth:
    """What n more runs, chosen by knowledge gradient, are expected to gain; `least`: less than that is not worth it.

    Arguments are those of propose. Before there are three mixtures a domain, and twelve, and while the best mixture is
    predicted off what was observed, the gain is NaN and it never says stop. Raises MixingError as propose does.
    """
    if n < 1:
        raise MixingError(f"n: {n} runs; ask for the worth of at least 1")
    if least is not None and not least >= 0:
        raise MixingError(f"least: {least}; a gain is 0 or more, in the objective's unit")
    problem = Problem.of(
        known, constraints=constraints, objective=objective, sizes=sizes, costs=costs, target=target, seed=seed
    )
    cheapest = min(cost for _, cost in problem.sizes.values())
    if np.ptp(problem.polytope.vertices, axis=0).max() < SAME_WEIGHT:
        return _told(n, least, np.zeros(1), 0.0, n * cheapest, instead="only one mixture is feasible")
    lacking = max(first_lacking(problem), JUDGED * len(problem.domains) - len(problem.mixtures))
    if lacking > 0:
        why = f"too little is known to judge; {lacking} more mixtures are to be measured first"
        return _told(n, least, np.full(1, np.nan), np.nan, n * cheapest, instead=why)
    places_of = Places.of(problem, problem.surrogate(law))
    belief = places_of.belief
    if _best_is_unseen(places_of, known):
        why = "the best mixture is predicted off what was observed, where a law errs by more than it knows; measure it"
        return _told(n, least, np.full(1, np.nan), np.nan, n * cheapest, instead=why)
    places, _ = batch(belief, n, knowledge_gradient)
    at = np.flatnonzero(belief.target)
    mean = belief.mean[at]
    gains = _gains(mean, belief.together(np.array(places))[np.ix_(at, at)], seed)
    limit = float(_gains(mean, belief.covariance[np.ix_(at, at)], seed).mean())
    return _told(n, least, gains, limit, float(belief.cost[places].sum()), best=float(mean.min()))


def _best_is_unseen(places: Places, known: Observations) -> bool:
    from mixing.fitting.support import Support

    belief = places.belief
    at = np.flatnonzero(belief.target)
    best = places.points.rows(at[[int(np.argmin(belief.mean[at]))]])
    return not Support.of(known.points, uses_scale=False).inside(best)[0]


def _gains(mean: Floats, change: Floats, seed: int) -> Floats:
    """[d]: by how much the best mean lies below that of the mixture chosen now, once means change by N(0, change)."""
    sizes, vectors = np.linalg.eigh(change)
    kept = sizes > 1e-12 * max(float(sizes[-1]), 1e-300)
    draws = np.random.default_rng(seed).standard_normal((DRAWS // 2, int(kept.sum())))
    moved = mean + np.concatenate([draws, -draws]) @ (vectors[:, kept] * np.sqrt(sizes[kept])).T
    return np.asarray(moved[:, int(np.argmin(mean))] - moved.min(axis=1))


def _told(
    n: int, least: float | None, gains: Floats, limit: float, flops: float, *, best: float = np.nan, instead: str = ""
) -> Worth:
    gain = float(gains.mean())
    low, high = (float(value) for value in np.quantile(gains, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    stop = least is not None and gain < least
    runs = f"{n} more run{'s' if n > 1 else ''}"
    if instead:
        why = f"{runs}: {instead}"
    else:
        why = f"{runs} are expected to lower the loss by {gain:.2g} ({LEVEL:.0%}: {low:.2g} to {high:.2g})"
        why += f", and any number of runs by {limit:.2g}"
    if least is not None and np.isfinite(gain):
        why += f"; that is {'less' if stop else 'not less'} than {least:.2g}"
    return Worth(runs=n, gain=gain, low=low, high=high, limit=limit, flops=flops, best=best, stop=stop, why=why)
