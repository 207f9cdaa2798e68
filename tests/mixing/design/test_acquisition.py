"""Acquisitions are formulas of a belief: each against simulation, and what a batch makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from mixing.design.acquisition import batch, expected_improvement, knowledge_gradient, variance_removed
from mixing.design.belief import Belief
from mixing.observations.points import Floats


def belief_of(mean: Floats, covariance: Floats, noise: float = 0.1, seen: tuple[int, ...] = (0,)) -> Belief:
    count = len(mean)
    return Belief(
        mean=mean, covariance=covariance, noise=np.full(count, noise), cost=np.ones(count),
        target=np.ones(count, bool), even=np.ones(count, bool), seen=np.isin(np.arange(count), seen),
    )  # fmt: skip


def some_belief(count: int = 8, seed: int = 0, noise: float = 0.1) -> Belief:
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((count, count))
    return belief_of(rng.standard_normal(count), root @ root.T / count, noise, seen=(0, 1))


def test_knowledge_gradient_is_the_mean_over_simulated_measurements() -> None:
    belief = some_belief()
    draws = np.random.default_rng(1).standard_normal(400_000)
    told = knowledge_gradient(belief)
    for place in range(len(told)):
        moved = belief.mean[:, None] + belief.moves()[:, [place]] * draws
        # The chosen one's mean stays as it is on average: taken off draw by draw, which leaves less chance in it.
        gains = moved[int(np.argmin(belief.mean))] - moved.min(axis=0)
        assert told[place] == pytest.approx(gains.mean(), abs=4 * gains.std() / 632 + 1e-4)


def test_knowledge_gradient_is_exact_to_two_thousandths_for_two_rivals() -> None:
    # min of two normals with difference d: E = -sd phi(d/sd) + d Phi(-d/sd), here with d = 0.
    belief = belief_of(np.zeros(2), np.array([[1.0, 0.0], [0.0, 0.0]]), noise=0.0)
    assert knowledge_gradient(belief)[0] == pytest.approx(1 / np.sqrt(2 * np.pi), rel=2e-3)


def test_expected_improvement_is_the_mean_over_simulated_losses_without_noise() -> None:
    belief = some_belief(noise=1e-12)
    best = belief.mean[[0, 1]].min()
    draws = np.random.default_rng(1).standard_normal(400_000)
    for place, told in enumerate(expected_improvement(belief)):
        gains = np.maximum(best - belief.mean[place] - np.sqrt(belief.variance[place]) * draws, 0)
        # A place may stand for another that it tells of; its own improvement is the least it is worth.
        assert told >= gains.mean() - 6e-3


def test_variance_removed_is_what_conditioning_removes() -> None:
    belief = some_belief()
    told = variance_removed(belief)
    for place in range(len(told)):
        assert told[place] == pytest.approx(belief.variance.sum() - belief.measured(place).variance.sum())


def test_a_batch_does_not_measure_the_same_unknown_twice() -> None:
    covariance = np.kron(np.eye(3), np.ones((2, 2)) - 1e-6 * np.eye(2)[::-1])
    belief = belief_of(np.zeros(6), covariance, noise=1e-3)
    for acquisition in (variance_removed, knowledge_gradient):
        places, after = batch(belief, 3, acquisition)
        assert len({place // 2 for place in places}) == 3
        assert after.variance.max() < 0.01


def test_where_noise_dominates_the_best_run_is_measured_again() -> None:
    rng = np.random.default_rng(0)
    mean = np.r_[0.0, 0.001, rng.uniform(5, 6, 6)]
    belief = belief_of(mean, 0.01 * np.eye(8), noise=0.5, seen=(0, 1))
    places, _ = batch(belief, 4, knowledge_gradient)
    assert set(places) <= {0, 1}


def test_a_cheap_scale_that_tells_nearly_all_is_preferred_and_one_that_tells_nothing_is_not() -> None:
    for correlation, cheap in ((0.95, True), (0.05, False)):
        covariance = np.array([[1, correlation], [correlation, 1]]) * 0.5
        whole = np.kron(covariance, np.eye(4))
        belief = Belief(
            mean=np.zeros(8), covariance=whole, noise=np.full(8, 0.01), cost=np.repeat([10.0, 1.0], 4),
            target=np.arange(8) < 4, even=np.arange(8) < 4, seen=np.zeros(8, bool),
        )  # fmt: skip
        for acquisition in (variance_removed, knowledge_gradient, expected_improvement):
            assert (int(np.argmax(acquisition(belief))) >= 4) == cheap, (acquisition, correlation)


def test_measuring_several_at_one_time_is_measuring_them_one_after_the_other() -> None:
    belief = some_belief()
    after = belief
    for place in (2, 5, 2):
        after = after.measured(place)
    np.testing.assert_allclose(belief.covariance - belief.together(np.array([2, 5, 2])), after.covariance, atol=1e-9)
