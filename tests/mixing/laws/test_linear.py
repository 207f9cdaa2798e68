"""Linear law: exact where it holds, a ridge where runs are too few."""

from __future__ import annotations

import numpy as np

from mixing.laws.linear import Linear
from mixing.observations.observations import Observations
from mixing.observations.points import Points

NAMES = ("a", "b", "c")


def test_a_linear_world_is_found_exactly() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(3), 12)
    worth = np.array([2.0, 3.5, 7.0])
    law = Linear.fit(Observations.of(Points.of(NAMES, weights), ("loss",), weights @ worth))
    np.testing.assert_allclose(law.coefficients[0], worth, rtol=1e-9)
    assert law.told()["loss"]["t"]["c"] == np.float64(law.coefficients[0, 2])
    np.testing.assert_allclose(law.gradient(Points.of(NAMES, weights[:2]))[:, 0], [worth, worth])


def test_a_domain_never_seen_is_worth_the_mean_and_not_infinity() -> None:
    weights = np.array([[0.5, 0.5, 0], [0.2, 0.8, 0], [0.9, 0.1, 0], [0.4, 0.6, 0], [0.7, 0.3, 0]])
    law = Linear.fit(Observations.of(Points.of(NAMES, weights), ("loss",), weights @ [2.0, 4.0, 0.0]))
    assert abs(law.coefficients[0, 2] - (weights @ [2.0, 4.0, 0.0]).mean()) < 1e-9
    np.testing.assert_allclose(law.coefficients[0, :2], [2, 4], atol=0.1)


def test_repeated_runs_of_few_mixtures_are_few_runs() -> None:
    weights = np.repeat(np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), 5, axis=0)
    values = np.repeat([2.0, 3.0], 5)
    law = Linear.fit(Observations.of(Points.of(NAMES, weights), ("loss",), values))
    np.testing.assert_allclose(law.mean(Points.of(NAMES, weights))[:, 0], values, atol=0.05)
    assert np.abs(law.coefficients).max() < 10
