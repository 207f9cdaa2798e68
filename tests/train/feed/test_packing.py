"""Rows: nothing lost by "split", nothing uncounted by the others, and little padding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from train.feed.best_fit import best_fit
from train.feed.packing import OVERFLOWS, Overflow, Packed, concatenate, joined, rows_for
from train.feed.permutation import key_of
from train.feed.spans import Placed
from train.feed.stream import Pieces


def pieces_of(lengths: list[int], continues: list[bool] | None = None) -> Pieces:
    count = len(lengths)
    return Pieces(
        shard=np.zeros(count, np.int32),
        document=np.arange(count, dtype=np.int64),
        start=np.arange(count, dtype=np.int64) * 10**6 + 1,
        tokens=np.array(lengths, np.int64),
        continues=np.array([False] * count if continues is None else continues, np.bool_),
    )


def packed(pieces: Pieces, rows: int, length: int, overflow: Overflow = "split", seed: int = 0) -> Packed:
    return best_fit(pieces, rows=rows, sequence_tokens=length, overflow=overflow, key=key_of(seed))


def filled(found: Packed) -> list[int]:
    """Slots in use of each row."""
    return np.bincount(found.placed.row, found.placed.slots, minlength=found.rows).astype(int).tolist()


some_pieces = some.lists(some.tuples(some.integers(1, 70), some.booleans()), min_size=1, max_size=40)


@settings(deadline=None, max_examples=200)
@given(some_pieces, some.integers(1, 40), some.sampled_from(OVERFLOWS), some.sampled_from([0, 0.005, 0.2]))
def test_all_tokens_are_in_a_row_or_counted(
    chosen: list[tuple[int, bool]], length: int, overflow: Overflow, slack: float
) -> None:
    pieces = pieces_of([tokens for tokens, _ in chosen], [goes_on for _, goes_on in chosen])
    whole = int(pieces.tokens.sum())
    rows = rows_for(whole, int(pieces.continues.sum()), length, Fraction(str(slack)))
    found = packed(pieces, rows, length, overflow)
    placed = found.placed
    held = int((placed.slots - placed.repeats).sum())
    assert held + found.cropped + found.dropped == whole
    assert (found.cropped, found.dropped) == (0, 0) or overflow == {True: "crop", False: "drop"}[found.cropped > 0]
    assert max(filled(found)) <= length + 1
    for row in range(rows):
        part = found.take(row, 1)
        ends = part.slot + part.slots
        assert part.slot.tolist() == [0, *ends[:-1].tolist()][: len(ends)]
    # Each piece's tokens stand once, a part that continues carries the token before it.
    for number, (tokens, goes_on) in enumerate(chosen):
        mine = placed.document == number
        starts = placed.start[mine] + placed.repeats[mine] - pieces.start[number]
        stops = placed.start[mine] + placed.slots[mine] - pieces.start[number]
        order = np.argsort(starts)
        assert starts[order].tolist() == [0, *stops[order].tolist()[:-1]][: mine.sum()]
        assert overflow != "split" or stops.max() == tokens
        assert (placed.repeats[mine] == ((starts > 0) | goes_on)).all()


@settings(deadline=None, max_examples=100)
@given(some_pieces, some.integers(1, 40), some.integers(0, 10))
def test_what_rows_leave_is_put_together_again(chosen: list[tuple[int, bool]], length: int, used: int) -> None:
    pieces = pieces_of([tokens for tokens, _ in chosen], [goes_on for _, goes_on in chosen])
    rows = rows_for(int(pieces.tokens.sum()), int(pieces.continues.sum()), length, Fraction(0))
    found = packed(pieces, rows, length)
    assert all(np.array_equal(*both) for both in zip(found.unused(0), pieces, strict=True))
    used = min(used, rows)
    gone = found.take(0, used)
    assert int(found.unused(used).tokens.sum()) == int(pieces.tokens.sum() - (gone.slots - gone.repeats).sum())
    assert joined(found.unused(used))._fields == Pieces._fields


def test_pieces_go_where_they_fit_best() -> None:
    found = packed(pieces_of([6, 4, 5, 5, 10, 3, 2, 5]), 4, 9)
    assert filled(found) == [10, 10, 10, 10]
    assert len(found.placed.row) == 8  # none was cut
    rows = {tuple(sorted(found.take(row, 1).slots.tolist())) for row in range(4)}
    assert rows == {(4, 6), (5, 5), (10,), (2, 3, 5)}


def test_longer_pieces_are_cut_in_rows_first_and_repeat_one_token() -> None:
    found = packed(pieces_of([25]), 3, 9)
    starts = sorted(zip(found.placed.start.tolist(), found.placed.slots.tolist(), strict=True))
    assert starts == [(1, 10), (10, 10), (19, 7)]


@pytest.mark.parametrize(
    ("overflow", "held", "cropped", "dropped"), [("split", 18, 0, 0), ("crop", 16, 2, 0), ("drop", 12, 0, 6)]
)
def test_what_fits_no_row_follows_the_policy(overflow: Overflow, held: int, cropped: int, dropped: int) -> None:
    found = packed(pieces_of([6, 6, 6]), 2, 9, overflow)
    assert int((found.placed.slots - found.placed.repeats).sum()) == held
    assert (found.cropped, found.dropped) == (cropped, dropped)


def test_no_row_is_left_empty_while_another_has_two_pieces() -> None:
    found = packed(pieces_of([2, 2, 2, 2]), 4, 7)
    assert filled(found) == [2, 2, 2, 2]


def test_rows_come_in_the_keys_order() -> None:
    lengths = list(range(10, 50))
    one, other = (packed(pieces_of(lengths), 40, 49, seed=seed) for seed in (1, 2))
    assert one.placed.document.tolist() != other.placed.document.tolist()
    assert sorted(one.placed.document.tolist()) == sorted(other.placed.document.tolist())


def test_concatenated_rows_take_their_context_from_the_document_or_the_stream() -> None:
    # Documents of 5, 3 and 4 tokens, of which the first token is the lead.
    found = concatenate(pieces_of([5, 3, 4]), lead=True, sequence_tokens=4)
    assert rows_of(found) == [
        (0, 0, 0, 1, 5, True),  # slot 0 is the lead, then the document's last four
        (1, 0, 0, 5, 1, True),  # another document begins: the stream's token before it
        (1, 1, 1, 10**6 + 1, 3, False),
        (1, 4, 2, 2 * 10**6 + 1, 1, False),
        (2, 0, 2, 2 * 10**6 + 1, 4, True),
    ]


def test_a_stream_that_begins_has_nothing_in_its_first_slot() -> None:
    found = concatenate(pieces_of([2]), lead=False, sequence_tokens=4)
    assert rows_of(found) == [(0, 1, 0, 1, 2, False)]


def rows_of(placed: Placed) -> list[tuple[int, ...]]:
    columns = (placed.row, placed.slot, placed.document, placed.start, placed.slots, placed.repeats)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_log_normal_documents_leave_less_than_a_hundredth_of_padding() -> None:
    random = np.random.default_rng(5)
    lengths = np.minimum(np.maximum(1, random.lognormal(6.5, 1.2, 3000)).astype(int), 50_000).tolist()
    whole = sum(lengths)
    rows = rows_for(whole, 3, 2048, Fraction("0.005"))
    found = packed(pieces_of(lengths), rows, 2048)
    assert found.placed.slots.sum() / (rows * 2049) > 0.99
    cut = len(found.placed.row) - len(lengths) - sum((length - 2) // 2048 for length in lengths)
    assert cut < 10  # documents that would have fitted a row and were cut
