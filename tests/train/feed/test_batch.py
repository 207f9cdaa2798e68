"""Batches against a slow and plain reading of the same spans."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.train.feed.made import EOS, make_tokens
from train.feed.batch import Batch, fill
from train.feed.spans import Spans
from train.feed.token_shards import TokenShards

Piece = tuple[int, int, int, int, int, bool]  # slot, domain, shard, start, count, repeats


def spans_of(rows: list[list[Piece]], length: int) -> Spans:
    flat = [(number, *piece) for number, row in enumerate(rows) for piece in row]
    row, slot, domain, shard, start, count, repeats = (
        [list(column) for column in zip(*flat, strict=True)] if flat else [[]] * 7
    )
    return Spans(
        row=np.array(row, np.int32),
        slot=np.array(slot, np.int32),
        domain=np.array(domain, np.int32),
        shard=np.array(shard, np.int32),
        document=np.zeros(len(flat), np.int64),
        start=np.array(start, np.int64),
        count=np.array(count, np.int32),
        repeats=np.array(repeats, bool),
        rows=len(rows),
        sequence_tokens=length,
        first_sequence=7,
    )


def plain(rows: list[list[Piece]], length: int, shards: TokenShards, isolate: bool) -> Batch:
    batch = Batch(
        tokens=np.full((len(rows), length + 1), EOS, np.int64),
        documents=np.full((len(rows), length + 1), -1, np.int32),
        positions=np.zeros((len(rows), length + 1), np.int32),
        loss=np.zeros((len(rows), length), bool),
        domains=np.full((len(rows), length + 1), -1, np.int32),
    )
    for at, row in enumerate(rows):
        context = set()
        for piece, (slot, domain, shard, start, count, repeats) in enumerate(row):
            for offset in range(count):
                batch.tokens[at, slot + offset] = shards.tokens(shard)[start + offset]
                batch.documents[at, slot + offset] = piece if isolate else 0
                batch.positions[at, slot + offset] = offset if isolate else slot + offset
                batch.domains[at, slot + offset] = domain  # type: ignore[index]
            if repeats:
                context.add(slot)
        for slot in range(length):
            mine, next_one = batch.documents[at, slot], batch.documents[at, slot + 1]
            batch.loss[at, slot] = mine >= 0 and mine == next_one and (isolate or slot + 1 not in context)
    return batch


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> TokenShards:
    return TokenShards.open(make_tokens(tmp_path_factory.mktemp("t"), {"a": [[40, 60], [100]], "b": [[100]]}))


@st.composite
def rows_of(draw: st.DrawFn) -> tuple[list[list[Piece]], int]:
    length = draw(st.integers(1, 24))
    rows: list[list[Piece]] = []
    for _ in range(draw(st.integers(1, 4))):
        row, slot = [], 0
        while slot <= length and draw(st.booleans()):
            slot += draw(st.integers(0, 2))
            count = draw(st.integers(1, 8))
            if slot + count > length + 1:
                break
            shard = draw(st.integers(0, 2))
            row.append((slot, shard // 2, shard, draw(st.integers(0, 100 - count)), count, draw(st.booleans())))
            slot += count
        rows.append(row)
    return rows, length


@pytest.mark.parametrize("isolate", [True, False])
@settings(max_examples=60, deadline=None)
@given(made=rows_of())
def test_any_spans_fill_as_a_plain_reading_does(
    shards: TokenShards, made: tuple[list[list[Piece]], int], isolate: bool
) -> None:
    rows, length = made
    wanted = plain(rows, length, shards, isolate)
    found = fill(spans_of(rows, length), shards, isolate=isolate, step=3)
    for name in ("tokens", "documents", "positions", "loss", "domains"):
        one, other = getattr(found, name), getattr(wanted, name)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other), name
    assert (found.step, found.first_sequence, found.rows) == (3, 7, len(rows))
    assert found.target_count == wanted.loss.sum()


def test_padding_is_told_by_position_and_a_real_eos_is_trained_on(shards: TokenShards) -> None:
    batch = fill(spans_of([[(0, 0, 0, 37, 3, False)]], 4), shards)
    assert batch.tokens[0, 2:].tolist() == [EOS, EOS, EOS]
    assert batch.documents[0].tolist() == [0, 0, 0, -1, -1]
    assert batch.loss[0].tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    "piece",
    [
        (0, 0, 0, 98, 3, False),
        (3, 0, 0, 0, 3, False),
        (0, 0, 3, 0, 1, False),
        (0, 0, 0, -1, 2, False),
        (0, 0, 0, 0, 0, False),
    ],
)
def test_spans_beyond_a_shard_or_row_are_refused(shards: TokenShards, piece: Piece) -> None:
    with pytest.raises(ValueError, match=r"span 0 of sequence 7: tokens .* beyond the shard or the row"):
        fill(spans_of([[piece]], 4), shards)


def test_a_digest_tells_tokens_pieces_and_masks_apart(shards: TokenShards) -> None:
    def digest(*pieces: Piece, isolate: bool = True) -> str:
        return fill(spans_of([list(pieces)], 8), shards, isolate=isolate).digest()

    whole = (0, 0, 0, 0, 9, False)
    halves = ((0, 0, 0, 0, 4, False), (4, 0, 0, 4, 5, False))
    told = {digest(whole), digest(*halves), digest((0, 0, 0, 1, 9, False)), digest((0, 0, 0, 0, 8, False))}
    assert len(told) == 4
    assert digest(*halves, isolate=False) == digest(whole, isolate=False) == digest(whole)


def test_tensors_hold_the_same(shards: TokenShards) -> None:
    import torch

    batch = fill(spans_of([[(0, 1, 2, 5, 9, False)]], 8), shards, step=2)
    made = batch.torch()
    assert torch.equal(made.inputs, torch.from_numpy(batch.inputs.copy()))
    assert torch.equal(made.targets, torch.from_numpy(batch.targets.copy()))
    assert (made.tokens.dtype, made.loss.dtype, made.documents.dtype) == (torch.int64, torch.bool, torch.int32)
    assert (made.step, made.first_sequence) == (2, 7)
    assert made.domains is not None
