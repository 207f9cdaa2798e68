"""The optimum: exact, within every constraint, and explained."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixing.observations.observations import Observations
from mixing.observations.points import MixingError, Points
from mixing.optimum import Constraints, Group, Objective, optimize
from mixing.optimum.problem import Problem, divergence, entropy
from mixing.optimum.sensitivity import scale_of
from tests.mixing.optimum.known_laws import Banded, Known, Power, Steps, Straight, Valleys, grid

TOLERANCE = 1e-9


def drawn_constraints(domains: tuple[str, ...], metrics: tuple[str, ...], seed: int) -> Constraints:
    """Some of all kinds, kept by a hidden mixture, which is the baseline too."""
    random = np.random.default_rng(seed)
    hidden = random.dirichlet(np.full(len(domains), random.choice([0.5, 3])))
    prior = random.dirichlet(np.ones(len(domains)))
    by_name = dict(zip(domains, hidden.tolist(), strict=True))
    some = [name for name in domains if random.random() < 0.3]
    group = Group(
        domains=tuple(domains[: 1 + len(domains) // 2]), floor=float(hidden[: 1 + len(domains) // 2].sum()) * 0.9
    )
    asks = random.random(6) < 0.4
    return Constraints(
        floors={name: by_name[name] * 0.8 for name in some},
        ceilings={name: min(1.0, by_name[name] + 0.1) for name in domains if random.random() < 0.3},
        groups={"first": group} if asks[0] else {},
        prior=dict(zip(domains, prior.tolist(), strict=True)),
        max_change=float(min(1.0, np.abs(prior - hidden).sum() / 2 + random.choice([0.0, 0.1]))) if asks[1] else None,
        tokens=1e9,
        unique_tokens={name: 1e9 * (weight + 1e-3) / 3 for name, weight in by_name.items()},
        max_epochs=3 if asks[2] else None,
        baseline=by_name,
        no_regression=float(random.choice([0.0, 0.02])) if asks[3] else None,
        min_entropy=float(entropy(hidden[None])[0]) * 0.99 if asks[4] else None,
        max_kl=float(divergence(hidden[None], prior)[0]) * 1.01 + 1e-6 if asks[5] else None,
    )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9), kind=st.sampled_from([Power, Straight, Valleys, Steps]), worst=st.booleans())
def test_every_constraint_holds_to_1e_9_for_any_law_and_constraints(seed: int, kind: type[Known], worst: bool) -> None:
    random = np.random.default_rng(seed)
    law = kind(int(random.integers(1, 7)), int(random.integers(1, 4)), seed)
    constraints = drawn_constraints(law.domains, law.metrics, seed)
    objective = Objective(worst=law.metrics if worst else ())
    found = optimize(law, objective, constraints, explain=False)
    problem = Problem.of(law, scale_of(law, None, constraints), objective, constraints)
    at = found.weights[None, :]
    assert problem.polytope.excess(at)[0] <= TOLERANCE
    assert problem.worst_limit(at)[0] <= TOLERANCE
    assert found.value == pytest.approx(float(problem.values(at)[0]), abs=1e-12)
    # Nothing feasible that is easily found is better.
    others = np.vstack([problem.polytope.sample(50, seed=1, steps=20), problem.polytope.vertices])
    others = others[problem.worst_limit(others) <= 0]
    if len(others):
        slack = 0.011 if kind is Steps else 1e-9 * abs(found.value) + 1e-12
        assert found.value <= problem.values(others).min() + slack
    if found.certificate.bound is not None and found.certificate.gap is not None:
        assert found.certificate.bound <= found.value + 1e-9
        assert found.certificate.gap <= 1e-6


@pytest.mark.parametrize("kind", [Power, Valleys])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("worst", [False, True])
def test_the_optimum_agrees_with_a_fine_grid_of_three_domains(kind: type[Known], seed: int, worst: bool) -> None:
    law = kind(3, 2, seed)
    constraints = Constraints(
        ceilings={"d00": 0.6},
        groups={"g": Group(domains=("d00", "d01"), floor=0.3)},
        prior={"d00": 0.2, "d01": 0.3, "d02": 0.5},
        max_change=0.4,
    )
    objective = Objective(worst=law.metrics if worst else ())
    found = optimize(law, objective, constraints, explain=False)
    rows = grid(3, 1000)
    rows = rows[constraints.polytope(law.domains).contains(rows)]
    values = objective.value(law.metrics, law.mean(Points.of(law.domains, rows)))
    assert found.value <= values.min() + 1e-12
    # Half a step of the grid away the objective is at most so much higher.
    assert values.min() - found.value < 2e-3
    assert np.abs(rows[values.argmin()] - found.weights).max() < 0.03


@pytest.mark.parametrize("domains", [2, 5, 17, 64])
def test_convex_laws_are_solved_to_a_proved_gap_of_1e_9(domains: int) -> None:
    law = Power(domains, 13, domains)
    prior = dict(zip(law.domains, np.random.default_rng(1).dirichlet(np.ones(domains)).tolist(), strict=True))
    for objective in (Objective(), Objective(worst=law.metrics), Objective(kl=0.05)):
        for constraints in (
            Constraints(prior=prior),
            Constraints(prior=prior, max_ratio=4, max_change=0.3),
            Constraints(prior=prior, no_regression=0.001),
        ):
            found = optimize(law, objective, constraints, explain=False)
            assert found.certificate.convex
            assert found.certificate.method == "interior point"
            assert found.certificate.gap is not None
            assert found.certificate.gap <= 1e-9


def test_searches_from_many_starts_agree_with_the_exact_solution() -> None:
    class Unsure(Power):
        convex = np.zeros(2, np.bool_)  # type: ignore[assignment]

    exact, searched = (
        optimize(kind(12, 2, 5), None, Constraints(ceilings={"d03": 0.05}), explain=False) for kind in (Power, Unsure)
    )
    assert not searched.certificate.convex
    assert searched.value == pytest.approx(exact.value, rel=1e-9)
    assert searched.certificate.agreed == searched.certificate.starts == 6


def test_steps_are_searched_about_as_well_as_what_they_are_steps_of() -> None:
    law = Steps(8, 2, 3)
    found = optimize(law, None, Constraints(ceilings={"d01": 0.1}), explain=False)
    smooth = optimize(Power(8, 2, 3), None, Constraints(ceilings={"d01": 0.1}), explain=False)
    assert found.certificate.method.startswith("search")
    assert abs(found.value - smooth.value) <= 0.02


EVEN = dict.fromkeys(("d00", "d01", "d02", "d03"), 0.25)
LIMITS = {
    "ceilings.d00": lambda by: {"ceilings": {"d00": 0.1 + by, "d01": 0.2}},
    "floors.d02": lambda by: {"floors": {"d02": 0.5 + by}},
    "max_epochs.d01": lambda by: {
        "tokens": 1e9,
        "unique_tokens": {"d01": (0.1 + by) / 4 * 1e9},
        "max_epochs": {"d01": 4},
    },
    "groups.g.ceiling": lambda by: {"groups": {"g": {"domains": ["d00", "d01"], "ceiling": 0.3 + by}}},
    "max_change": lambda by: {"prior": {"d02": 0.5, "d03": 0.5}, "max_change": 0.2 + by},
    "min_entropy": lambda by: {"min_entropy": 1.38 + by},
    "max_kl": lambda by: {"prior": EVEN, "max_kl": 0.02 + by},
    "no_regression.loss-1": lambda by: {"baseline": {"d02": 0.5, "d03": 0.5}, "no_regression": {"loss-1": 0.01 + by}},
}


@pytest.mark.parametrize("name", LIMITS)
def test_prices_are_what_moving_the_limit_brings(name: str) -> None:
    from pydantic import TypeAdapter

    law = Power(4, 2, 8)
    law.share = np.array([[3.0, 2.0, 0.7, 0.2], [0.02, 0.05, 1.0, 0.5]])
    objective = Objective(weights={"loss-0": 0.9, "loss-1": 0.1})
    step = 1e-5

    def solved(by: float):  # type: ignore[no-untyped-def]
        return optimize(law, objective, TypeAdapter(Constraints).validate_python(LIMITS[name](by)), explain=False)

    prices = {price.constraint: price for price in solved(0.0).prices}
    assert name in prices, prices
    price = prices[name]
    relaxed = -1 if price.kind == "at least" else 1
    brought = (solved(-step * relaxed).value - solved(step * relaxed).value) / (2 * step)
    assert price.price == pytest.approx(brought, rel=1e-3)
    if name.startswith("max_epochs"):
        assert price.per_token == pytest.approx(price.price * 4 / 1e9)


def test_near_optimal_ranges_agree_with_a_fine_grid() -> None:
    law = Power(3, 1, 4)
    constraints = Constraints(ceilings={"d00": 0.5})
    found = optimize(law, None, constraints, flatness=0.01)
    rows = grid(3, 1000)
    rows = rows[constraints.polytope(law.domains).contains(rows)]
    good = rows[law.mean(Points.of(law.domains, rows))[:, 0] <= found.value * 1.01]
    assert found.near is not None
    for place, name in enumerate(law.domains):
        assert found.near.ranges[name].low == pytest.approx(good[:, place].min(), abs=2e-3)
        assert found.near.ranges[name].high == pytest.approx(good[:, place].max(), abs=2e-3)
    sample = np.array([[row[name] for name in law.domains] for row in found.near.sample])
    assert len(sample) == 64
    assert constraints.polytope(law.domains).contains(sample).all()
    assert (law.mean(Points.of(law.domains, sample))[:, 0] <= found.value * 1.01 + 1e-12).all()
    assert 0 < found.near.farthest <= 1


def test_near_optimal_mixtures_are_found_where_limits_bind() -> None:
    law = Power(6, 3, 2)
    prior = dict.fromkeys(law.domains, 1 / 6)
    found = optimize(law, None, Constraints(prior=prior, no_regression=0.0, max_change=0.3), flatness=0.005)
    assert found.near is not None
    assert found.near.farthest > 0.01
    assert all(row.low <= found.by_name()[name] <= row.high for name, row in found.near.ranges.items())


def test_the_order_of_domains_and_metrics_changes_nothing() -> None:
    one = Valleys(5, 2, 3)
    other = Valleys(5, 2, 3)
    order = [3, 1, 4, 0, 2]
    other.domains = tuple(one.domains[place] for place in order)
    other.middles = one.middles[:, :, order]
    constraints = Constraints(ceilings={"d02": 0.3}, floors={"d04": 0.05})
    first, second = optimize(one, None, constraints), optimize(other, None, constraints)
    assert first.value == pytest.approx(second.value, rel=1e-9)
    for name, weight in first.by_name().items():
        assert second.by_name()[name] == pytest.approx(weight, abs=1e-5)


def test_tokens_epochs_comparisons_and_warnings_are_told_by_name() -> None:
    law = Banded(3, 2, 1)
    tokens = {"d00": 1e9, "d01": 3e9, "d02": 6e9}
    weights = np.random.default_rng(3).dirichlet(np.ones(3), 12)
    points = Points.of(law.domains, weights, tokens=1e8, unique_tokens=tokens)
    observations = Observations.of(points, law.metrics, law.mean(points))
    constraints = Constraints(
        prior="natural", tokens=2e10, unique_tokens=tokens, floors={"d00": 0.4}, max_change=0.5, max_epochs=10
    )
    found = optimize(law, None, constraints, observations=observations)
    assert found.tokens is not None
    assert found.epochs is not None
    assert sum(found.tokens.values()) == pytest.approx(2e10)
    assert found.epochs["d00"] == pytest.approx(found.by_name()["d00"] * 20)
    names = {row.name for row in found.comparisons}
    assert names == {
        "best run", "natural", "prior", "uniform", "UniMax 10 epochs", "temperature 0.3", "temperature 0.5",
        "temperature 0.7",
    }  # fmt: skip
    assert all(row.excess >= -1e-9 for row in found.comparisons if row.keeps)
    assert found.unconstrained is not None
    assert found.unconstrained.value < found.value
    assert found.low is not None
    assert found.low < found.value
    assert found.warnings[0] == "the optimum is off what was observed: d00: far from all runs"
    assert any(line.startswith("d00 is seen 8.0 times at the target and at most 0.") for line in found.warnings)
    assert any("5e+06 unique tokens of it in each run would match" in line for line in found.warnings)
    assert json.loads(json.dumps(found.told(), allow_nan=False))["weights"] == found.by_name()


def test_pessimism_draws_the_optimum_to_what_is_known() -> None:
    law = Banded(4, 1, 2)
    plain, careful = optimize(law, explain=False), optimize(law, Objective(pessimism=2), explain=False)
    away = [float(((found.weights - 0.25) ** 2).sum()) for found in (plain, careful)]
    assert away[1] < away[0] / 2
    assert not careful.certificate.convex


def test_repeats_are_worth_less_with_a_half_life() -> None:
    law = Power(3, 1, 6)
    law.share = np.array([[5.0, 1.0, 1.0]])
    scarce = {"d00": 1e8, "d01": 1e10, "d02": 1e10}
    constraints = Constraints(tokens=1e10, unique_tokens=scarce)
    free = optimize(law, None, constraints, explain=False)
    discounted = optimize(law, Objective(half_life=15.39), constraints, explain=False)
    worthless = optimize(law, Objective(half_life=0.0), constraints, explain=False)
    assert free.epochs is not None
    assert free.by_name()["d00"] > discounted.by_name()["d00"] > worthless.by_name()["d00"]
    assert worthless.by_name()["d00"] <= 0.0101


@pytest.mark.parametrize("terms", [{}, {"kl": 0.1}, {"entropy": 0.1}, {"half_life": 3.0}, {"pessimism": 1.0}])
def test_slopes_and_curvature_are_those_of_the_values(terms: dict[str, float]) -> None:
    law = Banded(4, 3, 1)
    constraints = Constraints(
        prior={"d00": 0.1, "d01": 0.2, "d02": 0.3, "d03": 0.4}, no_regression=0.1, min_entropy=0.1, max_kl=2,
        tokens=1e9, unique_tokens={"d00": 1e8, "d01": 2e8, "d02": 1e8, "d03": 1e9},
    )  # fmt: skip
    objective = Objective(weights={"loss-0": 1.0}, worst=("loss-1", "loss-2"), **terms)
    problem = Problem.of(law, scale_of(law, None, constraints), objective, constraints)
    random = np.random.default_rng(0)
    at, move = random.dirichlet(np.full(4, 5)), random.standard_normal(4)
    move -= move.mean()
    told = problem.evaluate(at[None, :])
    ahead, behind = (problem.evaluate((at + sign * 1e-6 * move)[None, :]) for sign in (1, -1))
    close = 1e-3 if "pessimism" in terms else 1e-5
    np.testing.assert_allclose(told.slopes[0] @ move, (ahead.pieces - behind.pieces)[0] / 2e-6, rtol=close, atol=1e-6)
    np.testing.assert_allclose(
        told.limit_slopes[0] @ move, (ahead.limits - behind.limits)[0] / 2e-6, rtol=1e-5, atol=1e-6
    )
    if "pessimism" not in terms:
        half = np.array([[0.5, 0.5]])
        hessian = problem.curvature(at[None, :], half, np.zeros((1, 5)))[0]
        turned = half[0] @ (ahead.slopes - behind.slopes)[0] / 2e-6
        np.testing.assert_allclose(hessian @ move, turned, rtol=1e-3, atol=1e-4)


def test_refits_and_members_show_how_the_optimum_moves() -> None:
    from mixing.fitting import fit

    law = Power(3, 2, 7)
    random = np.random.default_rng(0)
    points = Points.of(law.domains, random.dirichlet(np.ones(3), 24))
    values = law.mean(points) + 0.01 * random.standard_normal((24, 2))
    fitted = fit(Observations.of(points, law.metrics, values), law=("shared_power", "linear"))
    found = optimize(fitted, refits=3)
    refits = [shift for shift in found.sensitivity if shift.name.startswith("without part")]
    assert len(refits) == 3
    assert all(0 <= shift.change <= 1 and shift.loss >= -1e-9 for shift in found.sensitivity)
    with pytest.raises(MixingError) as error:
        optimize(law, refits=3)
    assert str(error.value) == "refits: needs the runs the law was fitted to; give observations"


@pytest.mark.parametrize(
    ("objective", "constraints", "told"),
    [
        ({"loss": 1.0}, Constraints(), "objective: no metric 'loss'; did you mean 'loss-0'?"),
        (Objective(worst=("x",)), Constraints(), "objective.worst: no metric 'x'; the metrics are loss-0, loss-1"),
        ({"loss-0": 0.0}, Constraints(), "objective: all weights are 0; give at least one metric a share"),
        (Objective(kl=1), Constraints(), "kl: measured from what; give constraints.prior, {domain: share} or natural"),
        (
            Objective(kl=1),
            Constraints(prior={"d00": 0.5, "d01": 0.5}),
            "kl: the prior has nothing of d02, from which every mixture with it is endlessly far",
        ),
        (None, Constraints(no_regression=0), "no_regression: compared with what; give baseline or prior"),
        (
            None,
            Constraints(no_regression={"loss_1": 0}, baseline={"d00": 1}),
            "no_regression: no metric 'loss_1'; did you mean 'loss-1'?",
        ),
        (Objective(pessimism=1), Constraints(), "objective.pessimism: known tells no interval; use fit()"),
        (Objective(half_life={"x": 3}), Constraints(), "half_life: no domain 'x'; the domains are d00, d01, d02"),
    ],
)  # fmt: skip
def test_what_cannot_be_solved_is_told_in_one_line(objective, constraints: Constraints, told: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(MixingError) as error:
        optimize(Power(3, 2, 1), objective, constraints)
    assert str(error.value).startswith(told.split(";", maxsplit=1)[0])


def test_gains_that_no_mixture_has_are_told_with_what_is_missing() -> None:
    law = Power(3, 1, 1)
    with pytest.raises(MixingError) as error:
        optimize(law, None, Constraints(no_regression=-10, baseline={"d00": 1}))
    assert str(error.value).startswith("no_regression.loss-0: no mixture keeps it; the nearest misses it by ")


def test_one_domain_has_its_mixture() -> None:
    found = optimize(Power(1, 2, 1))
    assert found.weights.tolist() == [1.0]
    assert found.certificate.method == "the only mixture"


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_huge_and_tiny_losses_have_the_same_optimum(size: float) -> None:
    class Scaled(Power):
        def mean(self, points: Points):  # type: ignore[no-untyped-def]
            return super().mean(points) * size

        def gradient(self, points: Points):  # type: ignore[no-untyped-def]
            return super().gradient(points) * size

    found, plain = optimize(Scaled(5, 2, 3), explain=False), optimize(Power(5, 2, 3), explain=False)
    np.testing.assert_allclose(found.weights, plain.weights, atol=1e-6)
    assert found.certificate.gap is not None
    assert found.certificate.gap <= 1e-9


def test_a_constant_law_has_any_mixture_and_says_how_flat_it_is() -> None:
    class Constant(Straight):
        def drawn(self) -> None:
            self.slope = np.zeros((1, len(self.domains)))

        def mean(self, points: Points):  # type: ignore[no-untyped-def]
            return np.full((len(points), 1), 2.5)

    found = optimize(Constant(3, 1))
    assert found.value == 2.5
    assert found.near is not None
    assert all(row.low < 1e-9 and row.high > 1 - 1e-9 for row in found.near.ranges.values())
