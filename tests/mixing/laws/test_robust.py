"""The robust core: noise, prior strength, outliers and starts, on curves with known answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixing.laws.robust import FIXED, Prior, estimate

DESIGN = np.random.default_rng(0).normal(size=(200, 3))
THETA = np.array([0.5, -0.3, 0.2])


def linear(theta: Any) -> tuple[Any, Any]:
    return theta @ DESIGN.T, np.broadcast_to(DESIGN, (len(theta), *DESIGN.shape)).copy()


def prior(variance: float = 1e6, counts: float = FIXED) -> Prior:
    return Prior(
        mean=np.zeros(3), group=np.zeros(3, np.int64), variance=np.array([variance]), counts=np.array([counts])
    )


def everything(problems: int = 1) -> Any:
    return np.ones((problems, 200), np.bool_)


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.5])
def test_noise_and_deviations_are_those_of_least_squares(sigma: float) -> None:
    targets = (DESIGN @ THETA + sigma * np.random.default_rng(1).normal(size=200))[None]
    found = estimate(linear, targets, everything(), np.zeros((1, 3)), prior())
    assert found.noise[0] == pytest.approx(sigma, rel=0.15)
    least = np.linalg.lstsq(DESIGN, targets[0], rcond=None)[0]
    np.testing.assert_allclose(found.theta[0], least, atol=0.03 * sigma / 0.1 + 1e-4)
    spread = sigma * np.sqrt(np.diag(np.linalg.inv(DESIGN.T @ DESIGN)))
    # Huber's rows count for less: the posterior is wider, by about a fifth.
    assert (np.sqrt(np.diag(found.covariance[0])) / spread < 1.6).all()
    assert (np.sqrt(np.diag(found.covariance[0])) / spread > 0.8).all()


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_wild_rows_are_borne(share: float) -> None:
    generator = np.random.default_rng(2)
    targets = DESIGN @ THETA + 0.05 * generator.normal(size=200)
    targets[generator.permutation(200)[: int(200 * share)]] += 100
    found = estimate(linear, targets[None], everything(), np.zeros((1, 3)), prior())
    np.testing.assert_allclose(found.theta[0], THETA, atol=0.05)


def test_rows_not_used_change_nothing() -> None:
    targets = np.tile(DESIGN @ THETA + 0.05 * np.random.default_rng(3).normal(size=200), (2, 1))
    used = everything(2)
    used[:, ::2] = False
    targets[1, ::2] = 7
    found = estimate(linear, targets, used, np.zeros((1, 3)), prior())
    np.testing.assert_array_equal(found.theta[0], found.theta[1])


@pytest.mark.parametrize(("scale", "narrow"), [(0.0, True), (1.0, False)])
def test_the_data_set_the_strength_of_a_prior_that_is_free(scale: float, narrow: bool) -> None:
    targets = (scale * DESIGN @ (4 * THETA) + 0.3 * np.random.default_rng(4).normal(size=200))[None]
    free = estimate(linear, targets, everything(), np.zeros((1, 3)), prior(0.1, 0.1))
    held = estimate(linear, targets, everything(), np.zeros((1, 3)), prior(0.1, FIXED))
    assert (np.abs(free.theta).sum() < np.abs(held.theta).sum()) == narrow


def test_problems_of_a_stack_do_not_touch_each_other() -> None:
    targets = np.random.default_rng(5).normal(size=(40, 200))
    together = estimate(linear, targets, everything(40), np.zeros((1, 3)), prior(1, 5))
    alone = [estimate(linear, row[None], everything(), np.zeros((1, 3)), prior(1, 5)).theta[0] for row in targets]
    np.testing.assert_allclose(together.theta, alone, rtol=1e-9, atol=1e-12)


def test_the_better_of_two_starts_is_taken() -> None:
    # (theta^2 - 1)^2 bends towards -1 or 1; the slope term tells them apart.
    def bent(theta: Any) -> tuple[Any, Any]:
        rows = DESIGN[:, 0]
        return theta**3 * rows - theta * rows, ((3 * theta**2 - 1) * rows)[:, :, None]

    targets = ((1.4**3 - 1.4) * DESIGN[:, 0] + 0.01 * np.random.default_rng(6).normal(size=200))[None]
    only = Prior(mean=np.zeros(1), group=np.zeros(1, np.int64), variance=np.array([1e4]), counts=np.array([FIXED]))
    found = estimate(bent, targets, everything(), np.array([[-0.6], [0.9]]), only)
    assert found.theta[0, 0] == pytest.approx(1.4, abs=0.01)
