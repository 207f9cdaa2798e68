"""The loop in a world whose losses are known: it finds the optimum, does nothing twice, and says what cannot be."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from mixing.loop.feeding import observe
from mixing.loop.mixture_file import read_mixture
from mixing.loop.running import run
from mixing.observations import MixingError, Observations, Points, read_observations, write
from tests.mixing.loop.made import AVAILABLE, DOMAINS, World, best, losses, settings


def loop(out, world, said=None, **changes):
    say = None if said is None else said.append
    available = changes.pop("available", AVAILABLE)
    return run(settings(**changes), out=str(out), available=available, measure=world, say=say)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished loop: its folder, world, mixture and lines."""
    out, world, said = tmp_path_factory.mktemp("done") / "mix", World(), []
    return out, world, loop(out, world, said), said


def report(out):
    return json.loads((out / "mix.json").read_text())


def files(out):
    return {path.relative_to(out): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def test_the_mixture_is_within_a_fifth_of_a_percent_of_the_best_and_its_interval_holds_the_truth(done):
    _, world, mixture, _ = done
    assert world.calls == [12, 6, 6]
    least, _ = best()
    true = losses([[mixture.weights[name] for name in DOMAINS]])[0]
    assert least * 0.9999 <= true.mean() <= least * 1.002  # the grid's least is not the least
    assert mixture.objective.low <= true.mean() <= mixture.objective.high
    assert math.fsum(mixture.weights.values()) == pytest.approx(1, abs=1e-9)
    assert mixture.runs == 24
    for name, value in zip(DOMAINS, true, strict=True):
        assert mixture.predicted[f"loss/{name}"].value == pytest.approx(value, rel=0.01)


def test_a_loop_that_is_done_measures_and_writes_nothing_again(done):
    out, world, mixture, _ = done
    before, calls = files(out), list(world.calls)
    assert loop(out, world) == mixture
    assert (world.calls, files(out)) == (calls, before)


def test_two_loops_with_the_same_settings_give_the_same_bytes(done, tmp_path):
    out, _, _, _ = done
    loop(tmp_path / "other", World())
    assert (tmp_path / "other" / "mixture.json").read_bytes() == (out / "mixture.json").read_bytes()
    assert (
        read_observations(str(out / "observations.parquet")).runs
        == read_observations(str(tmp_path / "other" / "observations.parquet")).runs
    )


def test_the_report_tells_budget_rounds_fit_curves_and_design_as_plain_json(done):
    out, _, mixture, _ = done
    told = report(out)
    assert told["spent"] == {"runs": 24, "failed": {}, "flops": pytest.approx(24 * 6e14), "budget": 24} | {
        "seconds": told["spent"]["seconds"]
    }
    assert [one["mixtures"] for one in told["rounds"]] == [12, 6, 6]
    assert all(one["why"] and all(one["why"]) for one in told["rounds"])
    bests = [one["best"] for one in told["rounds"]]
    assert bests == sorted(bests, reverse=True)
    assert {len(rows) for rows in told["fit"].values()} == {24}
    assert sorted(told["fit"]) == ["loss/books", "loss/code", "loss/web", "objective"]
    errors = [abs(row["measured"] - row["predicted"]) for row in told["fit"]["objective"]]
    assert np.mean(errors) < 0.02
    assert sorted(told["curves"]) == sorted(DOMAINS)
    for name, curve in told["curves"].items():
        least = int(np.argmin(curve["objective"]["value"]))
        assert curve["weight"][least] == pytest.approx(mixture.weights[name], abs=0.08)
        low, value, high = (np.array(curve["objective"][side]) for side in ("low", "value", "high"))
        assert (low < value).all()
        assert (value < high).all()
    assert len(told["design"]) == 24
    assert {one["round"] for one in told["design"]} == {1, 2, 3}
    assert told["law"]["choice"]
    assert told["optimum"]
    assert "NaN" not in (out / "mix.json").read_text()


def test_a_larger_budget_goes_on_and_a_smaller_one_keeps_what_was_measured(tmp_path):
    out, world = tmp_path / "mix", World()
    loop(out, world, runs=12)
    loop(out, world, runs=18)
    assert world.calls == [12, 6]
    assert loop(out, world, runs=5).runs == 18
    assert world.calls == [12, 6]


def test_other_constraints_keep_the_runs_and_find_the_optimum_anew(tmp_path):
    out, world = tmp_path / "mix", World()
    free = loop(out, world, runs=12)
    bound = loop(out, world, runs=12, constraints={"ceilings": {"code": 0.2}})
    assert world.calls == [12]
    assert free.weights["code"] > 0.2
    assert bound.weights["code"] == pytest.approx(0.2, abs=1e-6)


def test_a_round_that_waits_is_proposed_anew_under_other_constraints(tmp_path):
    out, said = tmp_path / "mix", []

    def killed(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loop(out, killed)
    first = json.loads((out / "rounds" / "01.json").read_text())
    world = World()
    loop(out, world, said, runs=12, constraints={"ceilings": {"code": 0.2}})
    again = json.loads((out / "rounds" / "01.json").read_text())
    assert first["shaped_by"] != again["shaped_by"]
    assert max(one["weights"]["code"] for one in first["mixtures"]) > 0.2
    assert max(one["weights"]["code"] for one in again["mixtures"]) <= 0.2 + 1e-9
    assert "mix: round 1 was proposed under other settings; it is proposed anew" in said


def test_a_round_that_waits_is_measured_as_it_was_proposed_where_settings_are_the_same(tmp_path):
    out = tmp_path / "mix"

    def killed(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loop(out, killed)
    before = (out / "rounds" / "01.json").read_bytes()
    loop(out, World(), runs=12, law="linear", stop_below=5)
    assert (out / "rounds" / "01.json").read_bytes() == before


def test_more_runs_that_are_worth_too_little_are_not_made(tmp_path):
    world, said = World(), []
    mixture = loop(tmp_path / "mix", world, said, runs=60, stop_below=10.0)
    assert world.calls == [12]
    assert mixture.runs == 12
    told = report(tmp_path / "mix")
    assert told["stop"].startswith("10 more runs are expected to gain")
    assert told["stop"].endswith("less than 10")
    assert told["worth"]["gain"] < 10


def test_a_budget_of_flops_is_not_exceeded(tmp_path):
    world = World()
    loop(tmp_path / "mix", world, budget_flops=16.5 * 6e14)
    assert world.calls == [12, 4]
    assert "FLOPs are spent" in report(tmp_path / "mix")["stop"]


def test_runs_that_fail_are_told_and_paid_for_and_the_loop_goes_on(tmp_path):
    world, said = World(fails=lambda row: row[1] > 0.5), []
    mixture = loop(tmp_path / "mix", world, said)
    told = report(tmp_path / "mix")
    assert mixture.runs == 24 == told["spent"]["runs"]
    failed = told["spent"]["failed"]
    assert failed
    assert set(failed.values()) == {"made to fail"}
    assert sum("failed: made to fail" in line for line in said) == len(failed)
    assert any(line.startswith(f"runs: {len(failed)} failed and count as spent") for line in told["warnings"])


def test_a_first_round_in_which_nothing_ends_is_an_error_and_is_measured_again(tmp_path):
    out = tmp_path / "mix"
    with pytest.raises(MixingError, match=r"^round 1: none of 12 runs came to an end; run-\w+-0: made to fail$"):
        loop(out, World(fails=lambda _: True))
    world = World()
    loop(out, world, runs=12)
    assert world.calls == [12]


def test_a_later_round_in_which_nothing_ends_costs_its_runs(tmp_path):
    world = World()
    calls = []

    def measure(proposal):
        calls.append(proposal.num_rows)
        world.fails = (lambda _: True) if len(calls) == 2 else (lambda _: False)
        return world(proposal)

    mixture = loop(tmp_path / "mix", measure)
    assert calls == [12, 6, 6]
    assert mixture.runs == 24
    assert len(report(tmp_path / "mix")["design"]) == 18


def test_one_domain_is_the_mixture_at_once_with_a_warning(tmp_path):
    world, said = World(), []
    mixture = loop(tmp_path / "mix", world, said, available={"web": 100.0}, tokens=250)
    assert (mixture.weights, mixture.epochs, world.calls) == ({"web": 1.0}, {"web": 2.5}, [])
    assert "there is one domain, web" in said[0]
    assert report(tmp_path / "mix")["warnings"]


def test_fewer_runs_than_domains_give_a_mixture_and_a_warning(tmp_path):
    mixture = loop(tmp_path / "mix", World(), runs=3, first_runs=3, law="auto")
    assert mixture.runs == 3
    assert any("a law is hardly determined" in line for line in report(tmp_path / "mix")["warnings"])


def test_constraints_that_clash_are_told_before_anything_is_measured(tmp_path):
    world = World()
    with pytest.raises(MixingError, match="floors"):
        loop(tmp_path / "mix", world, constraints={"floors": {"web": 0.7, "code": 0.7}})
    assert world.calls == []


def test_a_target_bounds_epochs_in_every_proposal_and_in_the_mixture(tmp_path):
    mixture = loop(tmp_path / "mix", World(), tokens=2e7, max_epochs=4, runs=12)
    assert mixture.weights["books"] <= 4e6 / 2e7 + 1e-9
    assert mixture.epochs["books"] <= 4 + 1e-6
    assert mixture.max_epochs == dict.fromkeys(DOMAINS, 4.0)
    proposed = json.loads((tmp_path / "mix" / "rounds" / "01.json").read_text())["mixtures"]
    assert max(one["weights"]["books"] for one in proposed) <= 0.2 + 1e-9


def test_a_folder_of_other_domains_is_refused_with_where_to_start_from(tmp_path):
    loop(tmp_path / "mix", World(), runs=12)
    with pytest.raises(MixingError, match=r"of other domains; use another out, and name .*observations\.parquet"):
        loop(tmp_path / "mix", World(), available={**AVAILABLE, "more": 5.0})


def test_a_folder_that_another_loop_works_in_is_refused(tmp_path):
    def inside(_):
        loop(tmp_path / "mix", World())

    with pytest.raises(MixingError, match="another loop works in"):
        loop(tmp_path / "mix", inside)


def test_earlier_observations_take_the_place_of_first_runs(done, tmp_path):
    out, _, _, _ = done
    world = World()
    mixture = loop(tmp_path / "mix", world, runs=6, observations=(str(out / "observations.parquet"),))
    assert world.calls == [6]
    assert mixture.runs == 6
    assert len(report(tmp_path / "mix")["design"]) == 30


def test_earlier_observations_with_other_domains_are_used_where_they_can_be(tmp_path):
    weights = np.array([[0.5, 0.5, 0.0], [0.5, 0.4, 0.1], [0.2, 0.8, 0.0], [1.0, 0.0, 0.0]])
    names, values = ("code", "web", "old"), np.full((4, 3), 2.0) + np.arange(4)[:, None] * 0.1
    told = Observations.of(
        Points.of(names, weights, parameters=1e6, tokens=1e8), [f"loss/{name}" for name in DOMAINS], values
    )
    write(told, str(tmp_path / "old.csv"))
    loop(tmp_path / "mix", World(), runs=12, observations=(str(tmp_path / "old.csv"),))
    found = report(tmp_path / "mix")
    assert len(found["design"]) == 15
    assert any("1 rows left out, which train on domains that are not there: old" in line for line in found["warnings"])


def test_a_metric_nobody_measured_is_told_with_what_there_is(tmp_path):
    with pytest.raises(MixingError, match=r"objective\.weights: nothing measured is 'loss/co'; there are loss/"):
        loop(tmp_path / "mix", World(), objective={"weights": {"loss/co": 1}})


def test_the_worst_domain_is_minimised_where_that_is_asked(tmp_path):
    mixture = loop(tmp_path / "mix", World(), objective={"worst": ["loss/*"]})
    true = losses([[mixture.weights[name] for name in DOMAINS]])[0]
    grid = losses(np.random.default_rng(0).dirichlet(np.ones(3), 4000)).max(axis=1).min()
    assert true.max() <= grid * 1.004


def test_phases_have_the_mixture_as_their_total(tmp_path):
    mixture = loop(tmp_path / "mix", World(), runs=12, phases={"shares": [0.8, 0.2], "forward": {"code": 3.0}})
    first, last = mixture.phases
    assert last.weights["code"] > first.weights["code"]
    for name, weight in mixture.weights.items():
        assert 0.8 * first.weights[name] + 0.2 * last.weights[name] == pytest.approx(weight)
    assert read_mixture(str(tmp_path / "mix" / "mixture.json")) == mixture


def test_what_is_measured_later_of_known_runs_can_be_the_objective(tmp_path):
    out, world = tmp_path / "mix", World()
    loop(out, world, runs=12)
    known = read_observations(str(out / "observations.parquet"))
    quality = known.weights[:, known.domains.index("code")]
    observe(str(out), pa.table({"run": known.runs, "exam": quality}))
    mixture = loop(out, world, runs=12, objective={"weights": {"exam": -1}}, law="linear")
    assert mixture.weights["code"] == pytest.approx(1, abs=1e-4)
    assert world.calls == [12]


def test_the_trained_target_fed_back_is_told_and_not_fitted_with_the_proxies(tmp_path):
    out, world = tmp_path / "mix", World()
    loop(out, world, runs=12, tokens=1e10, max_epochs=None)
    for _ in range(2):
        told = observe(str(out), pa.table({"run": ["target"], "metric": ["loss/web"], "value": [1.5]}))
        assert list(told.runs) == ["target"]
    assert len(list((out / "observed").iterdir())) == 1
    loop(out, world, runs=12, tokens=1e10, max_epochs=None)
    found = report(out)
    assert [(one["run"], one["metrics"]) for one in found["others"]] == [("target", {"loss/web": 1.5})]
    assert len(found["design"]) == 12


def test_three_runs_of_the_target_put_predictions_on_its_scale_and_two_do_not(tmp_path):
    out, world = tmp_path / "mix", World(noise=0)
    first = loop(out, world, runs=12)
    weights = [[0.3, 0.4, 0.3], [0.1, 0.2, 0.7], [0.6, 0.2, 0.2]]
    for count in (2, 3):
        rows = [
            {
                "run": f"large-{at}",
                "parameters": 1e9,
                "tokens": 1e11,
                **{f"weight_{n}": w for n, w in zip(DOMAINS, row, strict=True)},
            }
            | {f"loss/{name}": 0.7 * loss for name, loss in zip(DOMAINS, losses([row])[0], strict=True)}
            for at, row in enumerate(weights[:count])
        ]
        observe(str(out), pa.Table.from_pylist(rows))
        mixture = loop(out, world, runs=12)
        assert mixture.objective.value == pytest.approx(first.objective.value * (0.7 if count == 3 else 1), rel=0.01)
        assert (report(out)["at_target"] is None) == (count == 2)
    assert report(out)["at_target"]["loss/web"]["runs"] == 3
    assert mixture.objective.low < mixture.objective.value < mixture.objective.high
    assert mixture.weights == pytest.approx(first.weights, abs=0.05)
    assert world.calls == [12]


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ({"run": ["nobody"], "exam": [1.0]}, "run is 'nobody', which has no weights"),
        ({"run": ["target"], "exam": ["much"]}, "no column of a metric"),
        ({"exam": [1.0]}, "share no column of run"),
        ({"run": ["a"], "weight_wiki": [1.0], "exam": [1.0]}, "all of it trains on wiki; the domains here are books"),
    ],
)
def test_what_cannot_be_fed_back_is_refused_in_a_line_and_not_kept(done, table, line):
    out = done[0]
    with pytest.raises(MixingError, match=line) as caught:
        observe(str(out), pa.table(table))
    assert "\n" not in str(caught.value)
    assert not (out / "observed").exists()


def test_values_that_contradict_what_is_there_are_refused(done):
    out = done[0]
    known = read_observations(str(out / "observations.parquet"))
    with pytest.raises(MixingError, match="loss/web of run"):
        observe(str(out), pa.table({"run": [known.runs[0]], "seed": [0], "loss/web": [9.0]}))


def test_a_folder_without_a_loop_takes_nothing(tmp_path):
    with pytest.raises(MixingError, match="holds no observations yet; run the mix step there first"):
        observe(str(tmp_path), pa.table({"run": ["a"], "exam": [1.0]}))


def test_without_tokens_or_a_measure_nothing_begins(tmp_path):
    with pytest.raises(MixingError, match="tokens: none"):
        run(settings(), out=str(tmp_path / "mix"), available=AVAILABLE)
