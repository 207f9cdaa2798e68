"""The optimum of a convex problem, by a barrier method.

Source: Boyd and Vandenberghe, Convex Optimization, section 11.3. The largest of several pieces is smoothed by its own
barrier, min over t of s t - sum of log(t - piece), with t eliminated. The Hessian is taken by differences of the law's
analytic gradients, all in one call; what is found is proved by a lower bound elsewhere (bounds.py), not believed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixing.observations.points import Floats
from mixing.optimum.linear_programs import inequalities
from mixing.optimum.problem import Problem

_GAP = 1e-12
_SHARPER = 30.0
_NEWTON_STEPS = 50
_SLACK = 1e-8
"""A feasible set thinner than this has no inside to go through."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Barrier:
    """Over x = (w, u of a distance from the prior): rows @ x < limits, totals @ x = sums.

    size: what a unit of the objective is divided by. feasibility: limits stand for the pieces, to find where all hold.
    """

    problem: Problem
    rows: Floats
    limits: Floats
    totals: Floats
    sums: Floats
    size: float = 1.0
    feasibility: bool = False

    @property
    def domains(self) -> int:
        return len(self.problem.law.domains)

    def at(self, x: Floats, sharpness: float) -> _Here | None:
        """The barrier's parts at x; None outside."""
        left = self.limits - self.rows @ x
        if not (left > 0).all():
            return None
        told = self.problem.evaluate(x[None, : self.domains])
        if self.feasibility:
            pieces, slopes = told.limits[0], told.limit_slopes[0]
            kept, kept_slopes = np.zeros(0), np.zeros((0, self.domains))
        else:
            pieces, slopes = told.pieces[0] / self.size, told.slopes[0] / self.size
            kept, kept_slopes = -told.limits[0], told.limit_slopes[0]
        if not (kept > 0).all():
            return None
        largest = float(pieces.max())
        # t - largest lies between 1 / s and p / s, where the sum of 1 / (t - piece) is s.
        low, high = 1 / sharpness, len(pieces) / sharpness
        for _ in range(60 if len(pieces) > 1 else 0):
            middle = (low + high) / 2
            above = float((1 / (middle + largest - pieces)).sum()) > sharpness
            low, high = (middle, high) if above else (low, middle)
        gaps = high + (largest - pieces)
        return _Here(
            left=np.concatenate([left, kept]), largest=largest, gaps=gaps, shares=1 / (sharpness * gaps),
            slopes=slopes, kept_slopes=kept_slopes,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class _Here:
    """left: of each linear constraint and limit. gaps: t less each piece; shares: the pieces' multipliers."""

    left: Floats
    largest: float
    gaps: Floats
    shares: Floats
    slopes: Floats
    kept_slopes: Floats


def minimise_convex(problem: Problem, *, within: float = 0.0) -> Floats | None:
    """The mixture of least objective ([m]), strictly inside; None where the feasible set has no inside.

    within: stop at about so much above the least, well inside every constraint, in the objective's unit.
    """
    found = _inside(problem)
    if found is None:
        return None
    x, barrier = found
    domains = barrier.domains
    if problem.limit_names and problem.worst_limit(x[None, :domains])[0] > -1e-9:
        x = _descend(replace(barrier, feasibility=True), x, stop_below=-1e-7)
        if problem.worst_limit(x[None, :domains])[0] >= 0:
            return None
    told = problem.evaluate(x[None, :domains])
    slope = told.slopes[0] - told.slopes[0].mean(axis=1, keepdims=True)
    size = max(float(np.abs(slope).max()), 1e-12 * float(np.abs(told.pieces).max()), 1e-300)
    return _descend(replace(barrier, size=size), x, gap=max(within / size, _GAP))[:domains]


def _inside(problem: Problem) -> tuple[Floats, _Barrier] | None:
    """A point strictly inside the linear constraints, as far from all as can be, and the barrier around it."""
    from scipy.optimize import linprog

    polytope = problem.polytope
    count = len(polytope.domains)
    rows, limits, width = inequalities(polytope)
    fixed = polytope.upper - polytope.lower < 1e-12
    capped = (polytope.upper < 1) & ~fixed
    unit = np.eye(count, width)
    lifted = np.eye(width)[count:]
    rows = np.vstack([rows, unit[capped], -unit[~fixed], -lifted])
    limits = np.concatenate([limits, polytope.upper[capped], -polytope.lower[~fixed], np.zeros(len(lifted))])
    totals = np.vstack([unit.sum(axis=0), unit[fixed]])
    sums = np.concatenate([[1.0], polytope.lower[fixed]])
    if len(totals) > count:
        return None
    found = linprog(
        -np.eye(width + 1)[-1],
        A_ub=np.hstack([rows, np.ones((len(rows), 1))]),
        b_ub=limits,
        A_eq=np.hstack([totals, np.zeros((len(totals), 1))]),
        b_eq=sums,
        bounds=[(None, None)] * width + [(0, 1)],
        method="highs",
    )
    if found.x is None or found.x[-1] < _SLACK:
        return None
    barrier = _Barrier(problem=problem, rows=rows, limits=limits, totals=totals, sums=sums)
    return np.asarray(found.x[:-1], np.float64), barrier


def _descend(barrier: _Barrier, x: Floats, *, gap: float = _GAP, stop_below: float = -np.inf) -> Floats:
    """Newton steps on the barrier, while it gets sharper."""
    sharpness = 1.0
    here = barrier.at(x, sharpness)
    assert here is not None
    count = len(here.left) + len(here.gaps)
    while count / sharpness > gap:
        here = barrier.at(x, sharpness)
        for _ in range(_NEWTON_STEPS):
            if here is None or here.largest < stop_below:
                return x
            x, here, decrement = _step(barrier, x, here, sharpness)
            if decrement < 1e-5:
                break
        sharpness *= _SHARPER
    return x


def _step(barrier: _Barrier, x: Floats, here: _Here, sharpness: float) -> tuple[Floats, _Here, float]:
    """One damped Newton step, where it leads to, and the decrement before it."""
    domains, linear = barrier.domains, len(barrier.limits)
    pulls = np.vstack([barrier.rows, np.zeros((len(here.kept_slopes), len(x)))])
    pulls[linear:, :domains] = here.kept_slopes
    pulls /= here.left[:, None]
    of_pieces, of_limits = sharpness * here.shares / barrier.size, 1 / here.left[linear:]
    if barrier.feasibility:
        of_limits, of_pieces = sharpness * here.shares, np.zeros(len(barrier.problem.coefficients))
    hessian = pulls.T @ pulls
    hessian[:domains, :domains] += barrier.problem.curvature(x[None, :domains], of_pieces[None], of_limits[None])[0]
    if len(here.gaps) > 1:
        weight = 1 / here.gaps**2
        apart = here.slopes - (weight / weight.sum()) @ here.slopes
        hessian[:domains, :domains] += (apart.T * weight) @ apart
    gradient = pulls.sum(axis=0)
    gradient[:domains] += sharpness * here.shares @ here.slopes
    # Rows and columns of like size: near the bounds the Hessian's differ by 1e20.
    none = np.zeros((len(barrier.sums), len(barrier.sums)))
    system = np.block([[hessian, barrier.totals.T], [barrier.totals, none]])
    scale = 1 / np.sqrt(np.concatenate([np.maximum(np.diag(hessian), 1e-16 * hessian.max()), np.ones(len(none))]))
    wanted = -np.concatenate([gradient, barrier.totals @ x - barrier.sums]) * scale
    move = (np.linalg.solve(system * scale[:, None] * scale, wanted) * scale)[: len(x)]
    decrement = float(-gradient @ move)
    rounding = 1e-9 + 4e-15 * sharpness * abs(here.largest)
    length = 1.0
    for _ in range(40):
        there = barrier.at(x + length * move, sharpness)
        if there is not None:
            rise = (there.largest + there.gaps.min()) - (here.largest + here.gaps.min())
            change = sharpness * rise - np.log(there.left / here.left).sum() - np.log(there.gaps / here.gaps).sum()
            if change <= -0.1 * length * decrement + rounding:
                return x + length * move, there, decrement
        length /= 2
    return x, here, 0.0
