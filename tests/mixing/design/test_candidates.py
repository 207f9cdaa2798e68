"""Candidates: in the polytope whatever it is, and rounding that keeps every constraint."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mixing.design.candidates import about, pulled, rounded, sampled
from mixing.design.space_filling import first_runs
from mixing.optimum.constraints import Constraints, Group
from mixing.optimum.polytope import Polytope

NAMES = tuple(f"domain_{number}" for number in range(7))
NATURAL = np.array([0.5, 0.2, 0.1, 0.08, 0.06, 0.04, 0.02])
PRIOR = dict(zip(NAMES, NATURAL.tolist(), strict=True))
NONE = np.zeros((0, 7))

CONSTRAINED = {
    "nothing": Constraints(),
    "floors and ceilings": Constraints(floors={"domain_6": 0.1}, ceilings={"domain_0": 0.25}),
    "four times each share": Constraints(prior=PRIOR, max_ratio=4.0),
    "a group": Constraints(groups={"code": Group(domains=("domain_1", "domain_2"), floor=0.3, ceiling=0.35)}),
    "a domain that stands still": Constraints(floors={"domain_0": 0.4}, ceilings={"domain_0": 0.4}),
    "near a prior": Constraints(prior=PRIOR, max_change=0.1),
    "a sliver": Constraints(groups={"most": Group(domains=NAMES[:3], floor=0.999, ceiling=1.0)}),
}


def test_every_candidate_meets_every_constraint_whatever_they_are() -> None:
    for name, constraints in CONSTRAINED.items():
        polytope = constraints.polytope(NAMES)
        pool = sampled(polytope, NATURAL, 200, seed=1)
        assert len(pool) > 150, name
        assert polytope.contains(pool).all(), name
        assert polytope.contains(about(polytope, pool[3], 0.2, 40, 0)).all(), name


def test_first_runs_meet_the_constraints_and_begin_with_the_natural_mixture() -> None:
    for name, constraints in CONSTRAINED.items():
        polytope = constraints.polytope(NAMES)
        runs = rounded(polytope, first_runs(polytope, NATURAL, 12, NONE, seed=0))
        assert polytope.contains(runs).all(), name
        np.testing.assert_allclose(runs[0], polytope.project(NATURAL), atol=1e-4)
        assert len(np.unique(runs, axis=0)) == 12, name


def test_first_runs_leave_alone_what_runs_are_there_already() -> None:
    polytope = Polytope.simplex(NAMES)
    there = first_runs(polytope, NATURAL, 6, NONE, seed=0)
    more = first_runs(polytope, NATURAL, 6, there, seed=0)
    assert np.abs(more[:, None] - there[None]).max(axis=2).min() > 0.02


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 12), st.integers(2, 5))
def test_rounding_sums_to_one_and_moves_by_a_step_at_most(seed: int, domains: int, decimals: int) -> None:
    polytope = Polytope.simplex(tuple(f"d{number}" for number in range(domains)))
    exact = np.random.default_rng(seed).dirichlet(np.full(domains, 0.5), 5)
    neat = rounded(polytope, exact, decimals)
    assert polytope.contains(neat).all()
    np.testing.assert_allclose(neat, exact, atol=1.01 * 10.0**-decimals)
    np.testing.assert_allclose(neat * 10**decimals, np.round(neat * 10**decimals), atol=1e-6)


def test_rounding_leaves_rows_as_they_are_where_steps_break_a_constraint() -> None:
    polytope = Constraints(floors={"domain_0": 0.33333}, ceilings={"domain_0": 0.33334}).polytope(NAMES)
    exact = pulled(polytope, NATURAL[None])
    np.testing.assert_array_equal(rounded(polytope, exact), exact)
