"""Recalibration: from a law of small runs to another scale through a line a metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mixing.fitting import fit
from mixing.fitting.constant import Constant
from mixing.laws import law_class
from mixing.observations import pool, read_observations
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError
from mixing.scale import Recalibrated, recalibrate

Runs = Callable[..., Observations]


def on_lines(source: Observations, slopes: tuple[float, float], shifts: tuple[float, float]) -> Observations:
    law = law_class("shared_power").fit(source)
    return replace(source, values=law.mean(source.points) * slopes + np.array(shifts))


def test_lines_are_found_again_from_enough_runs(runs: Runs) -> None:
    source = runs((1e7,))
    target = on_lines(source, (0.7, 1.2), (0.5, -1.0))
    law = recalibrate(law_class("shared_power").fit(source), target)
    np.testing.assert_allclose(law.mean(source.points), target.values, rtol=2e-3)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_runs_leave_the_ratio_between_scales(runs: Runs, count: int) -> None:
    """All losses are a tenth lower at the target: one run is enough to say so."""
    source = runs((1e7,))
    law = law_class("shared_power").fit(source)
    target = replace(source, values=0.9 * law.mean(source.points))
    told = recalibrate(law, target.rows(slice(0, count)))
    np.testing.assert_allclose(told.mean(source.points), target.values, rtol=1e-6)


def test_a_metric_without_runs_keeps_what_the_law_says_and_warns(runs: Runs) -> None:
    source = runs((1e7,))
    law = law_class("shared_power").fit(source)
    holed = source.values * 0.8
    holed[:, 1] = np.nan
    told = recalibrate(law, replace(source, values=holed))
    np.testing.assert_array_equal(told.mean(source.points)[:, 1], law.mean(source.points)[:, 1])
    assert "y: no run" in told.warnings[0]
    assert len(told.warnings) == 1
    only = recalibrate(law, replace(source, values=holed).only(["x"]))
    np.testing.assert_allclose(only.mean(source.points), told.mean(source.points))


def test_slopes_follow_the_law_and_convexity_the_sign_of_the_line(runs: Runs) -> None:
    source = runs((1e7,))
    law = law_class("shared_power").fit(source)
    turned = on_lines(source, (0.7, -1.5), (0.5, 9.0))
    told = recalibrate(law, turned)
    assert (law.convex == [True, True]).all()
    assert (told.convex == [True, False]).all()
    for place in range(3):
        step = np.eye(3)[place] * 1e-6
        up, down = (told.mean(replace(source.points, weights=source.weights + sign * step)) for sign in (1, -1))
        np.testing.assert_allclose(told.gradient(source.points)[:, :, place], (up - down) / 2e-6, rtol=1e-4, atol=1e-6)


def test_domains_go_by_name_and_checkpoints_of_a_run_count_once(runs: Runs) -> None:
    source = runs((1e7,))
    law, target = law_class("shared_power").fit(source), on_lines(source, (0.8, 0.9), (0.1, 0.2))
    turned = replace(target, points=target.points.aligned(("c", "a", "b")))
    np.testing.assert_allclose(
        recalibrate(law, turned).mean(source.points), recalibrate(law, target).mean(source.points)
    )
    early = replace(target, points=replace(target.points, tokens=target.points.tokens / 2), values=target.values + 5)
    both = pool(early, target)
    np.testing.assert_allclose(recalibrate(law, both).mean(source.points), recalibrate(law, target).mean(source.points))


@pytest.mark.parametrize("level", [-1.0, 0.0, 2.0])
def test_metrics_of_any_sign_and_constant_predictions_give_finite_lines(runs: Runs, level: float) -> None:
    source = runs((1e7,))
    law = Constant.fit(replace(source, values=np.full(source.values.shape, level)))
    told = recalibrate(law, replace(source, values=source.values + level))
    assert np.isfinite(told.mean(source.points)).all()
    deviation = told.deviation(source.points)
    assert deviation is not None
    assert np.isfinite(deviation).all()


def test_what_cannot_be_recalibrated_is_told(runs: Runs) -> None:
    source = runs((1e7,))
    law = law_class("linear").fit(source)
    with pytest.raises(MixingError, match="no run tells any of x, y"):
        recalibrate(law, Observations.of(source.points, ("z",), source.values[:, 0]))
    with pytest.raises(MixingError, match="all runs are of one scale"):
        Recalibrated.fit(source)
    with pytest.raises(MixingError, match="level: 1"):
        recalibrate(law, source).predict(source.points, level=1.0)


def test_the_largest_scale_is_the_target_of_a_fit(runs: Runs) -> None:
    seen = runs((1e7, 1e8))
    law = Recalibrated.fit(seen)
    large = seen.rows(seen.points.parameters == 1e8)
    np.testing.assert_allclose(law.mean(large.points), large.values, rtol=0.02)
    assert set(law.told()["lines"]) == {"x", "y"}


@pytest.mark.heavy
def test_60m_models_are_told_from_1m_runs_and_a_few_of_theirs(shared: Path) -> None:
    """The reference (mean of POWG and a GP, least squares): MAE .095, .080, .067, .061, .058 from 3 to 32 runs."""
    folder = shared / "mixing" / "regmix"
    small = read_observations(folder / "train_mixture_1m.csv", folder / "train_pile_loss_1m.csv")
    large = read_observations(folder / "test_mixture_60m.csv", folder / "test_pile_loss_60m.csv").only(small.metrics)
    law = fit(small)
    for count, bound in zip((3, 5, 8, 16, 32), (0.095, 0.08, 0.067, 0.061, 0.058), strict=True):
        errors, covered = [], []
        for seed in range(10):
            order = np.random.default_rng(seed).permutation(len(large))
            told, rest = recalibrate(law, large.rows(order[:count])), large.rows(order[count:])
            errors.append(mean_error(told, rest))
            covered.append(covers(told, rest))
        assert np.mean(errors) < bound
        assert 0.86 < np.mean(covered) < 0.97


def test_intervals_cover_and_few_runs_of_the_target_beat_a_law_of_them_alone(shared: Path) -> None:
    folder = shared / "mixing" / "regmix"
    small = read_observations(folder / "train_mixture_1m.csv", folder / "train_pile_loss_1m.csv")
    large = read_observations(folder / "test_mixture_60m.csv", folder / "test_pile_loss_60m.csv").only(small.metrics)
    law, chosen = law_class("shared_power").fit(small), np.arange(len(large)) < 8
    told = recalibrate(law, large.rows(chosen))
    alone = recalibrate(law_class("shared_power").fit(large.rows(chosen)), large.rows(chosen))
    assert mean_error(told, large.rows(~chosen)) < 0.5 * mean_error(alone, large.rows(~chosen))
    assert 0.85 < covers(told, large.rows(~chosen)) < 0.99


def covers(law: Recalibrated, rest: Observations) -> float:
    told = law.predict(rest.points)
    inside = [
        (told.low[name].to_numpy() <= seen) & (seen <= told.high[name].to_numpy())
        for name, seen in zip(rest.metrics, rest.values.T, strict=True)
    ]
    return float(np.mean(inside))


def mean_error(law: Recalibrated, rest: Observations) -> float:
    told: Floats = law.mean(rest.points.aligned(law.domains))
    return float(np.abs(told - rest.values).mean())
