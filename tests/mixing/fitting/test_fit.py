"""An average of laws: what is chosen, what does not matter, and answers where there is next to nothing to fit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mixing.fitting import fit
from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import MixingError, Points

BOTH = ("ridge", "constant")


def columns(table: pa.Table) -> np.ndarray:
    return np.column_stack([table[name].to_numpy() for name in table.column_names])


def test_the_law_that_tells_held_out_runs_has_the_shares_and_is_named_with_its_error(world):
    fitted = fit(world(40), BOTH)
    assert isinstance(fitted, Law)
    assert [law.name for law in fitted.laws] == ["ridge"]
    assert {row.law: row.share for row in fitted.choice} == {"ridge": 1.0, "constant": 0.0}
    best = next(row for row in fitted.choice if row.law == "ridge")
    assert 0 < best.error < 0.3
    assert best.explained > 0.7
    assert fitted.why.startswith("ridge 100% (error 0.")
    assert "constant (1." in fitted.why
    assert "10 folds of held-out runs over 40 rows" in fitted.why


def test_noise_without_a_law_is_left_to_the_constant(world):
    runs = world(30)
    random = np.random.default_rng(4).standard_normal(runs.values.shape)
    fitted = fit(Observations.of(runs.points, runs.metrics, random), BOTH)
    share = np.mean([row.share for row in fitted.choice if row.law == "constant"])
    assert share > 0.6


def test_mean_gradient_and_deviation_go_by_names_of_domains_and_gradients_are_differences(world):
    fitted = fit(world(30), BOTH)
    points = world(5, seed=9).points
    turned = points.aligned(points.domains[::-1])
    assert np.allclose(fitted.mean(points), fitted.mean(turned), atol=1e-12)
    assert np.allclose(fitted.gradient(points), fitted.gradient(turned)[:, :, ::-1], atol=1e-12)
    step = 1e-6
    for column in range(3):
        moved = points.weights + step * np.eye(3)[column]
        slope = (fitted.mean(points.at(moved)) - fitted.mean(points)) / step
        assert np.allclose(slope, fitted.gradient(points)[:, :, column], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("count", "law"), [(25, BOTH), (13, "auto")])
def test_order_of_runs_and_domains_does_not_matter(world, count, law):
    runs = world(count)
    random = np.random.default_rng(1)
    rows = random.permutation(count)
    turned = Observations.of(
        runs.points.rows(rows).aligned(("web", "code", "prose")), runs.metrics, runs.values[rows],
        runs=[runs.runs[row] for row in rows],
    )  # fmt: skip
    asked = world(6, seed=5).points
    one, other = fit(runs, law, seed=3).predict(asked), fit(turned, law, seed=3).predict(asked)
    for name in ("mean", "low", "high"):
        assert np.allclose(columns(getattr(one, name)), columns(getattr(other, name)), rtol=1e-6)
    assert one.warnings == other.warnings


def test_the_same_answer_from_any_number_of_workers(world):
    runs = world(20)
    one, two = fit(runs, ("constant", "linear")), fit(runs, ("constant", "linear"), workers=2)
    assert np.array_equal(one.mean(runs.points), two.mean(runs.points))
    assert one.why == two.why


def test_runs_of_a_mixture_and_rows_of_a_run_never_tell_each_other(world):
    runs = world(12)
    doubled = Observations.of(
        Points.of(runs.domains, np.repeat(runs.weights, 2, axis=0)), runs.metrics, np.repeat(runs.values, 2, axis=0)
    )
    once, twice = fit(runs, BOTH), fit(doubled, BOTH)
    errors = [np.mean([row.error for row in found.choice if row.law == "ridge"]) for found in (once, twice)]
    assert errors[1] == pytest.approx(errors[0], rel=0.02)


def test_one_run_is_told_as_it_was_with_intervals_without_end(world):
    runs = world(1)
    fitted = fit(runs)
    told = fitted.predict(world(3, seed=2).points)
    assert np.allclose(columns(told.mean), runs.values)
    assert np.isinf(columns(told.high)).all()
    assert "one run" in fitted.why
    assert not told.support.any()
    assert fitted.deviation(runs.points) is None


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_fewer_runs_than_domains_give_finite_predictions_and_wide_intervals(world, count):
    runs = world(count, domains=tuple("abcdefgh"))
    told = fit(runs, BOTH).predict(world(20, seed=3, domains=tuple("abcdefgh")).points)
    assert np.isfinite(columns(told.mean)).all()
    width = columns(told.high) - columns(told.low)
    assert (width > 0.5 * runs.values.std(axis=0)).all()


def test_one_domain_is_its_mean_and_the_interval_is_of_the_noise():
    random = np.random.default_rng(0)
    values = 3 + 0.1 * random.standard_normal((150, 12))
    inside = []
    for row in values:
        runs = Observations.of(Points.of(["only"], np.ones((12, 1))), ["loss"], row)
        told = fit(runs, "constant").predict({"only": 1.0})
        assert told.mean["loss"][0].as_py() == pytest.approx(row.mean())
        assert told.support.all()
        new = 3 + 0.1 * random.standard_normal(20)
        inside.append(np.mean((new > told.low["loss"][0].as_py()) & (new < told.high["loss"][0].as_py())))
    assert 0.87 < np.mean(inside) < 0.95


def test_a_constant_metric_is_told_as_it_is_beside_others(world):
    runs = world(20)
    values = runs.values.copy()
    values[:, 1] = 7.25
    fitted = fit(Observations.of(runs.points, runs.metrics, values), BOTH)
    told = fitted.predict(world(4, seed=2).points)
    assert told.mean["prose loss"].to_pylist() == [7.25] * 4
    assert told.high["prose loss"].to_pylist() == [7.25] * 4
    assert (columns(told.high)[:, 0] > columns(told.low)[:, 0]).all()
    assert (fitted.gradient(runs.points)[:, 1] == 0).all()
    assert fitted.convex.tolist() == [False, True, False]
    alone = fit(Observations.of(runs.points, ["loss"], values[:, 1]))
    assert alone.predict(runs.points).low["loss"].to_pylist() == [7.25] * 20
    assert "same in all runs" in alone.why


def test_metrics_measured_nowhere_or_too_seldom_are_left_out_with_a_warning_and_gaps_are_not(world):
    runs = world(30)
    values = runs.values.copy()
    values[::4, 0] = np.nan
    values[4:, 1] = np.nan
    values[:, 2] = np.nan
    fitted = fit(Observations.of(runs.points, runs.metrics, values), BOTH)
    assert fitted.metrics == ("code loss",)
    assert fitted.warnings == (
        "prose loss: measured on 4 of 30 mixtures; left out",
        "web loss: measured nowhere; left out",
    )
    truth = runs.values[::4, 0]
    assert np.abs(fitted.mean(runs.points.rows(slice(None, None, 4)))[:, 0] - truth).mean() < 0.1
    with pytest.raises(MixingError, match=r"no metric to fit: .* measured nowhere"):
        fit(Observations.of(runs.points, runs.metrics, values * np.nan))


@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_the_unit_of_losses_does_not_matter(world, size):
    runs = world(20)
    asked = world(5, seed=8).points
    plain = columns(fit(runs, BOTH).predict(asked).high)
    scaled = columns(fit(Observations.of(runs.points, runs.metrics, runs.values * size), BOTH).predict(asked).high)
    assert np.allclose(scaled, plain * size, rtol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"law": "linaer"}, "law: no 'linaer'; did you mean 'linear'"),
        ({"law": ()}, "law: none; give 'auto', a name or several"),
        ({"level": 1.0}, "level: 1.0 is no probability"),
        ({"metrics": ["lost"]}, "metrics: no 'lost'"),
    ],
)
def test_what_cannot_be_fitted_is_an_error_of_one_line(world, wrong, told):
    with pytest.raises(MixingError, match=told.replace("(", r"\(")) as caught:
        fit(world(10), **wrong)
    assert "\n" not in str(caught.value)


def test_no_runs_and_laws_of_one_scale_on_several_are_errors(world):
    runs = world(10)
    with pytest.raises(MixingError, match="no runs"):
        fit(runs.rows(slice(0, 0)))
    points = Points.of(runs.domains, runs.weights, parameters=np.repeat([1e6, 2e6], 5), tokens=1e9)
    with pytest.raises(MixingError, match="linear is of one scale and the runs are of 2"):
        fit(Observations.of(points, runs.metrics, runs.values), "linear")


@pytest.mark.parametrize("kind", ["few", "doubled", "one domain a run", "one mixture", "tiny"])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_whatever_is_given_the_laws_tried_as_a_rule_tell_finite_numbers(world, kind, count):
    runs = world(count)
    weights, values = runs.weights, runs.values * (1e-12 if kind == "tiny" else 1)
    if kind == "doubled":
        weights, values = np.repeat(weights, 2, axis=0), np.repeat(values, 2, axis=0)
    if kind == "one domain a run":
        weights = np.eye(3)[np.arange(count) % 3]
    if kind == "one mixture":
        weights = np.repeat(weights[:1], count, axis=0)
    fitted = fit(Observations.of(Points.of(runs.domains, weights), runs.metrics, values))
    asked = world(5, seed=6).points
    told = fitted.predict(asked)
    size = np.abs(values).max()
    assert np.abs(columns(told.mean)).max() < 10 * size
    assert np.isfinite(columns(told.high)).all()
    assert np.isfinite(fitted.gradient(asked)).all()


def test_held_out_predictions_of_the_average_are_of_averages_fitted_without_the_fold(world):
    runs = world(16)
    fitted = fit(runs, BOTH)
    folds = np.arange(16) // 8
    means, deviations = fitted.held_out(runs, folds)
    assert np.allclose(means[8:], fit(runs.rows(slice(0, 8)), BOTH).mean(runs.points.rows(slice(8, 16))))
    assert deviations is not None
    assert (deviations > 0).all()
