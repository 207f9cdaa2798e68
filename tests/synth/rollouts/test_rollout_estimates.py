"""pass@k and its kin, intervals, two teachers compared, and what an accepted sample costs."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from synth.errors import SynthError
from synth.rollouts import (
    Rollout,
    Rollouts,
    Spent,
    compare,
    costs,
    first_counts,
    kept_curve,
    majority,
    marginal_yield,
    pass_all,
    pass_at,
    pass_curve,
    sharpening_tax,
)
from synth.rollouts.intervals import bootstrap, credible, wilson
from synth.rollouts.passes import difference, headroom, sharpness
from synth.verdicts import Outcome
from tests.synth.rollouts.laws import POPULATIONS, rolled_out

Histories = dict[str, list[Rollout]]


@pytest.mark.parametrize("right", range(6))
@pytest.mark.parametrize("k", range(1, 6))
def test_pass_at_k_and_all_k_are_shares_of_all_choices_of_k(right: int, k: int) -> None:
    drawn = [sum(one) for one in combinations([1] * right + [0] * (5 - right), k)]
    assert pass_at(5, right, k) == pytest.approx(np.mean([found > 0 for found in drawn]))
    assert pass_all(5, right, k) == pytest.approx(np.mean([found == k for found in drawn]))


def test_fewer_rollouts_than_k_give_no_figure() -> None:
    assert np.isnan(pass_at([3, 4, 0], [3, 0, 0], 4)).tolist() == [True, False, True]
    assert np.isnan(pass_all([3, 4], [3, 4], 4)).tolist() == [True, False]
    assert pass_curve([2], [1], 4)[0, :2].tolist() == [0.5, 1.0]


def test_pass_at_k_is_unbiased_over_what_was_fixed_and_not_over_what_stopped() -> None:
    chances = POPULATIONS["uniform"](np.random.default_rng(1), 1500)
    histories = rolled_out(Rollouts(accepted=1, wave=2), chances, 1)
    trials, right = first_counts(histories, 2)
    assert pass_at(trials, right, 2).mean() == pytest.approx((1 - (1 - chances) ** 2).mean(), abs=0.03)
    assert pass_at(trials, right, 1).mean() == pytest.approx(chances.mean(), abs=0.03)
    trials, right = first_counts(histories, 16)
    assert (right / trials).mean() > chances.mean() + 0.03


def test_headroom_is_what_more_samples_mend() -> None:
    assert headroom([0.2, 0.5, 0.6]) == pytest.approx(0.4 + 0.1)
    assert sharpness([0.2, 0.5, 0.6]) == pytest.approx(0.5 / (2 * 0.8))
    assert sharpness([1.0, 1.0]) == 0
    assert sharpness([0.5, 0.5, 0.5]) == 0


def test_the_tax_of_kept_data_that_are_all_right_is_the_teachers_whole_headroom() -> None:
    draw = np.random.default_rng(2)
    right = draw.binomial(16, draw.random(300))
    kept = np.minimum(right, 4)
    before, after, tax = sharpening_tax(pass_curve(np.full(300, 16), right, 8), kept_curve(kept, kept, 8), seed=1)
    assert after.value == 0
    assert tax.value == pytest.approx(before.value)
    assert tax.low > 0
    same = sharpening_tax(pass_curve(np.full(300, 16), right, 8), pass_curve(np.full(300, 16), right, 8))
    assert (same[2].low, same[2].value, same[2].high) == (0, 0, 0)
    with pytest.raises(ValueError, match="curves of the same prompts"):
        sharpening_tax(pass_curve([4], [1], 4), pass_curve([4], [1], 3))


def rollout(right: bool | None, answer: str = "", **more: float) -> Rollout:
    outcome = Outcome.ERROR if right is None else Outcome.RIGHT if right else Outcome.WRONG
    return Rollout(outcome=outcome, answer=answer, **more)  # type: ignore[arg-type]


def test_the_majority_is_of_judged_answers_and_ties_are_shared() -> None:
    assert majority([rollout(True, "4"), rollout(True, "4"), rollout(False, "5")]) == ("4", 2 / 3, 1)
    assert majority([rollout(True, "4"), rollout(False, "5")]) == ("4", 0.5, 0.5)
    assert majority([rollout(False, "5"), rollout(False, "5"), rollout(True, "4")]) == ("5", 2 / 3, 0)
    assert majority([rollout(None, "4"), rollout(True)]) is None
    assert difference([rollout(True, "4"), rollout(True, "4"), rollout(False, "5")]) == pytest.approx(2 / 3)
    assert difference([rollout(True, "4")]) is None


@pytest.mark.parametrize(("right", "trials"), [(0, 10), (3, 10), (10, 10), (1, 1), (500, 1000)])
def test_intervals_of_a_share_hold_it_and_are_within_0_and_1(right: int, trials: int) -> None:
    for found in (wilson(right, trials), credible(right, trials)):
        assert 0 <= found.low <= found.value <= found.high <= 1
    assert wilson(right, trials).value == right / trials
    assert wilson(0, 10).high == pytest.approx(0.2775, abs=1e-4)
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0, 1)


def test_intervals_cover_as_often_as_they_say() -> None:
    draw = np.random.default_rng(4)
    for share in (0.05, 0.3, 0.5):
        told = [wilson(int(right), 40) for right in draw.binomial(40, share, 1000)]
        assert 0.92 < np.mean([one.low <= share <= one.high for one in told]) < 0.99
    held = []
    for at in range(120):
        columns = draw.beta(2, 5, (60, 1))
        (found,) = bootstrap(columns, lambda means: means, replicates=300, seed=at)
        held.append(found.low <= 2 / 7 <= found.high)
    assert 0.88 < np.mean(held) <= 1


def test_the_bootstrap_repeats_with_its_seed_and_takes_no_missing_figure() -> None:
    columns = np.random.default_rng(1).random((50, 2))
    first, second = (bootstrap(columns, lambda means: means, seed=3) for _ in range(2))
    assert first == second
    assert first != bootstrap(columns, lambda means: means, seed=4)
    with pytest.raises(ValueError, match="finite numbers"):
        bootstrap(np.array([[math.nan]]), lambda means: means)
    assert math.isnan(bootstrap(np.zeros((0, 1)), lambda means: means)[0].value)


def solver(skill: float, prompts: int, seed: int, tokens: int) -> Histories:
    draw = np.random.default_rng(seed)
    made: Histories = {}
    for prompt in range(prompts):
        found = draw.random(8) < skill
        made[f"{prompt:03d}"] = [
            rollout(bool(one), "gold" if one else str(draw.integers(3)), tokens=tokens, cost=0.5) for one in found
        ]
    return made


def test_two_teachers_are_told_apart_on_the_prompts_both_have() -> None:
    better, worse = solver(0.8, 120, 1, 100), solver(0.4, 100, 2, 300)
    better["000"] = [rollout(None)] * 8
    found = compare(better, worse, k=4, seed=1)
    assert (found.prompts, found.left_out, found.k) == (99, 1, 4)
    for name in ("pass@1", "pass^4", "majority", "agreement", "right"):
        assert found.figures[name].difference.low > 0, name
    for name in ("different", "tokens", "tokens_per_right", "cost_per_right"):
        assert found.figures[name].difference.high < 0, name
    assert found.figures["pass@1"].first.value == pytest.approx(0.8, abs=0.05)
    assert found.figures["tokens_per_right"].first.value == pytest.approx(125, rel=0.05)
    assert found.figures["cost_per_right"].second.value == pytest.approx(1.25, rel=0.1)
    assert 0.3 < found.same.value < 1
    assert found == compare(better, worse, k=4, seed=1)
    assert compare(better, worse, k=2, rollouts=2).figures["right"].second.value == pytest.approx(0.8, abs=0.15)


def test_equal_teachers_are_not_told_apart_and_hopeless_ones_cost_without_end() -> None:
    found = compare(solver(0.5, 80, 1, 100), solver(0.5, 80, 3, 100), k=4)
    told = found.figures["pass@1"].difference
    assert told.low <= 0 <= told.high
    never = compare(solver(0.5, 80, 1, 100), solver(0.0, 80, 3, 100), k=4).figures["tokens_per_right"]
    assert never.second.value == math.inf


def test_teachers_without_common_judged_prompts_are_refused() -> None:
    with pytest.raises(SynthError, match="compare: 0 of 1 common prompts have 4 judged rollouts"):
        compare({"a": [rollout(None)] * 8}, {"a": [rollout(True)] * 8}, k=4)


def test_costs_are_by_source_teacher_and_temperature() -> None:
    rows = [
        Spent(source="s", teacher="t", temperature=0.96, tokens=100, cost=1, accepted=True),
        Spent(source="s", teacher="t", temperature=1.04, tokens=300, cost=2),
        Spent(source="s", teacher="u", temperature=1.3, tokens=50, cost=0.5),
    ]
    found = costs(rows)
    assert list(found) == [("s", "t", "1.0"), ("s", "u", "1.3")]
    first = found["s", "t", "1.0"]
    assert (first.rollouts, first.accepted, first.tokens_per_accepted, first.cost_per_accepted) == (2, 1, 400, 3)
    assert found["s", "u", "1.3"].tokens_per_accepted == math.inf
    assert costs(rows, by=("source",))[("s",)].tokens == 450
    assert first.acceptance.low < 0.5 < first.acceptance.high
    assert costs([]) == {}


def test_another_waves_yield_is_what_it_then_turns_out_to_be() -> None:
    chances = POPULATIONS["uniform"](np.random.default_rng(1), 1500)
    settings = Rollouts(cap=8)
    whole = rolled_out(Rollouts(accepted=None, cap=8), chances, 1)
    told = marginal_yield(settings, [one[:4] for one in whole])
    before, after = (np.array([sum(each.outcome is Outcome.RIGHT for each in one[:end]) for one in whole])
                     for end in (4, 8))  # fmt: skip
    useful = np.minimum(after, 4) - np.minimum(before, 4)
    assert told.accepted.sum() == pytest.approx(useful.sum(), rel=0.06)
    assert told.tokens.sum() == 400 * np.sum(before < 4)
    assert told.tokens_per_accepted == pytest.approx(told.tokens.sum() / told.accepted.sum())
    # Those that failed are dearest, and then those that lack one alone: a wave is a wave.
    price = [told.tokens[before == right][0] / told.accepted[before == right][0] for right in range(4)]
    assert price[0] > price[3] > price[1] > price[2]
    worth = told.worth(350)
    assert np.array_equal(worth, (before == 1) | (before == 2))
    assert not worth[before >= 4].any()
    assert marginal_yield(settings, whole).tokens_per_accepted == math.inf
    assert marginal_yield(settings, [[], [rollout(True, tokens=10)] * 4]).tokens.tolist() == [40, 0]
