"""Feasible mixtures to choose runs from: samples of a polytope of mixtures, its corners, and rounding that stays in it.

A polytope is {w : sum w = 1, lower <= w <= upper, rows @ w <= limits}. Nothing here rejects samples: with 17 domains
only a third of Dirichlet samples meet caps of four times each share (measured on RegMix), and fewer with more domains.
Samples outside are pulled towards the middle of the polytope until they are in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mixing.observations.points import Floats, MixingError

if TYPE_CHECKING:
    from mixing.optimum.polytope import Polytope

SLACK = 1e-9
"""A constraint may be missed by this much: rounding of sums, not a licence."""
TEMPERATURES = (1.0, 2.0, 4.0)
"""Shares of the natural mixture are raised to 1/T: T = 1 keeps them, larger ones come near to uniform."""
CONCENTRATIONS = (0.5, 2.0, 8.0)
"""Dirichlet parameters sum to this many times the number of domains: small ones sample near the edges."""
STEPS_BETWEEN = 8
"""Steps of hit-and-run between two samples that are kept, a chain."""


def feasible(polytope: Polytope, weights: Floats, slack: float = SLACK) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """[n]: which rows of weights [n, m] are in the polytope."""
    inside = (weights >= polytope.lower - slack).all(axis=1) & (weights <= polytope.upper + slack).all(axis=1)
    inside &= np.abs(weights.sum(axis=1) - 1) <= slack
    return np.asarray(inside & (weights @ polytope.rows.T <= polytope.limits + slack).all(axis=1))


def corners(polytope: Polytope, count: int, rng: np.random.Generator) -> Floats:
    """[v, m]: vertices, where linear functions are least: as much of each domain as may be, then random functions."""
    size = len(polytope.domains)
    costs = np.vstack([-np.eye(size), np.eye(size) if size <= count else np.zeros((0, size))])
    costs = np.vstack([costs, rng.standard_normal((max(count - len(costs), 0), size))])
    found = np.array([_least(polytope, cost) for cost in costs])
    _, first = np.unique(found.round(9), axis=0, return_index=True)
    return np.asarray(found[np.sort(first)])


def _least(polytope: Polytope, cost: Floats) -> Floats:
    """The mixture of the polytope where cost @ w is least."""
    room = np.minimum(polytope.upper, 1) - polytope.lower
    if not len(polytope.limits):
        # Without rows the cheapest domains are filled first.
        order = np.argsort(cost, kind="stable")
        before = np.cumsum(room[order]) - room[order]
        weights = polytope.lower.copy()
        weights[order] += np.clip(1 - polytope.lower.sum() - before, 0, room[order])
        return np.asarray(weights)
    from scipy.optimize import linprog

    bounds = list(zip(polytope.lower, np.minimum(polytope.upper, 1), strict=True))
    ones = np.ones((1, len(cost)))
    answer = linprog(cost, A_ub=polytope.rows, b_ub=polytope.limits, A_eq=ones, b_eq=[1.0], bounds=bounds)
    if answer.x is None:
        raise MixingError("constraints: no mixture meets all of them; loosen one")
    return np.asarray(np.clip(answer.x, polytope.lower, polytope.upper))


def pulled(polytope: Polytope, weights: Floats, middle: Floats) -> Floats:
    """Rows of weights [n, m], each moved straight towards `middle` (in the polytope) until it is in the polytope."""
    steps = weights - middle
    reach = np.clip(_reach(polytope, np.broadcast_to(middle, weights.shape), steps), 0, 1)
    return np.asarray(np.clip(middle + reach[:, None] * steps, polytope.lower, polytope.upper))


def _reach(polytope: Polytope, start: Floats, steps: Floats) -> Floats:
    """[n]: the largest t with start + t * steps in the polytope, for starts in it."""
    upper = np.where(steps > SLACK, (polytope.upper - start) / np.where(steps > SLACK, steps, 1), np.inf)
    lower = np.where(steps < -SLACK, (polytope.lower - start) / np.where(steps < -SLACK, steps, 1), np.inf)
    reach = np.minimum(upper.min(axis=1), lower.min(axis=1))
    if len(polytope.limits):
        moved = steps @ polytope.rows.T
        left = polytope.limits - start @ polytope.rows.T
        along = np.where(moved > SLACK, left / np.where(moved > SLACK, moved, 1), np.inf)
        reach = np.minimum(reach, along.min(axis=1))
    return np.asarray(np.maximum(reach, 0))


def walked(polytope: Polytope, vertices: Floats, count: int, rng: np.random.Generator) -> Floats:
    """[count, m] by hit-and-run (Smith 1984), along differences of vertices.

    Such directions lie in the polytope however flat it is, so that fixed domains and implied equalities need no care.
    """
    if len(vertices) < 2:
        return np.repeat(vertices, count, axis=0)
    chains = min(count, 64)
    blend = rng.dirichlet(np.ones(len(vertices)), chains)
    here = blend @ vertices
    kept = []
    for step in range(-(-count // chains) * STEPS_BETWEEN):
        one, other = rng.integers(len(vertices), size=(2, chains))
        steps = vertices[one] - vertices[other]
        ahead, behind = _reach(polytope, here, steps), _reach(polytope, here, -steps)
        ahead, behind = (np.where(np.isfinite(reach), reach, 0) for reach in (ahead, behind))
        here = here + (rng.random(chains) * (ahead + behind) - behind)[:, None] * steps
        here = np.clip(here, polytope.lower, polytope.upper)
        if step % STEPS_BETWEEN == STEPS_BETWEEN - 1:
            kept.append(here)
    return np.concatenate(kept)[:count]


def sampled(polytope: Polytope, natural: Floats, count: int, rng: np.random.Generator) -> Floats:
    """About `count` feasible mixtures [c, m]: corners and soft corners, Dirichlet around the natural one, hit-and-run."""
    vertices = corners(polytope, max(2 * len(natural), 24), rng)
    middle = vertices.mean(axis=0)
    base = pulled(polytope, natural[None], middle)
    soft = [vertices, 0.75 * vertices + 0.25 * base, 0.5 * vertices + 0.5 * base]
    near = [near_to(natural, temperature, dense, max(count // 18, 1), rng)
            for temperature in TEMPERATURES for dense in CONCENTRATIONS]  # fmt: skip
    around = pulled(polytope, np.concatenate(near), middle)
    return within(polytope, np.concatenate([base, *soft, around, walked(polytope, vertices, count // 2, rng)]))


def near_to(natural: Floats, temperature: float, concentration: float, count: int, rng: np.random.Generator) -> Floats:
    """[count, m]: Dirichlet samples whose mean is the natural mixture at a temperature."""
    shares = np.where(natural > 0, natural, natural[natural > 0].min() / 10) ** (1 / temperature)
    shares = shares / shares.sum()
    drawn = rng.standard_gamma(np.broadcast_to(shares * concentration * len(shares), (count, len(shares)))) + 1e-12
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def within(polytope: Polytope, weights: Floats) -> Floats:
    """Those rows that are in the polytope, each once."""
    kept = weights[feasible(polytope, weights)]
    _, first = np.unique(kept.round(9), axis=0, return_index=True)
    return np.asarray(kept[np.sort(first)])


def rounded(polytope: Polytope, weights: Floats, decimals: int = 4) -> Floats:
    """Rows of weights in steps of 10^-decimals that still sum to 1 and meet the constraints; as they were elsewhere."""
    unit = 10**decimals
    low, high = np.ceil(polytope.lower * unit - 1e-6), np.floor(np.minimum(polytope.upper, 1) * unit + 1e-6)
    if (low > high).any() or low.sum() > unit or high.sum() < unit:
        return weights
    whole = np.clip(np.floor(weights * unit + 1e-6), low, high)
    for row, exact in zip(whole, weights * unit, strict=True):
        while (left := int(unit - row.sum())) != 0:
            step = np.sign(left)
            room = row < high if step > 0 else row > low
            gain = np.where(room, step * (exact - row), -np.inf)
            chosen = np.argsort(-gain, kind="stable")[: min(abs(left), int(room.sum()))]
            row[chosen] += step
    neat = whole / unit
    return np.where(feasible(polytope, neat)[:, None], neat, weights)
