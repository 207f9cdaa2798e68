"""The next runs, whatever they are asked with: feasible, the same in any order, and clear about what is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from mixing.design import propose, worth
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points
from mixing.optimum.constraints import Constraints
from mixing.optimum.objective import Objective
from tests.mixing.world import World, world

LAW = "shared_power"
SIZES = {"small": (1e6, 1e9), "large": (4e6, 4e9)}


def weights(table: pa.Table, domains: tuple[str, ...]) -> Floats:
    return np.column_stack([table[name].to_numpy() for name in domains])


@pytest.fixture(scope="module")
def here() -> World:
    return world(5, seed=1, bend=0.3, ripple=0.3)


@pytest.fixture(scope="module")
def runs(here: World) -> Observations:
    return here.measure(weights(propose(here.domains, 16), here.domains))


def test_first_runs_are_of_names_alone(here: World) -> None:
    table = propose(here.domains, 14)
    assert table.column_names == [*here.domains, "why"]
    assert table["why"][0].as_py() == "the natural mixture, the baseline"
    np.testing.assert_allclose(weights(table, here.domains).sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("method", ["auto", "space_filling", "variance", "expected_improvement", "knowledge_gradient"])
def test_runs_of_every_method_meet_the_constraints(runs: Observations, method: str) -> None:
    constraints = Constraints(floors={"domain_00": 0.2}, ceilings={"domain_04": 0.15})
    table = propose(runs, 4, method=method, law=LAW, constraints=constraints)  # type: ignore[arg-type]
    assert constraints.polytope(runs.domains).contains(weights(table, runs.domains)).all()
    assert len(table) == 4


def test_the_same_runs_in_any_order_of_rows_and_domains(runs: Observations) -> None:
    rows = np.random.default_rng(0).permutation(len(runs))
    shuffled = runs.rows(rows)
    turned = replace(shuffled, points=shuffled.points.aligned(runs.domains[::-1]))
    for method in ("auto", "space_filling"):
        table, other = (propose(known, 3, law=LAW, method=method) for known in (runs, turned))  # type: ignore[arg-type]
        assert other.column_names[:-1] == list(runs.domains[::-1])
        np.testing.assert_allclose(weights(table, runs.domains), weights(other, runs.domains), atol=1e-6)


def test_auto_fills_space_until_a_law_can_be_trusted(runs: Observations) -> None:
    few, enough = (propose(runs.rows(slice(count)), 2, law=LAW)["why"].to_pylist() for count in (11, 12))
    assert all("no run is near" in why for why in few)
    assert all("knowledge gradient" in why or "variance" in why for why in enough)


def test_fewer_runs_than_domains_fill_space(here: World) -> None:
    few = here.measure(np.eye(5)[:3])
    assert len(propose(few, 4)) == 4
    assert np.isnan(worth(few).gain)
    assert not worth(few, least=1.0).stop


def test_runs_of_one_mixture_count_once(runs: Observations, here: World) -> None:
    again = here.measure(np.repeat(runs.weights[:1], 20, axis=0), seed=3)
    assert all("no run is near" in why for why in propose(again, 2)["why"].to_pylist())


def test_duplicated_runs_change_little_and_break_nothing(runs: Observations) -> None:
    twice = runs.rows(np.repeat(np.arange(len(runs)), 2))
    table = propose(twice, 3, law=LAW)
    assert len(table) == 3
    assert worth(twice, law=LAW).gain >= 0


def test_a_metric_measured_nowhere_is_left_out_and_named_where_it_is_asked_for(runs: Observations) -> None:
    values = runs.values.copy()
    values[:, 2] = np.nan
    missing = replace(runs, values=values)
    assert len(propose(missing, 2)) == 2
    with pytest.raises(MixingError, match=r"^observations: no run has all metrics of the objective"):
        propose(missing, 2, objective=Objective(weights={runs.metrics[2]: 1.0}))
    with pytest.raises(MixingError, match="no metric has a value"):
        propose(replace(runs, values=np.full_like(values, np.nan)), 2)


def test_runs_without_a_value_are_left_out(runs: Observations) -> None:
    values = runs.values.copy()
    values[-2:] = np.nan
    table = propose(replace(runs, values=values), 2, law=LAW)
    other = propose(runs.rows(slice(len(runs) - 2)), 2, law=LAW)
    np.testing.assert_allclose(weights(table, runs.domains), weights(other, runs.domains), atol=1e-6)


def test_a_constant_target_fills_space_and_is_worth_nothing(runs: Observations) -> None:
    flat = replace(runs, values=np.full_like(runs.values, 3.0))
    assert len(propose(flat, 3)) == 3
    told = worth(flat, least=1e-6)
    assert told.gain == 0
    assert told.stop


def test_one_domain_has_one_mixture() -> None:
    table = propose(("web",), 3)
    assert table["web"].to_pylist() == [1.0, 1.0, 1.0]
    known = Observations.of(Points.of(("web",), np.ones((3, 1))), ("loss",), [3.0, 3.1, 2.9])
    assert propose(known, 1)["web"].to_pylist() == [1.0]
    told = worth(known, least=0.1)
    assert told.stop
    assert "only one mixture is feasible" in told.why


def test_losses_of_any_size_give_the_same_runs(runs: Observations) -> None:
    tables = [propose(replace(runs, values=size * runs.values), 3, law=LAW) for size in (1.0, 1e-6, 1e6)]
    for table in tables[1:]:
        np.testing.assert_allclose(weights(table, runs.domains), weights(tables[0], runs.domains), atol=2e-3)


def test_the_worst_metric_can_be_what_is_minimised(runs: Observations) -> None:
    assert len(propose(runs, 3, law=LAW, objective=Objective(worst=runs.metrics))) == 3


def test_sizes_are_told_and_first_runs_tie_them_together(here: World) -> None:
    table = propose(here.domains, 14, sizes=SIZES)
    sizes = table["size"].to_pylist()
    assert set(sizes) == {"small", "large"}
    assert sizes.count("small") > 2 * sizes.count("large")
    small = weights(table, here.domains)[np.array(sizes) == "small"]
    for row in weights(table, here.domains)[np.array(sizes) == "large"]:
        assert np.abs(small - row).max(axis=1).min() < 1e-9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda runs: propose(runs, 0), "n: 0 runs; propose at least 1"),
        (lambda runs: propose((), 2), "domains: there are none; give at least one"),
        (lambda runs: propose(("a", "b", "a"), 2), "domains: 'a' stands twice; give each once"),
        (lambda runs: propose(runs, 1, method="best"), "method: no 'best'; there are auto, space_filling, variance, "
         "expected_improvement, knowledge_gradient"),
        (lambda runs: propose(runs, 1, sizes={"small": (0.0, 1e9)}),
         "sizes.small: (0.0, 1000000000.0) at cost 0.0; parameters, tokens and cost are above 0"),
        (lambda runs: propose(runs, 1, costs={"big": 1.0}), "costs: no size 'big'; the sizes are none"),
        (lambda runs: worth(runs, 0), "n: 0 runs; ask for the worth of at least 1"),
        (lambda runs: worth(runs, least=-1.0), "least: -1.0; a gain is 0 or more, in the objective's unit"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_a_line(runs: Observations, call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(MixingError) as error:
        call(runs)
    assert str(error.value) == message


def test_unknown_metrics_and_domains_are_told(runs: Observations) -> None:
    with pytest.raises(MixingError, match="no metric 'loss'"):
        propose(runs, 1, objective=Objective(weights={"loss": 1.0}))
    with pytest.raises(MixingError, match="no domain 'web'"):
        propose(runs, 1, constraints=Constraints(floors={"web": 0.1}))
    with pytest.raises(MixingError, match="no mixture has"):
        propose(runs, 1, constraints=Constraints(floors={"domain_00": 0.7, "domain_01": 0.7}))
