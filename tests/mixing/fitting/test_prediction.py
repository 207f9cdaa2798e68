"""Intervals that cover, wider off support, and a warning there that names the domain."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mixing.fitting import fit, learning_curve
from mixing.fitting.intervals import ErrorModel
from mixing.observations.observations import Observations
from mixing.observations.points import MixingError, Points

BOTH = ("ridge", "constant")


def columns(table: pa.Table) -> np.ndarray:
    return np.column_stack([table[name].to_numpy() for name in table.column_names])


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("count", [16, 32, 128])
def test_intervals_hold_the_share_of_new_runs_that_they_say(world, count, level):
    inside = []
    for seed in range(12):
        new = world(60, seed=1000 + seed)
        told = fit(world(count, seed=seed), BOTH).predict(new.points, level=level)
        inside.append(np.mean((columns(told.low) <= new.values) & (new.values <= columns(told.high))))
    assert level - 0.06 < np.mean(inside) < level + 0.06


def test_intervals_widen_with_the_level(world):
    fitted, asked = fit(world(25), BOTH), world(10, seed=4).points
    widths = [columns(fitted.predict(asked, level=level).high) for level in (0.1, 0.5, 0.9, 0.95, 0.99, 0.999)]
    assert all((wide >= narrow).all() for narrow, wide in zip(widths, widths[1:], strict=False))
    assert fitted.predict(asked).level == 0.9
    assert fit(world(25), BOTH, level=0.5).predict(asked).high.equals(fitted.predict(asked, level=0.5).high)


def test_a_domain_that_no_run_had_is_warned_of_and_widens_the_interval():
    random = np.random.default_rng(0)
    weights = np.column_stack([random.dirichlet(np.ones(2), 30), np.zeros(30)])
    runs = Observations.of(Points.of(["a", "b", "c"], weights), ["loss"], weights[:, 0] + 0.01 * random.random(30))
    told = fit(runs, BOTH).predict([{"a": 0.5, "b": 0.5}, {"a": 0.45, "b": 0.45, "c": 0.1}])
    assert told.support.tolist() == [True, False]
    assert told.warnings == ("c: weight 0.1, observed never (1 row): extrapolated",)
    width = columns(told.high) - columns(told.low)
    assert width[1, 0] > 2 * width[0, 0]


def test_weights_beyond_the_observed_are_outside_and_more_so_the_farther(world):
    runs = world(60)
    narrow = Observations.of(
        Points.of(runs.domains, 0.6 * np.array([1, 0, 0]) + 0.4 * runs.weights), runs.metrics, runs.values
    )
    told = fit(narrow, BOTH).predict([[0.7, 0.15, 0.15], [0.4, 0.3, 0.3], [0.05, 0.05, 0.9]])
    assert told.support.tolist() == [True, False, False]
    width = (columns(told.high) - columns(told.low)).mean(axis=1)
    assert width[0] < width[1] < width[2]
    assert any(line.startswith("web: weight 0.9, observed 0.00") for line in told.warnings)


def test_intervals_widen_with_every_range_of_sizes_that_is_gone_beyond():
    random = np.random.default_rng(3)
    weights, size = random.dirichlet(np.ones(3), 48), np.repeat([1e6, 3e6], 24)
    losses = 2 + (1e6 / size) ** 0.3 + 0.2 / np.sqrt(weights[:, 0] + 0.1) + 0.01 * random.random(48)
    runs = Observations.of(Points.of("abc", weights, parameters=size, tokens=20 * size), ["loss"], losses)
    fitted = fit(runs, "joint_shared_power")
    points = [Points.of("abc", [[0.4, 0.3, 0.3]], parameters=n, tokens=20 * n) for n in (3e6, 9e6, 27e6)]
    widths = [float((columns(told.high) - columns(told.low))[0, 0]) for told in map(fitted.predict, points)]
    np.testing.assert_allclose(np.divide(widths, widths[0]), [1, 3, 5], rtol=0.2)  # N and D: a range each, then two
    assert [fitted.predict(at).support[0] for at in points] == [True, False, False]


def test_distances_are_the_same_whatever_the_block(world, monkeypatch):
    runs = world(40)
    told = fit(runs, BOTH).predict(world(10, seed=4).points)
    monkeypatch.setattr("mixing.fitting.support.BLOCK", 7)
    again = fit(runs, BOTH).predict(world(10, seed=4).points)
    assert told.high.equals(again.high)


def test_a_hole_amid_what_was_observed_is_outside():
    corners = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    random = np.random.default_rng(0)
    weights = np.concatenate([0.9 * corner + 0.1 * random.dirichlet(np.ones(3), 15) for corner in corners])
    runs = Observations.of(Points.of(["a", "b", "c"], weights), ["loss"], weights[:, 0])
    told = fit(runs, BOTH).predict([[1 / 3, 1 / 3, 1 / 3], [0.79, 0.11, 0.1]])
    assert told.support.tolist() == [False, True]
    assert "in a mixture that nothing observed is near" in told.warnings[0]


def test_new_mixtures_of_the_same_kind_are_seldom_outside(world):
    inside = [fit(world(40, seed=s), "constant").predict(world(100, seed=500 + s).points).support for s in range(10)]
    assert np.mean(inside) > 0.93


def test_mixtures_are_given_as_points_tables_names_or_rows(world):
    runs = world(20)
    fitted = fit(runs, BOTH)
    row = {"web": 0.2, "code": 0.5, "prose": 0.3}
    one = fitted.predict(row).mean
    assert fitted.predict([row]).mean.equals(one)
    assert fitted.predict([0.5, 0.3, 0.2]).mean.equals(one)
    assert fitted.predict(pa.table({"why": ["?"], **{name: [weight] for name, weight in row.items()}})).mean.equals(one)
    assert fitted.predict(Points.of(list(row), list(row.values()))).mean.equals(one)
    for wrong, told in [
        ({"wbe": 1.0}, "unknown domain 'wbe'"),
        ({"web": 0.5}, "sums to 0.5"),
        (pa.table({"web": [1.0]}), "no column 'code'"),
        ([0.5, 0.5], "3 domains"),
    ]:
        with pytest.raises(MixingError, match=told):
            fitted.predict(wrong)
    with pytest.raises(MixingError, match="level: 90 is no probability"):
        fitted.predict(row, level=90)


def test_scale_of_errors_follows_a_signal_that_tells_it_and_ignores_one_that_does_not():
    random = np.random.default_rng(0)
    signal, noise = random.chisquare(3, (500, 2)), random.chisquare(3, (500, 2))
    errors = np.sqrt(0.05 + signal) * random.standard_normal((500, 2))
    model = ErrorModel.of(errors, np.stack([signal, noise]), kept=0.9)
    assert model.blend[1] >= 0.5
    assert model.blend[2] == 0
    half = model.half_width(np.stack([signal, noise]), 0.9)
    assert np.mean(np.abs(errors) <= half) == pytest.approx(0.9, abs=0.03)


def test_error_falls_with_runs_on_the_learning_curve(world):
    curve = learning_curve(world(60, noise=0.01), (5, 40), BOTH)
    few, many = ([point for point in curve if point.runs == size] for size in (5, 40))
    assert [point.metric for point in few] == ["code loss", "prose loss", "web loss"]
    assert all(more.error < less.error for less, more in zip(few, many, strict=True))
    assert min(point.rank_correlation for point in many) > 0.9
    with pytest.raises(MixingError, match="from 1 to 59"):
        learning_curve(world(60), (60,))
