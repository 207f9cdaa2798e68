"""How an optimum moves: with another law of the average, and with fewer runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points
from mixing.optimum.constraints import Constraints
from mixing.optimum.mixture import Shift
from mixing.optimum.objective import Objective
from mixing.optimum.problem import Problem
from mixing.optimum.solving import solve


def shifts(
    problem: Problem,
    optimum: Floats,
    laws: Iterator[tuple[str, Law]],
    objective: Objective,
    constraints: Constraints,
    *,
    seed: int,
) -> tuple[Shift, ...]:
    """The optimum of each law, by name, where it has one under the constraints."""
    value = float(problem.values(optimum[None, :])[0])
    found = []
    for name, law in laws:
        try:
            other = Problem.of(law, problem.at.aligned(law.domains), objective, constraints)
            solved = solve(other, optimum[None, :], seed=seed, starts=2)
        except MixingError:
            continue  # a limit that this law says cannot be kept
        found.append(
            Shift(
                name=name,
                weights=dict(zip(law.domains, solved.weights.tolist(), strict=True)),
                change=float(np.abs(solved.weights - optimum).sum() / 2),
                loss=float(problem.values(solved.weights[None, :])[0]) - value,
            )
        )
    return tuple(found)


def members(law: Law) -> Iterator[tuple[str, Law]]:
    """Each law of a fitted average, alone."""
    from mixing.fitting.fitted import Fitted

    if isinstance(law, Fitted) and len(law.laws) > 1:
        for place, member in enumerate(law.laws):
            if (law.shares[place] > 0.02).any():
                yield member.name, replace(law, laws=(member,), shares=np.ones((1, law.shares.shape[1])))


def refitted(law: Law, observations: Observations, count: int, *, seed: int) -> Iterator[tuple[str, Law]]:
    """The law fitted anew without one of `count` parts of the runs each time (a jackknife by groups of runs)."""
    from mixing.fitting.fitted import Fitted

    runs = sorted(set(observations.runs))
    part_of = {run: number % count for number, run in enumerate(np.random.default_rng(seed).permutation(runs))}
    parts = np.array([part_of[run] for run in observations.runs])
    for part in range(min(count, len(runs))):
        kept = observations.rows(parts != part)
        try:
            if isinstance(law, Fitted):
                from mixing.fitting import fit

                found: Law = fit(kept, law=law.asked, metrics=law.metrics, seed=seed)
            else:
                found = type(law).fit(kept.only(law.metrics), seed=seed)
        except MixingError:
            continue  # too few runs are left to fit
        if found.metrics == law.metrics:
            yield f"without part {part + 1} of {count} of the runs", found


def scale_of(law: Law, points: Points | None, constraints: Constraints) -> Points:
    """One point at the scale of the target: as told, else the largest scale that was observed, with its tokens."""
    domains = law.domains
    even = np.full(len(domains), 1 / len(domains))
    known = getattr(law, "observations", None)
    told = points
    if told is None and isinstance(known, Observations) and len(known):
        there = known.points
        largest = int(np.lexsort(np.nan_to_num([there.tokens, there.parameters]))[-1])
        told = there.rows([largest])
    if told is None:
        told = Points.of(domains, even)
    told = told.aligned(domains).rows([0])
    unique = constraints.unique(domains)
    return Points.of(
        domains,
        even,
        parameters=told.parameters,
        tokens=told.tokens if constraints.tokens is None else constraints.tokens,
        unique_tokens=np.where(np.isnan(unique), told.unique_tokens[0], unique)[None, :],
    )
