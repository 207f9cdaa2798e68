"""What every fixed-scale law of one smooth equation owes: derivatives, convexity, domains by name, degenerate input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixing.laws import law_class
from mixing.laws.robust_law import RobustLaw
from mixing.observations.observations import Observations
from mixing.observations.points import MixingError, Points

SMOOTH = ("shared_power", "additive_power", "parts_power", "exponential")


def smooth(name: str) -> type[RobustLaw]:
    found = law_class(name)
    assert issubclass(found, RobustLaw)
    return found


def world(runs: int = 40, domains: int = 4, *, noise: float = 0.0, seed: int = 0) -> Observations:
    """Two metrics of a shared power law over Dirichlet mixtures, some weights 0."""
    generator = np.random.default_rng(seed)
    weights = generator.dirichlet(np.ones(domains), runs)
    weights[weights < 0.05] = 0
    names = tuple("abcdefghijklmnopqrstuvwxyz"[:domains])
    points = Points.of(names, weights / weights.sum(axis=1, keepdims=True))
    values = truth(points.weights)
    return Observations.of(points, ("first", "second"), values + noise * generator.normal(size=values.shape))


def truth(weights: Any) -> Any:
    worth = np.exp(np.linspace(1, -2, weights.shape[1]))
    first = 2 + ((weights + 1e-3) ** 0.5 @ worth) ** -0.8
    second = 1 + ((weights + 1e-3) ** 0.5 @ worth[::-1]) ** -0.8
    return np.stack([first, second], axis=1)


@pytest.mark.parametrize("name", SMOOTH)
def test_jacobian_and_slope_agree_with_finite_differences(name: str) -> None:
    law, generator, step = smooth(name), np.random.default_rng(1), 1e-6
    size = len(law.prior(3).mean)
    theta = generator.normal(0, 0.5, (2, size))
    weights = generator.dirichlet(np.ones(3), 5)
    jacobian, slope = law.curve(theta, weights)[1], law.slope(theta, weights)
    for column in range(size):
        move = step * np.eye(size)[column]
        finite = (law.curve(theta + move, weights)[0] - law.curve(theta - move, weights)[0]) / (2 * step)
        np.testing.assert_allclose(jacobian[..., column], finite, rtol=1e-5, atol=1e-8)
    for domain in range(3):
        move = step * np.eye(3)[domain]
        finite = (law.curve(theta, weights + move)[0] - law.curve(theta, weights - move)[0]) / (2 * step)
        np.testing.assert_allclose(slope[..., domain], finite, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient_is_that_of_the_mean_and_finite_at_the_corners(name: str) -> None:
    observations = world(noise=0.01)
    law = smooth(name).fit(observations)
    inner, step = np.random.default_rng(2).dirichlet(np.full(4, 5.0), 6), 1e-7
    points = observations.points.at(inner)
    for domain in range(4):
        move = step * np.eye(4)[domain]
        finite = (law.mean(points.at(inner + move)) - law.mean(points.at(inner - move))) / (2 * step)
        np.testing.assert_allclose(law.gradient(points)[:, :, domain], finite, rtol=1e-4, atol=1e-6)
    assert np.isfinite(law.gradient(points.at(np.eye(4)))).all()


@pytest.mark.parametrize("name", [*SMOOTH, "linear"])
def test_a_law_that_says_convex_lies_below_its_chords(name: str) -> None:
    observations = world(noise=0.02)
    law = law_class(name).fit(observations)
    assert law.convex.all()
    generator = np.random.default_rng(3)
    one, other = generator.dirichlet(np.full(4, 0.3), 300), generator.dirichlet(np.full(4, 0.3), 300)
    share = generator.uniform(size=(300, 1))
    ends = share * law.mean(observations.points.at(one)) + (1 - share) * law.mean(observations.points.at(other))
    between = law.mean(observations.points.at(share * one + (1 - share) * other))
    assert (between <= ends + 1e-9).all()


def test_the_true_law_is_found_without_noise() -> None:
    law = smooth("shared_power").fit(world(60))
    points = world(50, seed=9).points
    np.testing.assert_allclose(law.mean(points), truth(points.weights), rtol=2e-3)


@pytest.mark.parametrize("name", SMOOTH)
def test_one_wild_run_moves_little(name: str) -> None:
    observations, points = world(40, noise=0.005), world(50, seed=9).points
    values = observations.values.copy()
    values[7] += 50
    wild = Observations.of(observations.points, observations.metrics, values)
    plain = smooth(name).fit(observations).mean(points)
    moved = smooth(name).fit(wild).mean(points)
    assert np.abs(moved - plain).max() < 0.25


@pytest.mark.parametrize("name", [*SMOOTH, "exponential_published", "linear", "lightgbm"])
def test_order_of_runs_and_domains_changes_nothing(name: str) -> None:
    observations = world(50, noise=0.01)
    law = law_class(name).fit(observations)
    order = np.random.default_rng(5).permutation(50)
    shuffled = observations.rows(order)
    if name != "exponential_published":  # its random starts go by column
        shuffled = Observations.of(shuffled.points.aligned(("c", "a", "d", "b")), shuffled.metrics, shuffled.values)
    other = law_class(name).fit(shuffled)
    points = world(20, seed=9).points
    # Trees sum in the order of rows and columns, and split at the first of equal gains.
    tolerance = 0.05 if name == "lightgbm" else 1e-5
    np.testing.assert_allclose(other.mean(points.aligned(other.domains)), law.mean(points), atol=tolerance)


@pytest.mark.parametrize("name", [*SMOOTH, "linear"])
def test_held_out_rows_are_told_by_a_fit_that_never_saw_them(name: str) -> None:
    observations = world(30, noise=0.02)
    folds = np.arange(30) % 3
    law = law_class(name).fit(observations)
    means, _ = law.held_out(observations, folds)
    for fold in range(3):
        alone = law_class(name).fit(observations.rows(folds != fold)).mean(observations.points.rows(folds == fold))
        np.testing.assert_allclose(means[folds == fold], alone, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", [*SMOOTH, "exponential_published", "linear", "lightgbm"])
def test_each_metric_is_fitted_on_the_rows_that_have_it(name: str) -> None:
    observations = world(50, noise=0.01)
    values = observations.values.copy()
    values[::2, 1] = np.nan
    law = law_class(name).fit(Observations.of(observations.points, observations.metrics, values))
    half = law_class(name).fit(observations.rows(slice(1, None, 2)))
    points = world(10, seed=9).points
    np.testing.assert_allclose(law.mean(points)[:, 1], half.mean(points)[:, 1], atol=1e-5)


@pytest.mark.parametrize("name", [*SMOOTH, "exponential_published", "linear", "lightgbm"])
def test_a_metric_without_rows_is_named(name: str) -> None:
    observations = world(10)
    values = observations.values.copy()
    values[:, 1] = np.nan
    with pytest.raises(MixingError, match="no row has a second"):
        law_class(name).fit(Observations.of(observations.points, observations.metrics, values))


@pytest.mark.parametrize("name", [*SMOOTH, "linear", "lightgbm"])
@pytest.mark.parametrize(("runs", "domains"), [(1, 4), (2, 4), (3, 12), (6, 12), (5, 1)])
def test_few_runs_give_sober_numbers(name: str, runs: int, domains: int) -> None:
    observations = world(runs, domains, noise=0.01)
    law = law_class(name).fit(observations)
    means = law.mean(world(30, domains, seed=9).points)
    middle, width = observations.values.mean(axis=0), np.ptp(observations.values, axis=0)
    assert (np.abs(means - middle) <= 30 * width + 1e-6).all()
    assert np.isfinite(law.gradient(observations.points)).all()


@pytest.mark.parametrize("name", [*SMOOTH, "linear", "lightgbm"])
def test_a_constant_metric_is_told_as_it_is(name: str) -> None:
    observations = world(50)
    values = observations.values.copy()
    values[:, 0] = 3.25
    law = law_class(name).fit(Observations.of(observations.points, observations.metrics, values))
    points = world(20, seed=9).points
    np.testing.assert_allclose(law.mean(points)[:, 0], 3.25, rtol=1e-9)
    np.testing.assert_allclose(law.gradient(points)[:, 0] @ np.ones(4) if name != "linear" else 0, 0, atol=1e-9)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_the_unit_of_the_loss_changes_nothing_else(name: str, factor: float) -> None:
    observations = world(30, noise=0.01)
    scaled = Observations.of(observations.points, observations.metrics, observations.values * factor)
    points = world(20, seed=9).points
    plain, other = smooth(name).fit(observations), smooth(name).fit(scaled)
    np.testing.assert_allclose(other.mean(points) / factor, plain.mean(points), rtol=1e-6)


@pytest.mark.parametrize("name", SMOOTH)
def test_the_law_is_surer_where_it_saw_runs(name: str) -> None:
    observations = world(60, noise=0.02)
    inside = observations.weights[:, 3] < 0.3
    law = smooth(name).fit(observations.rows(inside))
    deviation = law.deviation(observations.points)
    assert deviation is not None
    assert np.median(deviation[inside]) < np.median(deviation[~inside])


@pytest.mark.parametrize("name", SMOOTH)
def test_what_was_learned_is_plain_json(name: str) -> None:
    import json

    told = smooth(name).fit(world(20)).told()
    assert set(told) == {"first", "second"}
    assert json.loads(json.dumps(told)) == told
