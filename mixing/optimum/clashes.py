"""Which constraints clash: a smallest set of them that no mixture keeps, each told with its limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mixing.observations.points import Floats
from mixing.optimum.linear_programs import inequalities
from mixing.optimum.polytope import TOLERANCE, Polytope


@dataclass(frozen=True)
class _System:
    """Every constraint but w >= 0, sum w = 1 as rows over (w, u); owners[r] is the constraint that row r belongs to."""

    domains: int
    rows: Floats
    limits: Floats
    owners: npt.NDArray[np.int64]
    told: tuple[str, ...]


def clash(polytope: Polytope) -> tuple[str, ...]:
    """What clashes, told each as "floors.web (at least 0.6)"; empty where some mixture keeps all to 1e-9.

    Each of them is needed: without any one the others can be kept (an irreducible infeasible subset, found by Farkas'
    multipliers and then by leaving out one after the other).
    """
    system = _system(polytope)
    needed = _farkas(system, np.arange(len(system.told)))
    if needed is None:
        return ()
    for owner in needed.tolist():
        fewer = needed[needed != owner]
        if owner in needed and _farkas(system, fewer) is not None:
            needed = fewer
    return tuple(system.told[owner] for owner in needed)


def _system(polytope: Polytope) -> _System:
    count = len(polytope.domains)
    rows, limits, width = inequalities(polytope)
    owners = list(range(len(polytope.rows))) + [len(polytope.rows)] * (len(rows) - len(polytope.rows))
    told = [
        _group(name, limit, row)
        for name, limit, row in zip(polytope.names, polytope.limits, polytope.rows, strict=True)
    ]
    if polytope.prior is not None:
        told.append(f"max_change (at most {polytope.change:.4g} from the prior)")
    unit = np.eye(count, width)
    more_rows, more_limits = [], []
    for domain, name in enumerate(polytope.domains):
        if polytope.lower[domain] > 0:
            label = (polytope.lower_names or ("",) * count)[domain] or f"floors.{name}"
            more_rows.append(-unit[domain])
            more_limits.append(-polytope.lower[domain])
            owners.append(len(told))
            told.append(f"{label} (at least {polytope.lower[domain]:.4g})")
        if polytope.upper[domain] < 1:
            label = (polytope.upper_names or ("",) * count)[domain] or f"ceilings.{name}"
            more_rows.append(unit[domain])
            more_limits.append(polytope.upper[domain])
            owners.append(len(told))
            told.append(f"{label} (at most {polytope.upper[domain]:.4g})")
    return _System(
        domains=count,
        rows=np.vstack([rows, *more_rows]) if more_rows else rows,
        limits=np.concatenate([limits, np.array(more_limits)]) if more_limits else limits,
        owners=np.array(owners, np.int64),
        told=tuple(told),
    )


def _group(name: str, limit: float, row: Floats) -> str:
    if (row <= 0).all():
        return f"{name} (at least {-limit:.4g})"
    return f"{name} (at most {limit:.4g})"


def _farkas(system: _System, kept: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """Of the kept constraints those that prove that they clash; None where they do not."""
    from scipy.optimize import linprog

    chosen = np.flatnonzero(np.isin(system.owners, kept))
    if not len(chosen):
        return None
    width = system.rows.shape[1]
    rows, limits = system.rows[chosen], system.limits[chosen]
    # Least elastic: every constraint may be missed by s. Its multipliers are Farkas' where s > 0.
    costs = np.zeros(width + 1)
    costs[-1] = 1
    total = np.zeros((1, width + 1))
    total[0, : system.domains] = 1
    found = linprog(
        costs,
        A_ub=np.hstack([rows, -np.ones((len(rows), 1))]),
        b_ub=limits,
        A_eq=total,
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.fun <= TOLERANCE:
        return None
    proof = np.abs(found.ineqlin.marginals) > 1e-10
    return np.unique(system.owners[chosen[proof]])
