"""Noise from repeated mixtures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mixing.observations import Observations, Points, noise, read_observations, replicates, uneven_noise


def repeated(deviations: dict[float, float], times: int, metrics: int = 1) -> Observations:
    """Mixtures (share of a: deviation of their loss), each `times` over."""
    rng = np.random.default_rng(0)
    shares = np.repeat(list(deviations), times)
    sizes = np.repeat(list(deviations.values()), times)
    values = 3 + shares[:, None] + sizes[:, None] * rng.normal(size=(len(shares), metrics))
    points = Points.of(("a", "b"), np.stack([shares, 1 - shares], axis=1), parameters=1e6, tokens=1e8)
    return Observations.of(points, [f"m{at}" for at in range(metrics)], values, seeds=np.arange(len(shares)))


def test_noise_is_the_deviation_about_the_mean_of_each_mixture() -> None:
    points = Points.of(("a", "b"), [[0.5, 0.5]] * 2 + [[1, 0]] * 3 + [[0, 1]])
    whole = Observations.of(points, ("x", "y"), [[1, 1], [3, np.nan], [10, 5], [10, 5], [13, 5], [99, 99]])
    assert [rows.tolist() for rows in replicates(whole)] == [[0, 1], [2, 3, 4]]
    # x: (1 + 1 + 1 + 1 + 4) / (1 + 2); y: 0 / 2, as (1, NaN) has no degree of freedom
    np.testing.assert_allclose(noise(whole), [np.sqrt(8 / 3), 0])


def test_noise_is_unknown_where_nothing_was_repeated() -> None:
    whole = Observations.of(Points.of(("a", "b"), [[0.5, 0.5], [1, 0]]), ("x",), [1, 2])
    assert replicates(whole) == ()
    assert np.isnan(noise(whole)).all()
    assert uneven_noise(whole) == ()


def test_another_scale_is_no_replicate() -> None:
    points = Points.of(("a",), [[1]] * 3, tokens=np.array([1.0, 2.0, np.nan]))
    assert replicates(Observations.of(points, ("x",), [1, 2, 3])) == ()
    points = Points.of(("a",), [[1]] * 2, unique_tokens=np.array([[1.0], [2.0]]))
    assert replicates(Observations.of(points, ("x",), [1, 2])) == ()


def test_noise_that_depends_on_the_mixture_is_told_and_even_noise_is_not() -> None:
    loud = uneven_noise(repeated({0.2: 0.002, 1.0: 0.04}, 8))[0]
    assert loud.uneven
    assert (loud.lowest_run, loud.highest_run, loud.degrees) == ("run-00000", "run-00008", 14)
    assert loud.lowest < 0.004
    assert loud.highest > 0.02
    even = uneven_noise(repeated({0.2: 0.02, 0.5: 0.02, 1.0: 0.02}, 8, metrics=20))
    assert sum(told.uneven for told in even) <= 1


@pytest.mark.parametrize(("sizes", "uneven"), [({0.2: 0.0, 0.5: 0.0}, False), ({0.2: 0.0, 0.5: 0.1}, True)])
def test_runs_without_any_noise_are_even_only_among_themselves(sizes: dict[float, float], uneven: bool) -> None:
    assert uneven_noise(repeated(sizes, 4))[0].uneven is uneven


def test_published_seeds_have_a_noise_that_depends_on_the_run(shared: Path) -> None:
    """datablations repeats 15 settings; at 4.2B parameters and many epochs seeds differ most."""
    read = read_observations(shared / "mixing/repetition/datablations.csv")
    assert len(replicates(read)) == 15
    assert noise(read)[0] == pytest.approx(0.0078777, abs=1e-6)
    told = uneven_noise(read)[0]
    assert (told.degrees, told.uneven) == (29, True)
    assert (told.lowest, told.highest) == pytest.approx((0.000489, 0.020285), abs=1e-6)
