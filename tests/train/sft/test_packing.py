"""Packing loses nothing, mixes nothing, and deals every row once an epoch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train.feed.batch import Batch
from train.sft.examples import Examples
from train.sft.packing import Deal, Rows, pack


def made(lengths: list[int]) -> Examples:
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    generator = np.random.default_rng(1)
    trained = generator.integers(0, 2, starts[-1]).astype(np.uint8)
    trained[starts[:-1]] = 0
    trained[starts[1:] - 1] = 1
    return Examples(
        tokens=np.arange(1, starts[-1] + 1, dtype=np.uint32),  # each token is its own place
        trained=trained,
        starts=starts,
        held_out=np.zeros(len(lengths), np.bool_),
        manifest={},
    )


def packed(lengths: list[int], sequence_tokens: int) -> Rows:
    examples = made(lengths)
    which = np.arange(len(lengths), dtype=np.int64)
    return pack(examples, which, sequence_tokens=sequence_tokens, padding_id=0, seed=5)


LENGTHS = st.lists(st.integers(2, 33), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS)
def test_every_example_lies_whole_in_one_row_and_every_label_counts_once(lengths: list[int]) -> None:
    rows = packed(lengths, 32)
    examples = rows.examples
    batch = rows.batch(np.arange(rows.count, dtype=np.int64))
    shown = batch.tokens[batch.documents >= 0]
    assert sorted(shown.tolist()) == list(range(1, int(examples.starts[-1]) + 1))
    labels = batch.targets[batch.loss]
    assert sorted(labels.tolist()) == (np.flatnonzero(examples.trained) + 1).tolist()
    account = rows.account()
    assert account["slots"] == account["trained"] + account["context"] + account["padded"] == batch.tokens.size
    assert account["trained"] == len(labels)
    assert account["padded"] == int((batch.documents < 0).sum())


@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS)
def test_positions_restart_and_no_loss_crosses_from_one_conversation_to_another(lengths: list[int]) -> None:
    rows = packed(lengths, 32)
    batch = rows.batch(np.arange(rows.count, dtype=np.int64))
    for row in range(batch.rows):
        own = batch.documents[row]
        for number in range(own.max() + 1):
            places = np.flatnonzero(own == number)
            assert (np.diff(places) == 1).all()
            assert (np.diff(batch.tokens[row, places]) == 1).all()  # one example, in order
            assert (batch.positions[row, places] == np.arange(len(places))).all()
            assert places[0] == 0 or not batch.loss[row, places[0] - 1]
    assert not batch.loss[batch.documents[:, 1:] < 0].any()


@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS)
def test_rows_are_as_few_as_best_fit_decreasing_needs(lengths: list[int]) -> None:
    gaps: list[int] = []
    for length in sorted(lengths, reverse=True):
        fitting = [gap for gap in gaps if gap >= length]
        if fitting:
            gaps.remove(min(fitting))
        gaps.append((min(fitting) if fitting else 33) - length)
    assert packed(lengths, 32).count == len(gaps)


@pytest.mark.parametrize(("rows", "size", "epochs"), [(7, 3, 3), (1, 4, 2), (64, 64, 1), (10, 1, 2)])
def test_every_row_comes_once_an_epoch_and_the_last_step_is_filled_with_empty_rows(
    rows: int, size: int, epochs: int
) -> None:
    deal = Deal(rows=rows, batch_sequences=size, seed=9, sequences=rows * epochs)
    steps = -(-rows * epochs // size)
    told = np.concatenate([deal.numbers(step) for step in range(steps)])
    assert (told[rows * epochs :] == -1).all()
    for epoch in range(epochs):
        assert sorted(told[epoch * rows : (epoch + 1) * rows].tolist()) == list(range(rows))
    if rows == 64:
        other = Deal(rows=rows, batch_sequences=size, seed=10).numbers(0)
        assert other.tolist() != told.tolist()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 50), st.integers(1, 20), st.integers(1, 16), st.integers(0, 30))
def test_the_union_over_processes_is_the_batch_of_one(rows: int, size: int, world: int, step: int) -> None:
    deal = Deal(rows=rows, batch_sequences=size, seed=3, sequences=rows * 2)
    parts = [deal.numbers(step, rank, world) for rank in range(world)]
    assert np.concatenate(parts).tolist() == deal.numbers(step).tolist()


def test_an_empty_row_is_padding_without_loss() -> None:
    batch: Batch = packed([4, 5], 8).batch(np.array([-1], np.int64))
    assert (batch.documents == -1).all()
    assert not batch.loss.any()


def test_best_fit_of_many_conversations_pads_less_than_a_percent() -> None:
    lengths = np.random.default_rng(0).gamma(1.5, 250, 20_000).astype(int).clip(8, 2049).tolist()
    rows = packed(lengths, 2048)
    assert rows.account()["padded_share"] < 0.01
