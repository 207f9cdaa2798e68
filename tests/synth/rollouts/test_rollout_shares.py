"""Shares of rollouts by how uncertain difficulty is: budget, variance, bias."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as trying
from hypothesis import strategies as st

from synth.errors import SynthError
from synth.rollouts import Rollouts, allocate, difficulty, population_of
from synth.rollouts.allocating import neyman
from synth.rollouts.design import PUBLISHED, design_of
from tests.synth.rollouts.laws import BUDGETS, POPULATIONS

PROMPTS = 100


@pytest.mark.parametrize(("budget", "pilot", "weight"), PUBLISHED)
def test_the_design_is_the_published_one_at_its_budgets_but_for_a_hair_at_8(
    budget: int, pilot: int, weight: float
) -> None:
    design = design_of(budget)
    assert (design.pilot, design.weight) == (pilot, pytest.approx(weight, abs=0.0091 if budget == 8 else 1e-12))


def test_between_and_beyond_the_published_budgets_pilot_and_weight_go_on_without_a_jump() -> None:
    designs = [design_of(budget) for budget in range(2, 400)]
    assert (designs[0].pilot, designs[0].weight) == (1, 0.5)
    assert all(0 < design.pilot < design.mean_rollouts and 0 < design.weight < 1 for design in designs)
    assert all(0 <= after.pilot - before.pilot <= 1 for before, after in itertools.pairwise(designs))
    assert [design_of(budget).pilot for budget in (4, 12, 24, 48, 128)] == [2, 5, 8, 13, 26]
    assert [design_of(budget).weight for budget in (2, 4, 6)] == [0.5, 0.5, 0.5]
    assert 0.351 > design_of(24).weight > 0.285
    assert design_of(16, 8).weight > design_of(16).weight
    with pytest.raises(ValueError, match="pilot: not below mean_rollouts"):
        design_of(8, 8)
    with pytest.raises(ValueError, match="mean_rollouts: below 2"):
        design_of(1)


@trying(deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from([0.0, 0.1, 0.25]), st.floats(0, 0.25)), min_size=1, max_size=6),
    st.integers(0, 12), st.integers(2, 20),
)  # fmt: skip
def test_whole_shares_keep_the_budget_and_no_others_have_less_variance(
    scores: list[float], more: int, most: int
) -> None:
    total = min(len(scores) + more, most * len(scores))
    shares = neyman(scores, total, most=most)
    assert shares.sum() == total
    assert shares.min() >= 1
    assert shares.max() <= most
    found = float(np.sum(np.array(scores) / shares))
    # The plain greedy rule, one at a time, which is exact for a convex sum.
    plain = np.ones(len(scores), np.int64)
    for _ in range(total - len(scores)):
        gain = np.where(plain < most, np.array(scores) / (plain * (plain + 1.0)), -1)
        plain[int(np.argmax(gain))] += 1
    assert found <= float(np.sum(np.array(scores) / plain)) * (1 + 1e-9) + 1e-15


def test_prompts_without_variance_share_evenly_and_equals_by_the_seed() -> None:
    assert sorted(neyman(np.zeros(4), 10)) == [2, 2, 3, 3]
    draws = {tuple(neyman(np.full(10, 0.2), 13, seed=seed)) for seed in range(20)}
    assert len(draws) > 5
    assert all(sum(one) == 13 and set(one) == {1, 2} for one in draws)
    assert tuple(neyman(np.full(10, 0.2), 13, seed=3)) == tuple(neyman(np.full(10, 0.2), 13, seed=3))
    assert len(neyman([], 0)) == 0
    for wrong in ([0.1, math.nan], [0.1, -0.1], [0.1, 0.1, 0.1]):
        with pytest.raises(ValueError, match="scores, total"):
            neyman(wrong, 2)


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_variance_is_never_above_that_of_equal_shares_and_nothing_is_biased(name: str, budget: int) -> None:
    draw = np.random.default_rng([budget, len(name)])
    shared = Rollouts(allocation="hbn", mean_rollouts=budget, cap=100 * budget)
    ratios, errors = [], []
    for at in range(200):
        chances = POPULATIONS[name](draw, PROMPTS)
        variances = chances * (1 - chances)
        pilot = draw.binomial(design_of(budget).pilot, chances)
        given = allocate(shared, [(design_of(budget).pilot, int(right)) for right in pilot], at)
        design = given.design
        rest = given.rollouts - design.pilot
        assert given.rollouts.sum() == budget * PROMPTS
        mass = (variances / rest).sum() / variances.sum()
        ratios.append(budget * (design.weight**2 / design.pilot + (1 - design.weight) ** 2 * mass))
        found = difficulty((np.full(PROMPTS, design.pilot), pilot), (rest, draw.binomial(rest, chances)), design.weight)
        errors.append((found.mean - chances.mean(), found.standard_error))
    off, told = np.array(errors).T
    assert np.mean(ratios) <= 1.0
    assert abs(off.mean()) < 3 * off.std(ddof=1) / math.sqrt(len(off))
    # The errors that are told are the errors that are made: chi squared of 200, a share of it within 3 deviations.
    assert 0.7 < np.mean((off / told) ** 2) < 1.3


def test_the_plain_share_of_right_ones_is_biased_where_the_estimate_is_not() -> None:
    draw = np.random.default_rng(3)
    chances = POPULATIONS["hard"](draw, PROMPTS)
    off = []
    for at in range(300):
        pilot = draw.binomial(4, chances)
        given = allocate(Rollouts(allocation="hbn", mean_rollouts=8), [(4, int(right)) for right in pilot], at)
        right = pilot + draw.binomial(given.rollouts - 4, chances)
        off.append(float((right / given.rollouts - chances).mean()))
    assert np.mean(off) < -5 * np.std(off) / math.sqrt(len(off))


def test_pilots_that_failed_get_shares_too_and_are_estimated_from_what_there_is() -> None:
    pilots = [(0, 0), (4, 0), (4, 2), (4, 4), (2, 1)] * 20
    given = allocate(Rollouts(allocation="hbn", mean_rollouts=8), pilots, 1)
    assert given.rollouts.sum() == 800
    assert given.rollouts.min() >= 5
    assert given.rollouts.max() <= 16
    found = difficulty(([0, 4, 4, 0], [0, 1, 4, 0]), ([4, 0, 4, 0], [1, 0, 2, 0]), 0.4)
    assert np.allclose(found.shares[:3], [0.25, 0.25, 0.4 + 0.6 * 0.5])
    assert math.isnan(found.shares[3])
    assert found.prompts == 3
    empty = difficulty(([0], [0]), ([0], [0]), 0.4)
    assert (empty.prompts, empty.standard_error) == (0, math.inf)
    assert len(allocate(Rollouts(allocation="hbn", mean_rollouts=8), [], 1).rollouts) == 0


def test_the_population_is_found_and_the_bound_on_the_gain_with_it() -> None:
    draw = np.random.default_rng(5)
    chances = draw.beta(0.15, 0.15, 5000)
    people = population_of(np.full(5000, 8), draw.binomial(8, chances))
    assert people.prior == pytest.approx((0.15, 0.15), abs=0.05)
    variance = chances * (1 - chances)
    assert people.gain_bound == pytest.approx(1 - np.sqrt(variance).mean() ** 2 / variance.mean(), abs=0.08)
    assert people.share(8, [0, 4, 8])[1] == pytest.approx(0.5, abs=0.02)
    assert people.variance(8, 4) > 10 * people.variance(8, 0)
    assert population_of([0], [0]).share(0, 0) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="no more right than trials"):
        population_of([3], [4])


def test_shares_need_the_setting_and_take_milliseconds_for_100_000_prompts() -> None:
    with pytest.raises(SynthError, match=r"^rollouts\.allocation: is each; set allocation: hbn"):
        allocate(Rollouts(), [(4, 2)], 1)
    pilots = [(6, int(right)) for right in np.random.default_rng(1).integers(0, 7, 100_000)]
    start = time.thread_time()
    given = allocate(Rollouts(allocation="hbn", mean_rollouts=16, cap=64), pilots, 1)
    assert time.thread_time() - start < 2.0
    assert given.rollouts.sum() == 1_600_000
