"""Points and observations of arrays: what is refused, and that domains go by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixing.observations import MixingError, Observations, Points

HALVES = [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("domains", "weights", "scale", "told"),
    [
        (("a", "a"), HALVES, {}, "'a' stands twice"),
        ((), np.zeros((1, 0)), {}, "no domain"),
        (("a", "b"), [[0.5, 0.3, 0.2]], {}, "a column a domain"),
        (("a", "b"), [[0.5, 0.5], [0.6, 0.5]], {}, "row 2: sums to 1.1000"),
        (("a", "b"), [[1.5, -0.5]], {}, "b is -0.5"),
        (("a", "b"), [[np.nan, 1]], {}, "a is nan"),
        (("a", "b"), [[0, np.inf]], {}, "b is inf"),
        (("a", "b"), HALVES, {"tokens": 0}, "tokens: 0; give a number above 0"),
        (("a", "b"), HALVES, {"parameters": -1}, "parameters: -1"),
        (("a", "b"), HALVES, {"tokens": [1.0, 2.0]}, "tokens: shape"),
        (("a", "b"), HALVES, {"unique_tokens": -1}, "0 or more"),
        (("a", "b"), HALVES, {"unique_tokens": {"c": 1.0}}, "no domain 'c'"),
    ],
)
def test_points_that_mean_nothing_are_refused(domains: Any, weights: Any, scale: dict[str, Any], told: str) -> None:
    with pytest.raises(MixingError, match=told):
        Points.of(domains, weights, **scale)


@pytest.mark.parametrize(("total", "taken"), [(1.0049, True), (0.9951, True), (1.0051, False), (0.9949, False)])
def test_rows_that_miss_1_by_rounding_are_scaled_and_others_refused(total: float, taken: bool) -> None:
    rows = [[total / 2, total / 2]]
    if taken:
        assert Points.of(("a", "b"), rows).weights.sum() == pytest.approx(1, abs=1e-15)
    else:
        with pytest.raises(MixingError, match="sums to"):
            Points.of(("a", "b"), rows)


def test_epochs_by_domain_and_where_they_are_unknown() -> None:
    points = Points.of(("a", "b", "c"), [[0.5, 0.5, 0]], tokens=100.0, unique_tokens={"a": 25.0})
    assert points.epochs[0, 0] == 2
    assert np.isnan(points.epochs[0, 1])
    assert points.epochs[0, 2] == 0
    assert np.isinf(Points.of(("a",), [[1]], tokens=1.0, unique_tokens=0.0).epochs[0, 0])


def test_aligned_points_have_the_same_weight_by_name() -> None:
    points = Points.of(("a", "b"), [[0.2, 0.8]], unique_tokens={"a": 1.0, "b": 2.0}).aligned(("b", "a"))
    assert points.weights.tolist() == [[0.8, 0.2]]
    assert points.unique_tokens.tolist() == [[2.0, 1.0]]
    with pytest.raises(MixingError, match="missing b; unknown c"):
        points.aligned(("a", "c"))


@pytest.mark.parametrize(
    ("metrics", "values", "more", "told"),
    [
        (("x",), [[1.0, 2.0]], {}, "shape"),
        (("x", "x"), [[1.0, 2.0]], {}, "'x' stands twice"),
        (("x",), [np.inf], {}, "x is infinite"),
        (("x",), [1.0], {"runs": ("a", "b")}, "2 names for 1 rows"),
    ],
)
def test_observations_that_mean_nothing_are_refused(
    metrics: tuple[str, ...], values: Any, more: dict[str, Any], told: str
) -> None:
    with pytest.raises(MixingError, match=told):
        Observations.of(Points.of(("a", "b"), HALVES), metrics, values, **more)


def test_some_rows_and_some_metrics() -> None:
    whole = Observations.of(
        Points.of(("a", "b"), [[1, 0], [0, 1], [0.5, 0.5]], tokens=np.array([1.0, 2.0, 3.0])),
        ("x", "y"),
        [[1, 2], [3, 4], [5, 6]],
        notes=("told",),
    )
    some = whole.rows([2, 0]).only(("y",))
    assert some.values.tolist() == [[6], [2]]
    assert some.points.tokens.tolist() == [3, 1]
    assert some.runs == ("run-00002", "run-00000")
    assert some.notes == ("told",)
    assert len(whole.rows(np.array([True, False, False]))) == 1
    with pytest.raises(MixingError, match="no 'z'; there are x, y"):
        whole.only(("z",))
