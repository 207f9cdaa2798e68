"""The plan, held to plain counts: every token as often as it should be, in any part, at any time, after any change."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.train.feed.made_index import MadeIndex, all_batches, corpora, same, settings_of, times, tokens_of, whole_plan
from train.feed.plan import Plan

LIMITS = some.sampled_from([0.3, 0.5, 1, 1.5, 2, 2.25])
many = settings(deadline=None, max_examples=60)


def plan_of(index: MadeIndex, data: some.DataObject, **more: Any) -> Plan:
    chosen = data.draw(settings_of(index), label="settings")
    return Plan.new(index, **{**chosen, **more})


def limits_of(index: MadeIndex, data: some.DataObject) -> dict[str, float]:
    return {one.name: data.draw(LIMITS, label=one.name) for one in index.domains}


def expected_times(index: MadeIndex, plan: Plan, limits: dict[str, float]) -> list[tuple[int, int, int, int]]:
    """For each domain: its first and last token, those trained on, and how many tokens its epochs allow."""
    found = []
    for one in index.domains:
        first = int(index.number(one.shards[0], np.array(0)))
        tokens = plan.tokens[one.name]
        found.append((first, first + int(one.offsets[-1]), tokens, int(Fraction(str(limits[one.name])) * tokens)))
    return found


@many
@given(corpora, some.data())
def test_each_token_comes_as_often_as_its_epochs_say_and_what_is_held_out_never(
    index: MadeIndex, data: some.DataObject
) -> None:
    limits = limits_of(index, data)
    plan = plan_of(index, data, max_epochs=limits, overflow="split")
    held, target = times(index, [whole_plan(plan)])
    for (first, end, tokens, allowed), one in zip(expected_times(index, plan, limits), index.domains, strict=True):
        seen = held[first:end]
        assert seen.sum() == allowed, one.name
        assert not seen[tokens:].any()
        whole = allowed // tokens
        assert set(seen[:tokens].tolist()) <= {whole, whole + 1}
        assert target[first:end].sum() <= allowed


@many
@given(corpora, some.data())
def test_best_fit_makes_each_token_a_target_once_an_epoch_but_first_ones(
    index: MadeIndex, data: some.DataObject
) -> None:
    epochs = data.draw(some.integers(1, 2))
    plan = plan_of(index, data, max_epochs=epochs, overflow="split", packing="best_fit", held_out=0)
    _, target = times(index, [whole_plan(plan)])
    assert set(np.flatnonzero(target != epochs).tolist()) == index.firsts
    assert not target[sorted(index.firsts)].any()


@many
@given(corpora, some.data())
def test_concat_makes_each_token_a_target_once_an_epoch_but_first_ones_and_block_edges(
    index: MadeIndex, data: some.DataObject
) -> None:
    block, epochs = data.draw(some.sampled_from([5, 16, 1 << 16])), data.draw(some.integers(1, 2))
    plan = plan_of(index, data, max_epochs=epochs, packing="concat", held_out=0, block_tokens=block)
    _, target = times(index, [whole_plan(plan)])
    missing = set(np.flatnonzero(target != epochs).tolist()) - index.firsts
    begins = [int(index.number(one.shards[0], np.array(0))) for one in index.domains]
    edges = {
        begin + shift
        for begin, one in zip(begins, index.domains, strict=True)
        for shift in range(0, int(one.offsets[-1]), block)
    }
    assert missing <= edges
    assert (target <= epochs).all()


@many
@given(corpora, some.data())
def test_rows_hold_pieces_of_one_document_each_beside_each_other(index: MadeIndex, data: some.DataObject) -> None:
    plan = plan_of(index, data)
    for step in (0, 1, data.draw(some.integers(0, 10**6))):
        spans = plan.batch(step)
        length = spans.sequence_tokens
        for shard, document, start, count in zip(
            spans.shard.tolist(), spans.document.tolist(), spans.start.tolist(), spans.count.tolist(), strict=True
        ):
            ends = index.ends(shard)
            assert count > 0
            assert (ends[document - 1] if document else 0) <= start
            assert start + count <= ends[document]
        row, slot, token, repeats = tokens_of(index, spans)
        places = row * (length + 1) + slot
        assert (np.diff(places) > 0).all()  # in order, and none twice
        assert ((slot >= 0) & (slot <= length)).all()
        assert ((row >= 0) & (row < spans.rows)).all()
        # A piece that continues a document carries the token before it, which is counted elsewhere.
        first = np.cumsum(spans.count) - spans.count
        if plan.segment(0).packing == "best_fit":
            starts_document = np.isin(token[first], list(index.firsts))
            assert (repeats[first] | starts_document).all()


@many
@given(corpora, some.data(), some.integers(1, 16))
def test_the_union_over_ranks_is_the_plan(index: MadeIndex, data: some.DataObject, world: int) -> None:
    plan = plan_of(index, data, max_epochs=data.draw(some.sampled_from([None, 1, 2.5]), label="epochs"))
    last = 10**7 if plan.steps is None else plan.steps - 1
    if plan.steps == 0:
        return
    step = data.draw(some.sampled_from([0, last // 2, last]))
    whole, row = plan.batch(step), 0
    for rank in range(world):
        part = plan.batch(step, rank, world)
        mine = (whole.row >= row) & (whole.row < row + part.rows)
        assert part.first_sequence == whole.first_sequence + row
        for name in ("slot", "domain", "shard", "document", "start", "count", "repeats"):
            assert np.array_equal(getattr(part, name), getattr(whole, name)[mine]), name
        assert np.array_equal(part.row, whole.row[mine] - row)
        row += part.rows
    assert row == whole.rows


changes = some.fixed_dictionaries(
    {},
    optional={
        "batch_sequences": some.integers(1, 9),
        "sequence_tokens": some.sampled_from([1, 2, 5, 8, 16, 40]),
        "packing": some.sampled_from(["concat", "best_fit"]),
        "window_sequences": some.integers(1, 6),
        "max_epochs": some.sampled_from([0.5, 1, 2, 3]),
    },
)


def changed(plan: Plan, data: some.DataObject) -> Plan:
    """A plan changed a few times, at steps that it has."""
    for change in data.draw(some.lists(changes, max_size=3), label="changes"):
        change = dict(change)
        if data.draw(some.booleans(), label="other weights"):
            change["weights"] = {name: data.draw(some.integers(1, 5)) for name in plan.domains}
        low = plan.state()["segments"][-1]["step"]
        high = low + 4 if plan.steps is None else min(low + 4, plan.steps)
        plan = plan.change(data.draw(some.integers(low, max(low, high)), label="at"), **change)
    return plan


@many
@given(corpora, some.data())
def test_changes_lose_and_repeat_nothing(index: MadeIndex, data: some.DataObject) -> None:
    plan = changed(plan_of(index, data, max_epochs=2, overflow="split"), data)
    limit = max(segment["max_epochs"][name] for segment in plan.state()["segments"] for name in plan.domains)
    final = plan.state()["segments"][-1]["max_epochs"]
    held, _ = times(index, all_batches(plan))
    given_out = plan.consumed(plan.steps or 0)
    for one in index.domains:
        first = int(index.number(one.shards[0], np.array(0)))
        tokens = plan.tokens[one.name]
        seen = held[first : first + int(one.offsets[-1])]
        assert seen.sum() == given_out[one.name] >= int(Fraction(str(final[one.name])) * tokens)
        assert given_out[one.name] <= limit * tokens
        assert not seen[tokens:].any()
        whole = given_out[one.name] // tokens
        assert set(seen[:tokens].tolist()) <= {whole, whole + 1}  # no token again before each has come


@settings(deadline=None, max_examples=100)
@given(some.integers(3, 9), some.integers(20, 90), some.integers(1, 5), some.data())
def test_a_change_of_which_no_row_was_given_leaves_no_trace(
    length: int, count: int, step: int, data: some.DataObject
) -> None:
    index = MadeIndex({"a": [[length] * count], "b": [[1] * 9, [length + 1] * count]})
    rows, window = data.draw(some.integers(length, 30)), data.draw(some.integers(8, 30))
    first: dict[str, Any] = {"sequence_tokens": rows, "window_sequences": window, "batch_sequences": 4}
    plan = Plan.new(index, packing="best_fit", slack=0, seed=1, **first)
    # Two documents fit no row, so that rows of what is carried are too few: some would be lost.
    between: dict[str, Any] = {"overflow": data.draw(some.sampled_from(["crop", "drop"]))}
    between |= {"sequence_tokens": data.draw(some.integers(length, 2 * length - 2)), "max_epochs": data.draw(LIMITS)}
    then: dict[str, Any] = {"overflow": data.draw(some.sampled_from(["split", "crop", "drop"]))}
    then |= {"sequence_tokens": data.draw(some.integers(31, 40)), "max_epochs": data.draw(LIMITS)}
    passing = plan.change(step, **between)
    plain, other = plan.change(step, **then), passing.change(step, **then)
    assert plan.consumed(step) == passing.consumed(step) == other.consumed(step)
    assert plain.steps == other.steps
    assert all(same(*both) for both in zip(all_batches(plain), all_batches(other), strict=True))


@many
@given(corpora, some.data())
def test_a_change_leaves_what_was_before_and_goes_on_with_it(index: MadeIndex, data: some.DataObject) -> None:
    plan = plan_of(index, data)
    step = data.draw(some.integers(0, 5))
    other = plan.change(step, batch_sequences=data.draw(some.integers(1, 9)))
    for early in range(step):
        assert same(plan.batch(early), other.batch(early))
    count = min(step * plan.segment(0).batch_sequences + 12, 60)
    assert same(plan.sequences(0, count), other.sequences(0, count))  # only the cuts into steps move


@many
@given(corpora, some.data())
def test_a_plan_is_its_state_and_does_not_depend_on_what_was_asked(index: MadeIndex, data: some.DataObject) -> None:
    limits = data.draw(some.sampled_from([None, 2]), label="limit")
    plan = changed(plan_of(index, data, max_epochs=limits), data) if limits else plan_of(index, data)
    state = json.loads(json.dumps(plan.state()))
    other, third = Plan.of(index, state), pickle.loads(pickle.dumps(plan))
    assert other.state() == plan.state() == third.state()
    assert other.steps == plan.steps
    steps = list(range(min(12, 12 if plan.steps is None else plan.steps)))
    asked = data.draw(some.permutations(steps))
    found = {step: other.batch(step) for step in asked}
    for step in steps:
        assert same(plan.batch(step), found[step])
        assert same(third.batch(step), found[step])


@many
@given(corpora, some.data())
def test_accounts_balance_and_are_what_a_count_gives(index: MadeIndex, data: some.DataObject) -> None:
    limits = limits_of(index, data)
    plan = changed(plan_of(index, data, max_epochs=limits), data)
    batches = all_batches(plan)
    held, target = times(index, batches)
    account = plan.account(0, plan.steps or 0)
    consumed = plan.consumed(plan.steps or 0)
    for number, one in enumerate(index.domains):
        told = account[one.name]
        assert told.tokens == told.trained + told.unpredicted + told.cropped + told.dropped
        assert told.slots == told.trained + told.unpredicted + told.context + told.padding
        first = int(index.number(one.shards[0], np.array(0)))
        mine = slice(first, first + int(one.offsets[-1]))
        assert told.trained + told.unpredicted == held[mine].sum()
        assert told.tokens == consumed[one.name]
        repeated = sum(
            int(tokens_of(index, spans)[3][np.repeat(spans.domain, spans.count) == number].sum()) for spans in batches
        )
        assert told.context == repeated
        assert min(told.padding, told.cropped, told.dropped) >= 0
    middle = (plan.steps or 0) // 2
    parts = plan.account(0, middle), plan.account(middle, plan.steps or 0)
    assert all(parts[0][name] + parts[1][name] == account[name] for name in plan.domains)
    assert target.sum() == sum(told.trained for told in account.values())


@many
@given(corpora, some.data())
def test_positions_are_those_that_a_search_finds(index: MadeIndex, data: some.DataObject) -> None:
    plan = changed(plan_of(index, data, max_epochs=2), data)
    until = data.draw(some.integers(0, plan.steps or 0), label="until")
    one = data.draw(some.sampled_from(index.domains))
    shard = data.draw(some.sampled_from(one.shards.tolist()))
    size = int(index.ends(shard)[-1])
    start = data.draw(some.integers(0, size - 1))
    stop = data.draw(some.integers(start + 1, size))
    found = plan.positions(shard, start, stop, until_step=until)
    told = sorted(
        (step, sequence, token)
        for step, sequence, begin, end in zip(
            found.step.tolist(), found.sequence.tolist(), found.start.tolist(), found.stop.tolist(), strict=True
        )
        for token in range(begin, end)
    )
    searched = []
    for step in range(until):
        spans = plan.batch(step)
        for row, other, begin, count, repeats in zip(
            spans.row.tolist(),
            spans.shard.tolist(),
            spans.start.tolist(),
            spans.count.tolist(),
            spans.repeats.tolist(),
            strict=True,
        ):
            if other == shard:
                tokens = range(max(start, begin + repeats), min(stop, begin + count))
                searched += [(step, spans.first_sequence + row, token) for token in tokens]
    assert told == sorted(searched)


@settings(deadline=None, max_examples=40)
@given(corpora, some.data())
def test_the_order_of_tokens_is_that_of_any_sequence_length(index: MadeIndex, data: some.DataObject) -> None:
    chosen = data.draw(settings_of(index)) | {"packing": "concat", "max_epochs": None, "weights": None}
    streams = []
    for length in (5, 8):
        plan = Plan.new(index, **{**chosen, "sequence_tokens": length})
        spans = plan.sequences(0, 80)
        _, _, token, repeats = tokens_of(index, spans)
        domain = np.repeat(spans.domain, spans.count)[~repeats]
        streams.append([token[~repeats][domain == number] for number in range(len(plan.domains))])
    for one, other in zip(*streams, strict=True):
        count = min(len(one), len(other))
        assert np.array_equal(one[:count], other[:count])
