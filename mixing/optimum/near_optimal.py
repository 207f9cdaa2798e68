"""How flat an optimum is: which shares of each domain are about as good, and mixtures that are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mixing.observations.points import Floats
from mixing.optimum.local_search import minimise_locally, pulled
from mixing.optimum.problem import Problem

_ITERATIONS, _MANY_ITERATIONS = 40, 12
_MANY = 24
"""Domains above which a range's search is cut short, which may tell it narrower than it is."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NearOptimal:
    """Mixtures whose objective is at most `within` above the optimum's.

    low, high: [m], the least and greatest share of each domain among them that was found; it is at least so wide.
    sample: [s, m], some of them, scattered. farthest: the largest total variation distance of one from the optimum, the
    share of tokens that can change domain at that cost.
    """

    within: float
    low: Floats
    high: Floats
    sample: Floats
    farthest: float


def near_optimal(problem: Problem, optimum: Floats, *, within: float, seed: int = 0, count: int = 64) -> NearOptimal:
    """The near-optimal set around an optimum, which is one of it. within: in the objective's unit."""
    level = float(problem.values(optimum[None, :])[0]) + within
    missed = max(0.0, float(problem.worst_limit(optimum[None, :])[0]))

    def keeps(rows: Floats) -> npt.NDArray[np.bool_]:
        return np.asarray((problem.values(rows) <= level) & (problem.worst_limit(rows) <= missed))

    ends = pulled(optimum, problem.polytope.vertices, keeps, rounds=20)
    if not problem.flat:
        iterations = _ITERATIONS if len(optimum) <= _MANY else _MANY_ITERATIONS
        costs = np.vstack([np.eye(len(optimum)), -np.eye(len(optimum))])
        starts = ends[(costs @ ends.T).argmin(axis=1)]
        solved = [
            minimise_locally(problem, start, cost=cost, level=level, iterations=iterations)
            for start, cost in zip(starts, costs, strict=True)
        ]
        ends = np.vstack([ends, pulled(optimum, np.array(solved), keeps, rounds=20)])
    reached = np.vstack([optimum[None, :], problem.polytope.project(ends)])
    sample = pulled(optimum, _between(problem.law.domains, reached, seed, count), keeps, rounds=12)
    every = np.vstack([reached[keeps(reached)], optimum[None, :], sample])
    return NearOptimal(
        within=within,
        low=every.min(axis=0),
        high=every.max(axis=0),
        sample=sample,
        farthest=float(np.abs(every - optimum).sum(axis=1).max() / 2),
    )


def _between(domains: tuple[str, ...], ends: Floats, seed: int, count: int) -> Floats:
    """Mixtures between a few ends each: means of many would all lie in the middle."""
    order = np.argsort(np.array(domains))
    sorted_ends = ends[np.lexsort(ends[:, order].T.round(6))]
    shares = np.random.default_rng(seed).dirichlet(np.full(len(ends), 1.5 / len(ends)), count)
    return np.asarray(shares @ sorted_ends)
