"""The best mixture of a law without slopes, as trees are: sampling, then a search by moves of weight between domains.

Trees are constant in cells, and their least cell is where their errors are most flattering: so of mixtures that are
predicted alike the mean of the best is taken where it is no worse, as RegMix does with its best 128 (arXiv:2407.01492).
"""

from __future__ import annotations

import numpy as np

from mixing.observations.points import Floats
from mixing.optimum.problem import Problem

_SAMPLES = 16_384
_KEPT = 16
_MEAN_OF = 128
_ROUNDS = 60
_MISSED = 1e100


def search(problem: Problem, hints: Floats, *, seed: int) -> tuple[Floats, float]:
    """A feasible mixture and its objective. hints: [h, m], feasible mixtures to begin with."""
    random = np.random.default_rng(seed)
    polytope = problem.polytope
    even = polytope.sample(_SAMPLES // 4, seed=seed, steps=40)
    ends = np.vstack([hints, polytope.vertices, even[: len(hints) + 8]])
    corners = random.dirichlet(np.full(len(ends), 0.2), _SAMPLES // 2) @ ends
    about = hints[random.integers(len(hints), size=_SAMPLES // 4)]
    pulls = random.random((len(about), 1)) ** 2
    sample = np.vstack([hints, polytope.vertices, even, corners, (1 - pulls) * about + pulls * even[: len(about)]])
    values = _values(problem, sample)
    order = np.argsort(values, kind="stable")
    mean = sample[order[:_MEAN_OF]].mean(axis=0)
    at, reached = sample[order[:_KEPT]], values[order[:_KEPT]]
    step = np.full(len(at), 0.1)
    for _ in range(_ROUNDS):
        moved = _moves(problem, at, step, random)
        found = _values(problem, moved.reshape(-1, at.shape[1])).reshape(len(at), -1)
        best = found.argmin(axis=1)
        better = found[np.arange(len(at)), best] < reached
        at = np.where(better[:, None], moved[np.arange(len(at)), best], at)
        reached = np.where(better, found[np.arange(len(at)), best], reached)
        step = np.where(better, np.minimum(step * 1.5, 0.5), step / 1.5)
    best_place = int(np.argmin(reached))
    weights, value = at[best_place], float(reached[best_place])
    mean_value = float(_values(problem, mean[None, :])[0])
    if mean_value <= value:
        weights, value = mean, mean_value
    weights = polytope.project(weights)
    return weights, float(_values(problem, weights[None, :])[0])


def _moves(problem: Problem, at: Floats, step: Floats, random: np.random.Generator) -> Floats:
    """[n, moves, m]: feasible neighbours: weight from one domain to another, and towards vertices."""
    count, domains = at.shape
    moves = 4 * domains
    vertices = problem.polytope.vertices
    towards = vertices[random.integers(len(vertices), size=(count, moves))] - at[:, None, :]
    away = vertices[random.integers(len(vertices), size=(count, moves))]
    swapped = towards + at[:, None, :] - away
    directions = np.where((np.arange(moves) % 2 == 0)[:, None], towards, swapped).reshape(-1, domains)
    start = np.repeat(at, moves, axis=0)
    sizes = np.maximum(np.abs(directions).sum(axis=1) / 2, 1e-300)
    reach = problem.polytope.reach(start, directions)
    lengths = np.minimum(np.repeat(step, moves) * random.random(count * moves) / sizes, reach)
    return np.asarray((start + lengths[:, None] * directions).reshape(count, moves, domains))


def _values(problem: Problem, weights: Floats) -> Floats:
    """The objective; where a limit is missed far above it, the more so the more it is missed."""
    values, missed = problem.values(weights), problem.worst_limit(weights)
    return np.where(missed <= 0, values, _MISSED * (1 + np.maximum(missed, 0)))
