"""Polytopes of mixtures: projection, vertices, samples, and what clashes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixing.observations.points import MixingError
from mixing.optimum import Constraints, Group, Polytope


def random_polytope(seed: int, count: int | None = None) -> Polytope:
    """Feasible, with bounds, rows through or beside a hidden mixture, and at times a distance from a prior."""
    random = np.random.default_rng(seed)
    count = count or int(random.integers(1, 9))
    hidden = random.dirichlet(np.full(count, random.choice([0.3, 1, 5])))
    lower = np.where(random.random(count) < 0.5, hidden * random.random(count), 0)
    upper = np.where(random.random(count) < 0.5, hidden + (1 - hidden) * random.random(count) * 0.3, 1)
    fixed = random.random(count) < 0.1
    lower, upper = np.where(fixed, hidden, lower), np.where(fixed, hidden, upper)
    rows = np.where(random.random((int(random.integers(0, 4)), count)) < 0.5, random.choice([-1, 1]), 0.0)
    limits = rows @ hidden + random.choice([0, 0.01, 0.1], len(rows))
    prior = random.dirichlet(np.ones(count)) if random.random() < 0.5 else None
    change = 1.0 if prior is None else np.abs(prior - hidden).sum() / 2 + float(random.choice([0, 0.02, 0.2]))
    names = tuple(f"row-{number}" for number in range(len(rows)))
    return Polytope(
        domains=tuple(f"d{number}" for number in range(count)),
        lower=lower,
        upper=upper,
        rows=rows,
        limits=limits,
        names=names,
        prior=prior,
        change=float(change),
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_whatever_is_projected_or_sampled_keeps_every_constraint(seed: int) -> None:
    polytope = random_polytope(seed)
    polytope.check()
    random = np.random.default_rng(seed + 1)
    points = random.standard_normal((3, len(polytope.domains))) + 1 / len(polytope.domains)
    near = polytope.project(points)
    assert polytope.contains(near, 1e-10).all()
    again = polytope.project(near)
    np.testing.assert_allclose(again, near, atol=1e-9)
    samples = polytope.sample(8, seed=3, steps=10)
    assert polytope.contains(samples, 1e-10).all()
    assert polytope.contains(polytope.vertices, 1e-10).all()
    # No feasible mixture lies on the far side of the projection: (p - x) . (v - x) <= 0 for all v (Kolmogorov).
    others = np.vstack([samples, polytope.vertices])
    assert ((points - near) @ others.T - ((points - near) * near).sum(axis=1)[:, None]).max() < 1e-8


def test_projection_on_the_simplex_is_the_known_one() -> None:
    polytope = Polytope.simplex(("a", "b", "c"))
    np.testing.assert_allclose(polytope.project(np.array([1.0, 1.0, 0.0])), [0.5, 0.5, 0], atol=1e-15)
    np.testing.assert_allclose(polytope.project(np.array([5.0, 1.0, 0.0])), [1, 0, 0], atol=1e-15)


def test_ranges_are_the_shares_that_are_possible() -> None:
    constraints = Constraints(
        floors={"a": 0.1}, ceilings={"b": 0.3}, groups={"g": Group(domains=("a", "b"), ceiling=0.6)}
    )
    low, high = constraints.polytope(("a", "b", "c")).ranges()
    np.testing.assert_allclose(low, [0.1, 0, 0.4], atol=1e-10)
    np.testing.assert_allclose(high, [0.6, 0.3, 0.9], atol=1e-10)


def test_samples_are_even() -> None:
    samples = Polytope.simplex(("a", "b", "c", "d")).sample(4000, seed=1)
    # Of an even distribution over the simplex of four each share has mean 1/4 and variance 3/80.
    np.testing.assert_allclose(samples.mean(axis=0), 0.25, atol=0.012)
    np.testing.assert_allclose(samples.var(axis=0), 3 / 80, rtol=0.1)


def test_the_order_of_domains_changes_no_sample() -> None:
    one = Constraints(ceilings={"a": 0.5}, max_change=0.4, prior={"a": 0.2, "b": 0.8}).polytope(("a", "b", "c"))
    other = Constraints(ceilings={"a": 0.5}, max_change=0.4, prior={"a": 0.2, "b": 0.8}).polytope(("c", "a", "b"))
    np.testing.assert_allclose(one.sample(20, seed=5), other.sample(20, seed=5)[:, [1, 2, 0]], atol=1e-9)


def test_a_parallelogram_is_spanned_though_its_extremes_lie_on_its_diagonal() -> None:
    rows = np.array([[1.0, -1, 0], [-1.0, 1, 0]])
    polytope = Polytope(
        domains=("a", "b", "c"),
        lower=np.zeros(3),
        upper=np.array([0.3, 0.3, 1]),
        rows=rows,
        limits=np.array([0.1, 0.1]),
        names=("one", "two"),
    )
    samples = polytope.sample(200, seed=1)
    assert (samples[:, 0] - samples[:, 1]).std() > 0.02


@pytest.mark.parametrize(
    ("constraints", "told"),
    [
        (
            Constraints(floors={"a": 0.6, "b": 0.5}),
            "constraints: no mixture has floors.a (at least 0.6) and floors.b (at least 0.5); relax one of them",
        ),
        (
            Constraints(floors={"a": 0.6}, ceilings={"a": 0.5, "b": 0.1}),
            "constraints: no mixture has floors.a (at least 0.6) and ceilings.a (at most 0.5); relax one of them",
        ),
        (
            Constraints(
                floors={"c": 0.2}, ceilings={"a": 0.3}, groups={"text": Group(domains=("a", "c"), ceiling=0.1)}
            ),
            "constraints: no mixture has groups.text.ceiling (at most 0.1) and floors.c (at least 0.2); "
            "relax one of them",
        ),
        (
            Constraints(prior={"a": 1.0}, max_change=0.2, ceilings={"a": 0.5}),
            "constraints: no mixture has max_change (at most 0.2 from the prior) and ceilings.a (at most 0.5); "
            "relax one of them",
        ),
        (
            Constraints(tokens=1e9, unique_tokens={"a": 1e8, "b": 1e8, "c": 1e8}, max_epochs=2, ceilings={"a": 0.9}),
            "constraints: no mixture has max_epochs.a (at most 0.2) and max_epochs.b (at most 0.2) and "
            "max_epochs.c (at most 0.2); relax one of them",
        ),
    ],
)
def test_a_smallest_set_of_clashing_constraints_is_named(constraints: Constraints, told: str) -> None:
    with pytest.raises(MixingError) as error:
        constraints.polytope(("a", "b", "c"))
    assert str(error.value) == told


def test_floors_that_sum_to_exactly_one_leave_one_mixture() -> None:
    domains = tuple(f"d{number}" for number in range(10))
    polytope = Constraints(floors=dict.fromkeys(domains, 0.1)).polytope(domains)
    np.testing.assert_allclose(polytope.centre(), 0.1, atol=1e-12)
    np.testing.assert_allclose(polytope.sample(3), 0.1, atol=1e-12)


def test_one_domain_has_one_mixture() -> None:
    polytope = Polytope.simplex(("a",))
    assert polytope.sample(2).tolist() == [[1.0], [1.0]]
    assert polytope.contains([1.0]).all()
    assert not polytope.contains([np.nan]).any()
