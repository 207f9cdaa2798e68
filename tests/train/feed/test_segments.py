"""Changes, limits and mistakes: what a plan refuses, and the stated rule where epochs end."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.train.feed.made_index import MadeIndex, all_batches, same, times
from train.feed.plan import Plan, PlanError

INDEX = MadeIndex({"code": [[10] * 40], "prose": [[7] * 50, [], [0, 30] * 20], "tiny": [[3, 5]]})
SETTINGS: dict[str, Any] = {
    "weights": {"code": 5, "prose": 3, "tiny": 2},
    "sequence_tokens": 8,
    "batch_sequences": 4,
    "seed": 1,
}


def plan(**more: Any) -> Plan:
    return Plan.new(INDEX, **{**SETTINGS, **more})


def order_of(made: Plan) -> np.ndarray[Any, Any]:
    """The domain of each sequence of a plan that ends."""
    assert made.steps is not None
    return made._stages[0].mixture.domains(0, made.first_sequence(made.steps))


@settings(deadline=None, max_examples=60)
@given(
    some.lists(some.integers(0, 9), min_size=3, max_size=3).filter(any),
    some.lists(some.sampled_from([0.1, 0.5, 1, 2, 7.5]), min_size=3, max_size=3),
    some.sampled_from(["concat", "best_fit"]),
)
def test_what_a_domain_that_ended_leaves_goes_to_the_others_by_their_weights(
    weights: list[int], limits: list[float], packing: str
) -> None:
    names = ("code", "prose", "tiny")
    made = plan(
        weights=dict(zip(names, weights, strict=True)),
        max_epochs=dict(zip(names, limits, strict=True)),
        packing=packing,
        window_sequences=5,
    )
    assert made.steps is not None
    order = order_of(made)
    ends = {number: int(np.flatnonzero(order == number)[-1]) + 1 for number in set(order.tolist())}
    edges = sorted({0, *ends.values()})
    assert edges[-1] == len(order)
    for start, stop in itertools.pairwise(edges):
        active = [number for number in ends if ends[number] >= stop]
        whole = sum(weights[number] for number in active)
        for number in active:
            count = np.cumsum(order[start:stop] == number)
            position = np.arange(1, stop - start + 1)
            assert (np.abs(count * whole - weights[number] * position) < whole).all()
    shares = made.shares(0, made.steps)
    assert sum(shares.values()) == pytest.approx(1 if made.steps else 0)


def test_a_limit_ends_a_domain_to_the_token() -> None:
    made = plan(max_epochs={"code": 1.5, "prose": 2, "tiny": 0.7})
    assert made.consumed(made.steps or 0) == {"code": 600, "prose": 1900, "tiny": 5}


def test_without_a_limit_for_all_a_plan_has_no_end() -> None:
    assert plan().steps is None
    assert plan(max_epochs={"code": 1, "tiny": 1}).steps is None
    assert plan(max_epochs={"code": 1, "tiny": 1}, weights={"code": 1, "prose": 0, "tiny": 1}).steps is not None


def test_the_last_step_has_the_rows_that_are_left() -> None:
    made = plan(max_epochs=1, weights={"code": 1, "prose": 0, "tiny": 0}, batch_sequences=7)
    assert made.steps == 8  # 50 sequences of 8
    assert [batch.rows for batch in all_batches(made)] == [7] * 7 + [1]
    assert [made.batch(7, rank, 2).rows for rank in (0, 1)] == [0, 1]


def test_a_domain_without_weight_never_comes() -> None:
    made = plan(weights={"code": 1, "prose": 0, "tiny": 1}, max_epochs=1)
    assert set(order_of(made).tolist()) == {0, 2}


def test_an_ended_domain_goes_on_where_its_limit_is_raised() -> None:
    made = plan(max_epochs=1)
    assert made.steps is not None
    more = made.change(made.steps, max_epochs=2)
    held, _ = times(INDEX, all_batches(more))
    assert set(held.tolist()) == {2}
    for step in range(made.steps):
        assert same(made.batch(step), more.batch(step))


def test_a_lowered_limit_within_a_window_is_kept_to_the_token() -> None:
    made = plan(packing="best_fit", window_sequences=512, weights={"code": 1, "prose": 0, "tiny": 0})
    lowered = made.change(3, max_epochs=0.5)
    assert lowered.consumed(lowered.steps or 0)["code"] == 200
    held, _ = times(INDEX, all_batches(lowered))
    assert held.sum() == 200
    assert held.max() == 1
    raised = lowered.change(lowered.steps or 0, max_epochs=1)
    held, _ = times(INDEX, all_batches(raised))
    assert set(held[:400].tolist()) == {1}
    raised = lowered.change(4, max_epochs=1)  # while there are still rows of what the lower limit allowed
    held, _ = times(INDEX, all_batches(raised))
    assert set(held[:400].tolist()) == {1}
    stopped = made.change(5, max_epochs=0.1)
    assert stopped.steps == 5


def test_what_a_carried_window_drops_is_counted() -> None:
    index = MadeIndex({"a": [[6] * 40]})  # one fits a row of 10 or 11 slots, two do not
    made = Plan.new(
        index,
        sequence_tokens=9,
        batch_sequences=4,
        seed=1,
        packing="best_fit",
        window_sequences=8,
        slack=0,
        overflow="drop",
        max_epochs=1,
    ).change(1, sequence_tokens=10, batch_sequences=3)
    first, rest = made.account(0, 1)["a"], made.account(1, made.steps or 0)["a"]
    carried = made.account(1, 2)["a"]
    assert (carried.tokens, carried.dropped) == (24, 6)
    assert (first + rest).tokens == made.consumed(made.steps or 0)["a"] == 240


def test_hundreds_of_changes_cost_no_depth() -> None:
    made = plan(packing="best_fit", window_sequences=4)
    for step in range(400):
        made = made.change(step, sequence_tokens=8 + step % 3)
    assert same(made.batch(399), Plan.of(INDEX, made.state()).batch(399))


def test_the_order_goes_on_where_only_the_batch_changes_and_windows_where_weights_do() -> None:
    made = plan(packing="best_fit", window_sequences=4)
    other = made.change(5, batch_sequences=9)
    assert same(made.sequences(0, 100), other.sequences(0, 100))
    weighted = made.change(5, weights={"code": 1, "prose": 1, "tiny": 1})
    after = weighted.sequences(20, 30)
    assert [len(set(after.row[after.domain == number].tolist())) for number in range(3)] == [10, 10, 10]
    mine = [spans.slot.tolist() for spans in (made.sequences(0, 20), weighted.sequences(0, 20))]
    assert mine[0] == mine[1]


def test_natural_weights_are_those_of_the_tokens() -> None:
    assert plan(weights=None).segment(0).weights == {"code": 200, "prose": 475, "tiny": 4}


def test_held_out_documents_are_the_last_ones_from_the_cut_on() -> None:
    made = plan(held_out=0.1)
    assert made.tokens == {"code": 360, "prose": 860, "tiny": 3}


def test_sequences_of_two_lengths_are_asked_for_apart() -> None:
    made = plan().change(2, sequence_tokens=4)
    assert made.sequences(0, 8).sequence_tokens == 8
    assert made.sequences(8, 8).sequence_tokens == 4
    with pytest.raises(PlanError, match="sequence_tokens changes between 7 and 9; ask for each part"):
        made.sequences(7, 2)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"weights": {"code": 1, "prose": 1}}, "weights: none for tiny; give each domain one, 0 to leave it out"),
        (
            {"weights": {"code": 1, "prose": 1, "tiny": 1, "web": 1}},
            "weights: no tokens of a domain named 'web'; the domains are code, prose, tiny",
        ),
        ({"weights": {"code": 0, "prose": 0, "tiny": 0}}, "weights: all are 0; at least one domain needs more"),
        (
            {"weights": {"code": -1, "prose": 0, "tiny": 0}},
            "weights: code has -1; a weight is a number, 0 or more",
        ),
        ({"sequence_tokens": 0}, "sequence_tokens: 0; a whole number from 1 to 16777216"),
        ({"batch_sequences": 2.5}, "batch_sequences: 2.5; a whole number from 1 to 16777216"),
        ({"packing": "first_fit"}, "packing: 'first_fit' is unknown; it is one of concat, best_fit"),
        ({"overflow": "keep"}, "overflow: 'keep' is unknown; it is one of split, crop, drop"),
        ({"slack": -0.1}, "slack: -0.1 is no share; it is between 0 and 1, 0.005 for half a percent"),
        ({"max_epochs": 0}, "max_epochs: code has 0; more than 0, or leave it out for no limit"),
        ({"max_epochs": {"code": float("nan")}}, "max_epochs: code has nan; more than 0, or leave it out for no limit"),
        (
            {"max_epochs": {"web": 1}},
            "max_epochs: no tokens of a domain named 'web'; the domains are code, prose, tiny",
        ),
    ],
)
def test_settings_that_cannot_be_are_told_at_once_and_at_a_change(change: dict[str, Any], told: str) -> None:
    for work in (lambda: plan(**change), lambda: plan().change(3, **change)):
        with pytest.raises(PlanError) as error:
            work()
        assert str(error.value) == told


def test_other_mistakes_are_told() -> None:
    ends = plan(max_epochs=1)
    steps = ends.steps or 0
    mistakes: list[tuple[Any, str]] = [
        (lambda: plan(held_out=1), "held_out: 1 is no share to hold out; it is at least 0 and below 1"),
        (lambda: plan(block_tokens=0), "block_tokens: 0; a whole number from 1 to 2^40"),
        (lambda: plan().change(3, seed=2), "seed: cannot change; what can is weights, batch_sequences, "),
        (lambda: plan().change(3).change(2), "at_step: 2 is before step 3, from which on the plan is settled"),
        (lambda: ends.change(steps + 1), f"at_step: {steps + 1} is past the plan's end at step {steps}; "),
        (lambda: ends.batch(steps), f"step: {steps} is not in the plan, which has steps 0 to {steps - 1}"),
        (lambda: plan().batch(-1), "step: -1 is not in the plan, which has steps 0 and on"),
        (lambda: plan().batch(0, 2, 2), "rank: 2 of 2; it is between 0 and world_size - 1"),
        (lambda: plan().positions(9, 0, 1, until_step=1), "shard: 9 has no tokens in the plan"),
        (lambda: Plan.of(INDEX, {"format": "x"}), "plan: format 'x', where 'gristmill-plan-1' can be read"),
        (
            lambda: Plan.of(INDEX, {key: value for key, value in plan().state().items() if key != "segments"}),
            "plan: not a whole state ('segments'); give one that state() made",
        ),
        (
            lambda: Plan.of(INDEX, plan().state() | {"shards": "other"}),
            "plan: made for the shards with digest other, not made; give the tokens it was made for",
        ),
    ]
    for work, told in mistakes:
        with pytest.raises(PlanError) as error:
            work()
        assert str(error.value).startswith(told)


@settings(deadline=None, max_examples=50)
@given(some.integers(1, 60), some.sampled_from([0.0, 0.1, 0.3, 1 / 3, 0.999]))
def test_the_cut_is_the_end_of_the_first_document_that_reaches_it_but_not_of_the_last(
    documents: int, share: float
) -> None:
    random = np.random.default_rng(documents)
    shards = [random.integers(0, 20, documents).tolist() for _ in range(3)]
    shards[1][0] += 1
    index = MadeIndex({"a": shards})
    made = Plan.new(index, sequence_tokens=4, batch_sequences=1, seed=1, held_out=share)
    ends = np.unique(np.cumsum([length for one in shards for length in one if length])).tolist()
    wanted = (1 - Fraction(str(share))) * ends[-1]
    cut = min(end for end in ends if end >= wanted)
    assert made.tokens["a"] == (ends[-2] if share and cut == ends[-1] and len(ends) > 1 else cut)


@pytest.mark.parametrize(
    ("shards", "share", "tokens"),
    [
        ([[5, 95]], 0.01, 5),  # the last document is most of the domain
        ([[95, 5]], 0.01, 95),
        ([[95, 5, 0, 0]], 0.01, 95),  # empty documents are none to hold out
        ([[0, 100, 0]], 0.5, 100),
        ([[90], [10], []], 1e-12, 90),  # in another shard
        ([[100]], 0.5, 100),
        ([[95, 5]], 0, 100),
    ],
)
def test_a_document_is_held_out_wherever_there_are_two(shards: list[list[int]], share: float, tokens: int) -> None:
    made = Plan.new(MadeIndex({"a": shards}), sequence_tokens=4, batch_sequences=1, seed=1, held_out=share)
    assert made.tokens["a"] == tokens
