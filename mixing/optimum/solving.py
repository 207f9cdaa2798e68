"""The best mixture of a problem: exact where it is convex, from many starts where it is not, by search for trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixing.observations.points import Floats, MixingError
from mixing.optimum.bounds import lower_bound
from mixing.optimum.interior_point import minimise_convex
from mixing.optimum.local_search import minimise_locally
from mixing.optimum.polytope import TOLERANCE
from mixing.optimum.problem import Problem

_GAP = 1e-9
_SAMPLES = 256
_STARTS = 6
_AGREE = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """weights: [m]. bound: what the objective is nowhere below (convex problems), else None.

    gap: (value - bound) as a share of the value's size. starts, agreed: searches made, and how many of them came within
    1e-6 of the best value.
    """

    weights: Floats
    value: float
    method: str
    bound: float | None = None
    gap: float | None = None
    starts: int = 1
    agreed: int = 1


def solve(problem: Problem, hints: Floats, *, seed: int = 0, starts: int = _STARTS) -> Solution:
    """The best mixture. hints: [h, m], mixtures worth starting from. Raises MixingError where limits cannot be kept."""
    low, high = problem.polytope.ranges()
    if (high - low).max() < 1e-12:
        only = problem.polytope.project((low + high) / 2)
        _check(problem, only)
        value = float(problem.values(only[None, :])[0])
        return Solution(weights=only, value=value, method="the only mixture", bound=value, gap=0.0)
    hints = problem.polytope.project(hints.reshape(-1, len(low)))
    if problem.convex:
        found = _convex(problem, hints, seed)
        if found is not None:
            return found
    if problem.flat:
        from mixing.optimum.tree_search import search

        weights, value = search(problem, hints, seed=seed)
        _check(problem, weights)
        return Solution(weights=weights, value=value, method="search, since the law has no slopes")
    return _many(problem, hints, seed=seed, starts=starts)


def _convex(problem: Problem, hints: Floats, seed: int) -> Solution | None:
    inside = minimise_convex(problem)
    if inside is None:
        method, tried = "sequential quadratic programming", [_many(problem, hints, seed=seed, starts=2).weights]
    else:
        method, tried = "interior point", [problem.polytope.project(inside), _snapped(problem, inside)]
    tried = [weights for weights in tried if problem.worst_limit(weights[None, :])[0] <= TOLERANCE]
    if not tried:
        return None
    bounds = [lower_bound(problem, weights) for weights in tried]
    value = float(problem.values(tried[0][None, :])[0])
    size = max(abs(value), 1e-300)
    if inside is not None and value - max(bounds) > _GAP * size:
        tried.append(minimise_locally(problem, inside))
        bounds.append(lower_bound(problem, tried[-1]))
    values, bound = problem.values(np.array(tried)), max(bounds)
    # Weights of exactly 0 are told where they cost no more than the gap that is promised.
    best, most = int(np.argmin(values)), -1
    for place, weights in enumerate(tried):
        at_bounds = int((weights == problem.polytope.lower).sum())
        if values[place] - bound <= _GAP * size and at_bounds > most:
            best, most = place, at_bounds
    # Linear programs are exact to about 1e-10: the bound may come out above what was reached by rounding.
    bound = min(bound, float(values[best]))
    gap = float(values[best] - bound) / size
    return Solution(weights=tried[best], value=float(values[best]), method=method, bound=bound, gap=gap)


def _snapped(problem: Problem, inside: Floats) -> Floats:
    """With weights that all but meet a bound on it."""
    polytope = problem.polytope
    near = np.where(inside - polytope.lower < 1e-8, polytope.lower, inside)
    near = np.where(polytope.upper - near < 1e-8, polytope.upper, near)
    return polytope.project(near)


def _many(problem: Problem, hints: Floats, *, seed: int, starts: int) -> Solution:
    """From the hints and the best of a sample that is spread over what is feasible."""
    polytope = problem.polytope
    sample = np.vstack([hints, polytope.centre()[None, :], polytope.sample(_SAMPLES, seed=seed, steps=40)])
    sample = _feasible(problem, sample)
    values = problem.values(sample)
    chosen = list(range(min(len(hints), starts // 2, len(sample))))
    for place in np.argsort(values, kind="stable"):
        far = all(np.abs(sample[place] - sample[other]).sum() > 0.05 for other in chosen)
        if len(chosen) < starts and (far or not chosen):
            chosen.append(int(place))
    ends = np.array([minimise_locally(problem, sample[place]) for place in chosen])
    found = problem.values(ends)
    found = np.where(problem.worst_limit(ends) <= TOLERANCE, found, np.inf)
    # Rounding decides nothing: of ends alike the first in their own order.
    best = int(np.argmin(found))
    agreed = int((found <= found[best] + _AGREE * max(abs(float(found[best])), 1e-300)).sum())
    return Solution(
        weights=ends[best], value=float(found[best]), method="sequential quadratic programming", starts=len(chosen),
        agreed=agreed,
    )  # fmt: skip


def _feasible(problem: Problem, sample: Floats) -> Floats:
    """Those that keep the limits that are not linear; where none does, what comes nearest to it is led there."""
    if not problem.limit_names:
        return sample
    worst = problem.worst_limit(sample)
    if (worst <= 0).any():
        return sample[worst <= 0]
    led = np.array([minimise_locally(problem, sample[place], feasibility=True) for place in np.argsort(worst)[:3]])
    best = led[[int(np.argmin(problem.worst_limit(led)))]]
    _check(problem, best[0])
    return best


def _check(problem: Problem, weights: Floats) -> None:
    limits = problem.evaluate(weights[None, :]).limits[0]
    if limits.max(initial=-np.inf) > TOLERANCE:
        place = int(np.argmax(limits))
        proof = "no mixture keeps it" if problem.convex else "no mixture was found that keeps it"
        raise MixingError(
            f"{problem.limit_names[place]}: {proof}; the nearest misses it by {limits[place]:.3g}: allow more"
        )
