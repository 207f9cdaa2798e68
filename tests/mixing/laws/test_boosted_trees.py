"""LightGBM law: RegMix's settings, the same answer each time, and what too few runs make of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixing.laws.boosted_trees import LEAST_ROWS, PUBLISHED, TREES, BoostedTrees
from mixing.observations.observations import Observations
from mixing.observations.points import Points

NAMES = ("a", "b", "c")


def runs(count: int) -> Observations:
    weights = np.random.default_rng(0).dirichlet(np.ones(3), count)
    return Observations.of(Points.of(NAMES, weights), ("loss",), 3 - np.sqrt(weights[:, 0]))


def test_the_settings_are_the_published_ones() -> None:
    assert PUBLISHED == {"learning_rate": 0.01, "num_leaves": 31, "min_child_samples": 20}
    assert TREES == 1000
    law = BoostedTrees.fit(runs(60))
    assert law.ensembles[0].current_iteration() == 1000


@pytest.mark.parametrize(("count", "splits"), [(LEAST_ROWS - 1, False), (60, True)])
def test_trees_cannot_split_below_forty_runs_and_say_so(count: int, splits: bool) -> None:
    observations = runs(count)
    law = BoostedTrees.fit(observations)
    means = law.mean(observations.points)
    assert (np.ptp(means) > 0.05) == splits
    told: dict[str, Any] = law.told()["loss"]
    assert ("cannot split below 40 runs" in told.get("warning", "")) != splits
    assert told["gain"].keys() == set(NAMES)


def test_two_fits_and_two_threads_are_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    observations = runs(100)
    first = BoostedTrees.fit(observations, seed=3).mean(observations.points)
    monkeypatch.setattr(BoostedTrees, "threads", 2)
    np.testing.assert_array_equal(BoostedTrees.fit(observations, seed=3).mean(observations.points), first)


def test_it_has_no_slope_and_is_not_called_convex() -> None:
    law = BoostedTrees.fit(runs(50))
    assert not law.gradient(runs(5).points).any()
    assert not law.convex.any()
