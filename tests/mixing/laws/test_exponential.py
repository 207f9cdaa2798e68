"""Exponential law: with a prior and as published."""

from __future__ import annotations

import numpy as np

from mixing.laws.exponential import Exponential, ExponentialPublished
from mixing.observations.observations import Observations
from mixing.observations.points import Points

NAMES = ("a", "b", "c")
T = np.array([-2.0, 0.5, 1.0])


def runs(count: int, domains: int = 3) -> Observations:
    weights = np.random.default_rng(0).dirichlet(np.ones(domains), count)
    points = Points.of(NAMES[:domains] if domains <= 3 else tuple("abcdefghijkl"), weights)
    return Observations.of(points, ("loss",), 1.5 + np.exp(weights @ np.resize(T, domains)))


def test_both_fits_find_an_exponential_world() -> None:
    observations, fresh = runs(40), Points.of(NAMES, np.random.default_rng(1).dirichlet(np.ones(3), 30))
    truth = 1.5 + np.exp(fresh.weights @ T)
    for law in (Exponential.fit(observations), ExponentialPublished.fit(observations)):
        np.testing.assert_allclose(law.mean(fresh)[:, 0], truth, rtol=5e-3)


def test_the_published_fit_is_the_same_each_time_and_tells_no_deviation() -> None:
    observations = runs(30)
    one, other = (ExponentialPublished.fit(observations, seed=2) for _ in range(2))
    np.testing.assert_array_equal(one.theta, other.theta)
    assert one.deviation(observations.points) is None
    means, deviations = one.held_out(observations, np.arange(30) % 3)
    assert np.isfinite(means).all()
    assert deviations is None


def test_fewer_runs_than_domains_leave_the_prior_in_charge() -> None:
    observations = runs(6, domains=12)
    law = Exponential.fit(observations)
    means = law.mean(observations.points.at(np.random.default_rng(1).dirichlet(np.ones(12), 50)))
    assert np.abs(means - observations.values.mean()).max() < 5 * np.ptp(observations.values)
    assert np.isfinite(law.mean(observations.points.at(np.eye(12)))).all()
