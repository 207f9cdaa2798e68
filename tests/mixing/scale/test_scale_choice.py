"""Choice among joint laws by the largest size left out, and the check that ranks carry over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mixing.observations import read_observations
from mixing.observations.observations import Observations
from mixing.observations.points import MixingError
from mixing.scale import ScaleAverage, choose_by_scale, rank_transfer
from mixing.scale.ranks import spearman

Runs = Callable[..., Observations]


def test_a_law_that_tells_the_largest_size_is_chosen_over_one_that_does_not(runs: Runs) -> None:
    law = choose_by_scale(runs((1e7, 3e7, 1e8), noise=0.002), ("chinchilla", "joint_shared_power"))
    assert [part.name for part in law.laws] == ["joint_shared_power"]
    assert "of runs of 100M parameters from 2 smaller sizes" in law.why
    assert law.errors[0].mean() > 2 * law.errors[1].mean()


def test_with_two_sizes_mixtures_are_held_out(runs: Runs) -> None:
    law = ScaleAverage.fit(runs((1e7, 1e8), noise=0.002))
    assert "held-out mixtures at 2 sizes" in law.why
    assert law.error.mean() <= law.errors.mean(axis=1).min() + 1e-12
    np.testing.assert_allclose(law.shares.sum(), 1)


def test_the_average_is_a_law_with_slopes(runs: Runs) -> None:
    seen = runs((1e7, 1e8), noise=0.01)
    law = choose_by_scale(seen, ("joint_additive", "joint_power", "effective_tokens"))
    for place in range(3):
        step = np.eye(3)[place] * 1e-7
        up, down = (law.mean(replace(seen.points, weights=seen.weights + sign * step)) for sign in (1, -1))
        np.testing.assert_allclose(law.gradient(seen.points)[:, :, place], (up - down) / 2e-7, rtol=1e-3, atol=1e-4)
    deviation = law.deviation(seen.points)
    assert deviation is not None
    assert (deviation > 0).all()
    assert set(law.told()["errors_percent"]) == {"joint_additive", "joint_power", "effective_tokens"}


@pytest.mark.parametrize(
    ("sizes", "mixtures", "laws", "told"),
    [
        ((1e7,), 8, ("joint_additive",), "all rows are of one scale"),
        ((1e7, 1e8), 1, ("joint_additive",), "one mixture and fewer than three sizes"),
        ((1e7, 1e8), 8, ("shared_power",), "shared_power is of one scale"),
        ((1e7, 1e8), 8, ("no_such_law",), "no 'no_such_law'"),
        ((1e7, 1e8), 8, (), "laws: none"),
    ],
)
def test_what_cannot_be_chosen_among_is_told(
    runs: Runs, sizes: tuple[float, ...], mixtures: int, laws: tuple[str, ...], told: str
) -> None:
    with pytest.raises(MixingError, match=told):
        choose_by_scale(runs(sizes, mixtures=mixtures), laws)


def test_ranks_that_carry_over_come_without_a_warning_and_others_with_one(runs: Runs) -> None:
    small, large = runs((1e7,)), runs((1e8,))
    held = rank_transfer(small, large)
    assert held.by_metric == pytest.approx({"x": 1.0, "y": 1.0})
    assert not held.warnings
    turned = rank_transfer(small, replace(large, values=-large.values))
    assert turned.by_metric["x"] == pytest.approx(-1)
    assert len(turned.warnings) == 3
    domains = replace(large, points=large.points.aligned(("b", "c", "a")))
    assert rank_transfer(small, domains) == held


def test_ranks_need_the_same_mixtures_and_a_metric_in_both(runs: Runs) -> None:
    with pytest.raises(MixingError, match="0 mixtures stand at both scales"):
        rank_transfer(runs((1e7,)), runs((1e8,), seed=1))
    with pytest.raises(MixingError, match="no metric in both"):
        rank_transfer(runs((1e7,)).only(["x"]), runs((1e8,)).only(["y"]))


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ([1, 2, 3], [2, 4, 9], 1.0),
        ([1, 2, 3, np.nan], [9, 4, 2, 1], -1.0),
        ([1, 1, 2, 3], [1, 2, 3, 4], 0.9486833),
        ([1, 2], [1, 2], np.nan),
        ([1, 1, 1], [1, 2, 3], np.nan),
    ],
)
def test_rank_correlation_averages_ties(first: list[float], second: list[float], found: float) -> None:
    assert spearman(np.array(first), np.array(second)) == pytest.approx(found, nan_ok=True)


@pytest.mark.heavy
def test_published_runs_choose_what_tells_larger_models_best(shared: Path) -> None:
    seen = read_observations(shared / "mixing" / "slimpajama" / "runs.csv")
    sizes = seen.points.parameters
    law = choose_by_scale(seen.rows(sizes < 9e8))
    largest = seen.rows(sizes > 9e8)
    assert law.laws[0].name == "joint_shared_power"
    assert np.nanmean(np.abs(law.mean(largest.points) / largest.values - 1)) < 0.007
    ranks = rank_transfer(*(seen.rows(chosen & (seen.points.tokens > 1.9e10)) for chosen in (sizes < 2e8, sizes > 9e8)))
    assert min(ranks.by_metric.values()) > 0.9
    assert not ranks.warnings
