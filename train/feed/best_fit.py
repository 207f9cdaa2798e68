"""Best-fit decreasing: each piece goes to the fullest row that still takes it, the longest pieces first."""

# ruff: noqa: PLR0917 - kernels are given bare numbers and arrays.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from text import kernel
from train.feed.packing import OVERFLOWS, Overflow, Packed
from train.feed.permutation import deal
from train.feed.spans import Bools, Int64s, Placed
from train.feed.stream import Pieces

SPLIT, CROP = 0, 1


def best_fit(pieces: Pieces, *, rows: int, sequence_tokens: int, overflow: Overflow, key: np.uint64) -> Packed:
    """Pieces in `rows` rows of sequence_tokens + 1 slots by best-fit decreasing, the rows in an order given by `key`.

    A piece longer than a row is cut in rows first; a piece that continues a document carries the token before it. What
    fits no row is treated as `overflow` says. O(n log sequence_tokens) for n pieces.
    """
    slots = sequence_tokens + 1
    chunks = _chunks(int(_count_chunks(pieces.tokens, pieces.continues, slots)))
    _cut_to_rows(pieces.tokens, pieces.continues, slots, *chunks)
    count = len(chunks.piece)
    size = 1 << slots.bit_length()
    work = (
        np.zeros(2 * size, np.uint8),  # which gaps there are, as a tree
        np.full(slots + 1, -1, np.int64),  # a row of each gap,
        np.empty(rows, np.int64),  # and the next of the same
        np.zeros(slots + 2, np.int64),
        np.empty(count, np.int64),
    )
    row, lost = np.empty(count + rows, np.int64), np.zeros(2, np.int64)
    places = _chunks(count + rows)  # a piece is cut where it fills a row, so at most once a row
    count = int(_fit(*chunks, rows, slots, OVERFLOWS.index(overflow), size, *work, row, *places, lost))
    row = row[:count]
    if overflow == "split" and lost.any():
        raise AssertionError(f"{lost.sum()} tokens found no slot in {rows} rows of {slots}")
    _fill_empty_rows(row, rows)
    dealt = _dealt(rows, key)[row]
    order = np.argsort(dealt, kind="stable")
    return _packed(pieces, rows, dealt[order], _Chunks._make(column[:count][order] for column in places), lost)


class _Chunks(NamedTuple):
    """Parts of pieces: number of the piece, first token and tokens of it, and whether the token before stands first."""

    piece: Int64s
    offset: Int64s
    tokens: Int64s
    repeats: Bools


def _chunks(count: int) -> _Chunks:
    return _Chunks(
        np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.bool_)
    )


def _dealt(rows: int, key: np.uint64) -> Int64s:
    """When each row is dealt."""
    order, dealt = np.empty(rows, np.int64), np.empty(rows, np.int64)
    deal(rows, key, order)
    dealt[order] = np.arange(rows)
    return dealt


def _packed(pieces: Pieces, rows: int, row: Int64s, chunks: _Chunks, lost: Int64s) -> Packed:
    """Chunks in the order of their rows, one after another in each."""
    counts = chunks.tokens + chunks.repeats
    starts = np.searchsorted(row, np.arange(rows + 1))
    before = np.cumsum(counts) - counts
    placed = Placed(
        row=row.astype(np.int32),
        slot=(before - before[starts[row]]).astype(np.int32),
        shard=pieces.shard[chunks.piece],
        document=pieces.document[chunks.piece],
        start=pieces.start[chunks.piece] + chunks.offset - chunks.repeats,
        slots=counts.astype(np.int32),
        repeats=chunks.repeats,
    )
    return Packed(placed=placed, starts=starts, cropped=int(lost[0]), dropped=int(lost[1]))


def _fill_empty_rows(row: Int64s, rows: int) -> None:
    """Move one of several pieces into each row that got none: a row without a target would be a step of nothing."""
    empty = np.flatnonzero(np.bincount(row, minlength=rows) == 0)
    if len(empty):
        order = np.argsort(row, kind="stable")
        spare = order[1:][row[order[1:]] == row[order[:-1]]]  # the row keeps its first piece
        count = min(len(spare), len(empty))
        row[spare[:count]] = empty[:count]


@kernel
def _count_chunks(tokens: Any, continues: Any, slots: int) -> Any:
    count = 0
    for i in range(len(tokens)):
        rest = tokens[i] + continues[i] - slots
        count += 1 + (rest + slots - 2) // (slots - 1) if rest > 0 else 1
    return count


