"""The Gaussian process law: exact slopes, closed forms that equal the long way, any order the same, RegMix's runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mixing.laws.gaussian_process import GaussianProcess, ScaledGaussianProcess
from mixing.observations import Observations, Points, read_observations
from mixing.observations.points import MixingError

Floats = npt.NDArray[np.float64]
DOMAINS = ("a", "b", "c")


def values(weights: Floats) -> Floats:
    return np.column_stack([2 + 1 / (weights[:, 0] + 0.1), 3 - weights[:, 1] + weights[:, 2] ** 2])


def observed(count: int, *, seed: int = 0, noise: float = 0.01) -> Observations:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(3), count)
    return Observations.of(
        Points.of(DOMAINS, weights), ("one", "two"), values(weights) + noise * rng.normal(size=(count, 2))
    )


@pytest.fixture(scope="module")
def law() -> GaussianProcess:
    return GaussianProcess.fit(observed(30))


@pytest.fixture(scope="module")
def points() -> Points:
    corners = np.eye(3)
    return Points.of(DOMAINS, np.concatenate([np.random.default_rng(9).dirichlet(np.ones(3), 4), corners]))


@pytest.mark.parametrize("what", ["mean", "deviation"])
def test_slopes_are_those_of_finite_differences(law: GaussianProcess, points: Points, what: str) -> None:
    told = law.gradient(points) if what == "mean" else law.deviation_gradient(points)
    step = 1e-5
    for at in range(3):
        sides = []
        for sign in (1, -1):
            moved = points.weights.copy()
            moved[:, at] += sign * step
            sides.append(getattr(law, what)(points.at(moved)))
        difference = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(told[:, :, at], difference, rtol=5e-3, atol=1e-4 * np.abs(told).max())


def test_it_tells_what_it_was_shown_and_is_less_sure_elsewhere(law: GaussianProcess) -> None:
    rows = observed(30)
    assert np.abs(law.mean(rows.points) - values(rows.weights)).mean() < 0.05
    inside = law.deviation(Points.of(DOMAINS, [[1 / 3, 1 / 3, 1 / 3]]))
    corner = law.deviation(Points.of(DOMAINS, [[0, 0, 1.0]]))
    assert (corner > inside).all()


def test_the_order_of_runs_and_domains_changes_nothing(law: GaussianProcess, points: Points) -> None:
    rows = observed(30)
    turned = rows.rows(np.random.default_rng(3).permutation(30)).aligned(("c", "a", "b"))
    other = GaussianProcess.fit(turned)
    np.testing.assert_allclose(other.mean(points.aligned(("c", "a", "b"))), law.mean(points), rtol=1e-6)


def test_rows_left_out_in_closed_form_are_those_of_a_process_without_them(law: GaussianProcess) -> None:
    rows = observed(30)
    folds = np.arange(30) % 5
    means, deviations = law.left_out(rows, folds)
    for fold in range(5):
        inside = folds == fold
        held = []
        for process in law.processes:
            from mixing.laws.gaussian_process_posterior import Process

            z = process.warp.z(rows.values[~inside, len(held)])
            held.append(Process.of(process.constants, process.warp, law.features(rows.points.rows(~inside)), z))
        alone = GaussianProcess(domains=law.domains, metrics=law.metrics, features=law.features, processes=tuple(held))
        np.testing.assert_allclose(means[inside], alone.mean(rows.points.rows(inside)), rtol=1e-6)
        np.testing.assert_allclose(deviations[inside], alone.deviation(rows.points.rows(inside)), rtol=1e-5)


def test_runs_imagined_keep_the_mean_and_shrink_what_is_not_known(law: GaussianProcess, points: Points) -> None:
    more = law.conditioned(points)
    np.testing.assert_allclose(more.mean(points), law.mean(points), rtol=1e-6)
    assert (more.deviation(points, noise=False) < law.deviation(points, noise=False)).all()


def test_the_posterior_is_the_mean_and_deviation_together(law: GaussianProcess, points: Points) -> None:
    means, covariance = law.posterior(points)
    np.testing.assert_allclose(means, law.mean(points))
    told = np.sqrt(np.einsum("kii->ik", covariance))
    np.testing.assert_allclose(told, law.deviation(points, noise=False), rtol=1e-5)
    assert np.linalg.eigvalsh(covariance[0]).min() > -1e-10


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(observed(1), id="one run"),
        pytest.param(observed(2), id="fewer runs than domains"),
        pytest.param(observed(6).rows([0, 0, 0, 1, 2, 3]), id="runs made twice"),
        pytest.param(
            Observations.of(Points.of(DOMAINS, observed(8).weights), ("one", "two"), np.full((8, 2), 3.0)),
            id="constant",
        ),
        pytest.param(
            Observations.of(Points.of(("a",), np.ones((4, 1))), ("one", "two"), np.ones((4, 2))), id="one domain"
        ),
        pytest.param(
            Observations.of(Points.of(DOMAINS, observed(8).weights), ("one", "two"), 1e-9 * observed(8).values),
            id="tiny",
        ),
        pytest.param(
            Observations.of(Points.of(DOMAINS, observed(8).weights), ("one", "two"), 1e9 * observed(8).values),
            id="huge",
        ),
    ],
)
def test_few_and_odd_runs_give_sober_numbers(rows: Observations) -> None:
    law = GaussianProcess.fit(rows)
    at = rows.points.at(np.full((1, len(rows.domains)), 1 / len(rows.domains)))
    spread = np.ptp(rows.values, axis=0) + np.abs(rows.values).max()
    assert (np.abs(law.mean(at)[0] - rows.values.mean(axis=0)) <= spread).all()
    assert np.isfinite(law.deviation(at)).all()
    assert np.isfinite(law.gradient(at)).all()


def test_metrics_with_gaps_are_fitted_on_the_rest_and_one_without_a_value_is_named() -> None:
    rows = observed(12)
    rows.values[::3, 0] = np.nan
    law = GaussianProcess.fit(rows)
    assert np.isfinite(law.mean(rows.points)).all()
    rows.values[:, 1] = np.nan
    with pytest.raises(MixingError, match="two has 0 values"):
        GaussianProcess.fit(rows)


def test_a_law_of_scales_asks_for_them() -> None:
    with pytest.raises(MixingError, match="parameters of row 1"):
        ScaledGaussianProcess.fit(observed(8))


def test_a_law_of_scales_carries_over_between_them() -> None:
    rng = np.random.default_rng(2)
    weights = rng.dirichlet(np.ones(3), 60)
    size = np.where(np.arange(60) % 3 > 0, 1e6, 1e8)
    told = values(weights) * (size / 1e6)[:, None] ** -0.05
    there = Points.of(DOMAINS, weights, parameters=size, tokens=20 * size)
    law = ScaledGaussianProcess.fit(Observations.of(there, ("one", "two"), told))
    fresh = rng.dirichlet(np.ones(3), 20)
    at = Points.of(DOMAINS, fresh, parameters=1e8, tokens=2e9)
    expected = values(fresh) * 100**-0.05
    assert np.abs(law.mean(at) - expected).mean() < 0.25 * expected.std(axis=0).mean()


@pytest.mark.parametrize(("runs", "rank", "error"), [(64, 0.978, 0.098), (128, 0.986, 0.070)])
def test_regmixs_runs_are_told_as_well_as_the_probe_told_them(
    shared: Path, runs: int, rank: float, error: float
) -> None:
    folder = shared / "mixing" / "regmix"
    train, test = (
        read_observations(str(folder / f"{name}_mixture_1m.csv"), str(folder / f"{name}_pile_loss_1m.csv"))
        for name in ("train", "test")
    )
    ranks, errors = [], []
    for seed in range(3):
        rows = np.random.default_rng(seed).choice(len(train), runs, replace=False)
        told = GaussianProcess.fit(train.rows(rows)).mean(test.points)
        ranks.append(np.mean([correlation(told[:, k], test.values[:, k]) for k in range(len(test.metrics))]))
        errors.append(np.abs(told - test.values).mean())
    assert np.mean(ranks) >= rank
    assert np.mean(errors) <= error


def correlation(one: Any, other: Any) -> float:
    ranks = (np.argsort(np.argsort(side)) for side in (one, other))
    return float(np.corrcoef(*ranks)[0, 1])
