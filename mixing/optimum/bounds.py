"""Proofs of an optimum: what no mixture can be below, and the price of each constraint that binds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mixing.observations.points import Floats
from mixing.optimum.linear_programs import linear_program
from mixing.optimum.problem import Problem

BINDS = 1e-7
"""A constraint binds where no more than this is left of it, in units of weight."""

_NAMELESS = ""


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a constraint that binds costs: the objective falls by `price` for a unit by which `limit` is relaxed.

    constraint: as in the settings, `max_epochs.code`. kind: which way it limits, "at most" or "at least". The price
    holds for small changes; where several constraints bind the same weights it is one of the sets that hold.
    per_token: of a cap by epochs, what one more unique token of the domain is worth; else None.
    """

    constraint: str
    kind: str
    limit: float
    price: float
    per_token: float | None = None


def lower_bound(problem: Problem, weights: Floats) -> float:
    """What the objective is nowhere below, where the problem is convex: the minimum of its tangents at `weights`.

    Without limits it is value - max over v of slope . (w - v), the gap of Frank and Wolfe 1956.
    """
    told = problem.evaluate(weights[None, :])
    slopes, limit_slopes = told.slopes[0], told.limit_slopes[0]
    heights = told.pieces[0] - slopes @ weights
    if len(slopes) == 1 and not len(limit_slopes):
        return float(slopes[0] @ problem.polytope.minimise(slopes[0]) + heights[0])
    cuts = (limit_slopes, limit_slopes @ weights - told.limits[0]) if len(limit_slopes) else None
    least = linear_program(problem.polytope, np.zeros(len(weights)), pieces=(slopes, heights), cuts=cuts)
    return -np.inf if least is None else float((slopes @ least + heights).max())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Active:
    """Normals of what binds (a @ w <= limit), and what each is."""

    normals: Floats
    told: tuple[Price, ...]
    kinked: npt.NDArray[np.int64]
    """Domains at their share in the prior, whose distance may grow or not."""


def prices(problem: Problem, weights: Floats, tokens: float = np.nan) -> tuple[Price, ...]:
    """Of the named constraints that bind at an optimum, dearest first.

    From the conditions of optimality: the multipliers that leave the least slope, by a linear program.
    """
    from scipy.optimize import linprog

    told = problem.evaluate(weights[None, :])
    active = _active(problem, weights)
    near = told.pieces[0] >= told.value[0] - 1e-7 * max(abs(told.value[0]), 1e-12)
    limited = np.flatnonzero(told.limits[0] > -1e-6) if len(problem.limit_names) else np.zeros(0, np.int64)
    columns = np.vstack([told.slopes[0][near], told.limit_slopes[0][limited], active.normals])
    pieces, limits, rows = int(near.sum()), len(limited), len(active.normals)
    kinks = np.eye(len(weights))[active.kinked]
    # Variables: multipliers of pieces, limits and rows; of kinks, each up to the distance's own (the last row's);
    # the sum's; and the largest slope that is left.
    width = pieces + limits + rows + len(kinks) + 2
    slope = np.zeros((len(weights), width))
    slope[:, : pieces + limits + rows] = columns.T
    slope[:, pieces + limits + rows : -2] = kinks.T
    slope[:, -2] = 1
    below = slope.copy()
    above = -slope
    below[:, -1] = above[:, -1] = -1
    upper = np.zeros((len(kinks), width))
    for number in range(len(kinks)):
        upper[number, pieces + limits + rows + number] = 1
        upper[number, pieces + limits + rows - 1] = -1
    total = np.zeros((1, width))
    total[0, :pieces] = 1
    bounds = [(0, None)] * (width - 2) + [(None, None), (0, None)]
    found = linprog(
        np.eye(width)[-1], A_ub=np.vstack([below, above, upper]), b_ub=np.zeros(2 * len(weights) + len(kinks)),
        A_eq=total, b_eq=[1.0], bounds=bounds, method="highs",
    )  # fmt: skip
    if found.x is None:
        return ()
    multipliers = found.x[pieces : pieces + limits + rows]
    what = (*(_limit(problem, int(number)) for number in limited), *active.told)
    size = float(np.abs(told.slopes[0]).max())
    priced = []
    for one, price in zip(what, multipliers.tolist(), strict=True):
        if one.constraint != _NAMELESS and price > 1e-9 * size:
            per_token = None if one.per_token is None else one.per_token * price / tokens
            priced.append(replace(one, price=price, per_token=per_token))
    return tuple(sorted(priced, key=lambda one: (-one.price, one.constraint)))


def _limit(problem: Problem, number: int) -> Price:
    name = problem.limit_names[number]
    limits = {"min_entropy": problem.least_entropy, "max_kl": problem.most_kl}
    if name in limits:
        return Price(constraint=name, kind="at least" if name == "min_entropy" else "at most",
                     limit=float(limits[name] or 0), price=0.0)  # fmt: skip
    metric = name.removeprefix("no_regression.")
    return Price(
        constraint=name, kind="at most", limit=float(problem.allowed[problem.law.metrics.index(metric)]), price=0.0
    )


def _active(problem: Problem, weights: Floats) -> _Active:
    polytope = problem.polytope
    unit = np.eye(len(weights))
    normals: list[Floats] = []
    told: list[Price] = []

    def add(normal: Floats, constraint: str, kind: str, limit: float, per_token: float | None = None) -> None:
        normals.append(normal)
        told.append(Price(constraint=constraint, kind=kind, limit=float(limit), price=0.0, per_token=per_token))

    nameless = (_NAMELESS,) * len(weights)
    lower_names, upper_names = polytope.lower_names or nameless, polytope.upper_names or nameless
    for domain, name in enumerate(polytope.domains):
        if weights[domain] <= polytope.lower[domain] + BINDS:
            add(-unit[domain], lower_names[domain], "at least", polytope.lower[domain])
        if weights[domain] >= polytope.upper[domain] - BINDS:
            label = upper_names[domain]
            epochs = problem.epochs_allowed.get(name) if label.startswith("max_epochs.") else None
            add(unit[domain], label, "at most", polytope.upper[domain], epochs)
    for name, row, limit in zip(polytope.names, polytope.rows, polytope.limits, strict=True):
        if row @ weights >= limit - BINDS:
            least = bool((row <= 0).all())
            add(row, name, "at least" if least else "at most", -limit if least else limit)
    kinked = np.zeros(0, np.int64)
    if polytope.prior is not None and np.maximum(weights - polytope.prior, 0).sum() >= polytope.change - BINDS:
        kinked = np.flatnonzero(np.abs(weights - polytope.prior) <= BINDS)
        add((weights > polytope.prior + BINDS).astype(np.float64), "max_change", "at most", polytope.change)
    return _Active(normals=np.array(normals).reshape(-1, len(weights)), told=tuple(told), kinked=kinked)