@kernel
def _cut_to_rows(tokens: Any, continues: Any, slots: int, piece: Any, offset: Any, length: Any, repeats: Any) -> None:
    """Cut pieces longer than a row; each cut repeats one token."""
    at = 0
    for i in range(len(tokens)):
        done, repeat = 0, continues[i]
        while done < tokens[i]:
            take = min(tokens[i] - done, slots - repeat)
            piece[at], offset[at], length[at], repeats[at] = i, done, take, repeat
            at, done, repeat = at + 1, done + take, True


@kernel
def _mark(tree: Any, size: int, gap: int, value: int) -> None:
    """Note in the tree over gaps whether any row has this one; a node is set where one of its leaves is."""
    node = size + gap
    tree[node] = value
    node //= 2
    while node >= 1:
        found = tree[2 * node] | tree[2 * node + 1]
        if tree[node] == found:
            break
        tree[node] = found
        node //= 2


@kernel
def _least_gap(tree: Any, size: int, slots: int) -> Any:
    """The smallest gap of at least `slots` that a row has, or -1."""
    node = size + slots
    if tree[node]:
        return slots
    while node > 1:
        if node % 2 == 0 and tree[node + 1]:
            node += 1
            while node < size:
                node = 2 * node if tree[2 * node] else 2 * node + 1
            return node - size
        node //= 2
    return -1


@kernel
def _largest_gap(tree: Any, size: int) -> Any:
    if not tree[1]:
        return 0
    node = 1
    while node < size:
        node = 2 * node + 1 if tree[2 * node + 1] else 2 * node
    return node - size


@kernel
def _take_row(tree: Any, size: int, heads: Any, after: Any, gap: int, slots: int) -> Any:
    """The row that last got this gap, which then has `slots` fewer."""
    row = heads[gap]
    heads[gap] = after[row]
    if heads[gap] < 0:
        _mark(tree, size, gap, 0)
    rest = gap - slots
    if rest > 0:
        after[row] = heads[rest]
        if heads[rest] < 0:
            _mark(tree, size, rest, 1)
        heads[rest] = row
    return row


@kernel
def _fit(
    piece: Any,
    offset: Any,
    tokens: Any,
    repeats: Any,
    rows: int,
    slots: int,
    overflow: int,
    size: int,
    tree: Any,
    heads: Any,
    after: Any,
    firsts: Any,
    order: Any,
    out_row: Any,
    out_piece: Any,
    out_offset: Any,
    out_tokens: Any,
    out_repeats: Any,
    lost: Any,
) -> Any:
    """Best-fit decreasing, then what is left over by its policy; how many places. lost: tokens cropped, dropped."""
    for i in range(len(tokens)):
        firsts[slots + 1 - tokens[i] - repeats[i]] += 1
    total = 0
    for i in range(slots + 2):
        total, firsts[i] = total + firsts[i], total
    for i in range(len(tokens)):
        kind = slots + 1 - tokens[i] - repeats[i]
        order[firsts[kind]] = i
        firsts[kind] += 1
    for row in range(rows):
        after[row] = row + 1 if row + 1 < rows else -1
    if rows > 0:
        heads[slots] = 0
        _mark(tree, size, slots, 1)
    at, left = 0, 0
    for k in range(len(order)):
        i = order[k]
        need = tokens[i] + repeats[i]
        gap = _least_gap(tree, size, need)
        if gap < 0:
            order[left] = i
            left += 1
            continue
        out_row[at] = _take_row(tree, size, heads, after, gap, need)
        out_piece[at], out_offset[at], out_tokens[at], out_repeats[at] = piece[i], offset[i], tokens[i], repeats[i]
        at += 1
    for k in range(left):
        i = order[k]
        done, repeat = 0, repeats[i]
        while done < tokens[i]:
            gap = _largest_gap(tree, size) if overflow <= CROP else 0
            take = min(gap - repeat, tokens[i] - done)
            if take > 0:
                out_row[at] = _take_row(tree, size, heads, after, gap, take + repeat)
                out_piece[at], out_offset[at], out_tokens[at], out_repeats[at] = (
                    piece[i],
                    offset[i] + done,
                    take,
                    repeat,
                )
                at, done, repeat = at + 1, done + take, True
            if take <= 0 or overflow != SPLIT:
                lost[0 if overflow == CROP else 1] += tokens[i] - done
                break
    return at
