"""The optimum near a start, by sequential quadratic programming (scipy's SLSQP, Kraft 1988) with analytic slopes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mixing.observations.points import Floats
from mixing.optimum.linear_programs import inequalities
from mixing.optimum.problem import Evaluation, Problem

_TOLERANCE = 1e-13


def minimise_locally(
    problem: Problem,
    start: Floats,
    *,
    cost: Floats | None = None,
    level: float = np.inf,
    feasibility: bool = False,
    iterations: int = 200,
) -> Floats:
    """A feasible mixture ([m]) with the least objective that is found from a feasible start.

    cost: minimise cost @ w instead, with the objective at most `level`. feasibility: minimise the largest limit that is
    not linear instead. Limits that are not linear are kept where the start keeps them.
    """
    from scipy.optimize import minimize

    search = _Search.of(problem, start, cost=cost, level=level, feasibility=feasibility)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # steps out of bounds by rounding, which are clipped
        found = minimize(
            search.value, search.start(start), jac=search.slope, bounds=search.bounds(),
            constraints=search.constraints(), method="SLSQP", options={"maxiter": iterations, "ftol": _TOLERANCE},
        )  # fmt: skip
    end: Floats = problem.polytope.project(np.maximum(np.nan_to_num(found.x[: len(start)]), 0))
    if feasibility or not problem.limit_names or problem.worst_limit(start[None, :])[0] > 0:
        return end
    return np.asarray(pulled(start, end[None, :], lambda rows: problem.worst_limit(rows) <= 0)[0])


Keeps = Callable[[Floats], npt.NDArray[np.bool_]]


def pulled(inside: Floats, outside: Floats, keeps: Keeps, *, rounds: int = 40) -> Floats:
    """[n, m]: each row of `outside` drawn towards `inside` ([m]) until `keeps` (rows -> mask) holds, by halving."""
    low, high = np.zeros(len(outside)), np.ones(len(outside))
    tried = high
    for _ in range(rounds):
        good = keeps(inside + tried[:, None] * (outside - inside))
        low, high = np.where(good, tried, low), np.where(good, high, tried)
        if (low == high).all():
            break
        tried = (low + high) / 2
    return np.asarray(inside + low[:, None] * (outside - inside))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Search:
    """Over x = (w, u of a distance from the prior, t of the largest piece where there are several).

    size: what a unit of the objective is divided by.
    """

    problem: Problem
    rows: Floats
    limits: Floats
    cost: Floats | None
    level: float
    feasibility: bool
    several: bool
    size: float
    seen: dict[bytes, Evaluation] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, start: Floats, *, cost: Floats | None, level: float, feasibility: bool) -> _Search:
        here = problem.evaluate(start[None, :])
        slopes = (here.limit_slopes if feasibility else here.slopes)[0]
        several = cost is None and len(slopes) > 1
        rows, limits, _ = inequalities(problem.polytope, extra=1 if several else 0)
        size = max(float(np.abs(slopes - slopes.mean(axis=1, keepdims=True)).max()), 1e-300)
        return cls(
            problem=problem, rows=rows, limits=limits, cost=cost, level=level, feasibility=feasibility,
            several=several, size=size,
        )  # fmt: skip

    @property
    def domains(self) -> int:
        return len(self.problem.law.domains)

    def start(self, weights: Floats) -> Floats:
        x = np.zeros(self.rows.shape[1])
        x[: self.domains] = weights
        if self.problem.polytope.prior is not None:
            x[self.domains : 2 * self.domains] = np.maximum(weights - self.problem.polytope.prior, 0)
        if self.several:
            x[-1] = self._pieces(x)[0].max()
        return x

    def value(self, x: Floats) -> float:
        if self.cost is not None:
            return float(self.cost @ x[: self.domains])
        return float(x[-1] if self.several else self._pieces(x)[0][0])

    def slope(self, x: Floats) -> Floats:
        wide = np.zeros(len(x))
        if self.cost is not None:
            wide[: self.domains] = self.cost
        elif self.several:
            wide[-1] = 1
        else:
            wide[: self.domains] = self._pieces(x)[1][0]
        return wide

    def bounds(self) -> list[tuple[float, float | None] | tuple[None, None]]:
        polytope = self.problem.polytope
        lifted = self.rows.shape[1] - self.domains - self.several
        weights = list(zip(polytope.lower.tolist(), polytope.upper.tolist(), strict=True))
        return [*weights, *[(0.0, None)] * lifted, *[(None, None)] * self.several]

    def constraints(self) -> list[dict[str, Any]]:
        """As SLSQP has them: equal to 0, or at least 0."""
        total = np.zeros((1, self.rows.shape[1]))
        total[0, : self.domains] = 1
        told: list[dict[str, Any]] = [{"type": "eq", "fun": lambda x: total @ x - 1, "jac": lambda _: total}]
        if len(self.rows):
            told.append({"type": "ineq", "fun": lambda x: self.limits - self.rows @ x, "jac": lambda _: -self.rows})
        if self.several or self.cost is not None or self.problem.limit_names:
            told.append({"type": "ineq", "fun": lambda x: self._left(x)[0], "jac": lambda x: self._left(x)[1]})
        return told

    def _left(self, x: Floats) -> tuple[Floats, Floats]:
        """What is left of the pieces' bounds and of the limits, and the slopes of that."""
        told = self._at(x)
        parts, slopes = [], []
        if self.several or self.cost is not None:
            pieces, by_weight = self._pieces(x)
            parts.append((x[-1] if self.several else self.level / self.size) - pieces)
            slopes.append(-by_weight)
        if not self.feasibility:
            parts.append(-told.limits[0])
            slopes.append(-told.limit_slopes[0])
        wide = np.zeros((sum(map(len, parts)), len(x)))
        if len(wide):
            wide[:, : self.domains] = np.vstack(slopes)
        if self.several:
            wide[: len(parts[0]), -1] = 1
        return np.concatenate([*parts, np.zeros(0)]), wide

    def _pieces(self, x: Floats) -> tuple[Floats, Floats]:
        told = self._at(x)
        if self.feasibility:
            return told.limits[0] / self.size, told.limit_slopes[0] / self.size
        return told.pieces[0] / self.size, told.slopes[0] / self.size

    def _at(self, x: Floats) -> Evaluation:
        # SLSQP asks for values and slopes one after the other.
        key = x[: self.domains].tobytes()
        if key not in self.seen:
            self.seen.clear()
            self.seen[key] = self.problem.evaluate(np.maximum(x[None, : self.domains], 0))
        return self.seen[key]
