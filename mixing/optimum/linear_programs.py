"""Linear programs over a polytope of mixtures, by HiGHS."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixing.observations.points import Floats
from mixing.optimum.polytope import Polytope

_EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def inequalities(polytope: Polytope, extra: int = 0) -> tuple[Floats, Floats, int]:
    """Rows and limits over (w, u, extra variables), and how many variables there are.

    u, one a domain, is there where a distance from the prior is limited: u >= w - prior, u >= 0, sum u <= change.
    """
    count = len(polytope.domains)
    lifted = 0 if polytope.prior is None else count
    width = count + lifted + extra
    rows = np.zeros((len(polytope.rows), width))
    rows[:, :count] = polytope.rows
    limits = polytope.limits
    if polytope.prior is not None:
        above = np.zeros((count + 1, width))
        above[:count, :count] = np.eye(count)
        above[:count, count : 2 * count] = -np.eye(count)
        above[count, count : 2 * count] = 1
        rows = np.vstack([rows, above])
        limits = np.concatenate([limits, polytope.prior, [polytope.change]])
    return rows, limits, width


def linear_program(
    polytope: Polytope, cost: Floats, *, pieces: tuple[Floats, Floats] | None = None, cuts: Any = None
) -> Floats | None:
    """The w of least cost @ w (or of least max of slopes @ w + heights, pieces = slopes [p, m] and heights [p]).

    cuts: (rows [c, m], limits [c]) that hold too. None where nothing is feasible.
    """
    from scipy.optimize import linprog

    count = len(polytope.domains)
    rows, limits, width = inequalities(polytope, extra=0 if pieces is None else 1)
    objective = np.zeros(width)
    objective[:count] = cost
    if pieces is not None:
        slopes, heights = pieces
        above = np.zeros((len(slopes), width))
        above[:, :count], above[:, -1] = slopes, -1
        rows, limits = np.vstack([rows, above]), np.concatenate([limits, -heights])
        objective[-1] = 1
    if cuts is not None:
        more = np.zeros((len(cuts[0]), width))
        more[:, :count] = cuts[0]
        rows, limits = np.vstack([rows, more]), np.concatenate([limits, cuts[1]])
    bounds = np.zeros((width, 2))
    bounds[:, 1] = np.inf
    bounds[:count, 0], bounds[:count, 1] = polytope.lower, polytope.upper
    if pieces is not None:
        bounds[-1, 0] = -np.inf
    if (bounds[:, 0] > bounds[:, 1]).any():
        return None
    total = np.zeros((1, width))
    total[0, :count] = 1
    found = linprog(
        objective,
        A_ub=rows if len(rows) else None,
        b_ub=limits if len(rows) else None,
        A_eq=total,
        b_eq=[1.0],
        bounds=bounds,
        method="highs",
        options=_EXACT,
    )
    return None if found.x is None else np.asarray(found.x[:count], np.float64)
