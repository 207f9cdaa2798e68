"""Pieces of documents into rows: one after another, or each where it fits best."""

# ruff: noqa: PLR0917 - kernels are given bare numbers and arrays.

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from text import kernel
from train.feed.spans import Int64s, Placed
from train.feed.stream import Pieces

Overflow = Literal["split", "crop", "drop"]
OVERFLOWS = ("split", "crop", "drop")


class Packing(NamedTuple):
    """How pieces come into rows; see train.feed.plan.Plan.new."""

    method: Literal["concat", "best_fit"]
    window_sequences: int
    slack: Fraction
    overflow: Overflow


@dataclass(frozen=True, kw_only=True, eq=False)
class Packed:
    """The rows of one window in the order in which they are dealt.

    starts: int64[rows + 1], where each begins in `placed`. cropped, dropped: tokens of the window that are in no row.
    """

    placed: Placed
    starts: Int64s
    cropped: int
    dropped: int

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    def take(self, first: int, count: int) -> Placed:
        """Some rows, numbered from 0."""
        found = Placed._make(column[self.starts[first] : self.starts[first + count]] for column in self.placed)
        return found._replace(row=found.row - np.int32(first))

    def within(self, shard: int, start: int, stop: int) -> list[tuple[int, int, int]]:
        """Parts of a range of a shard's tokens that rows hold, repeated tokens aside: row, start, stop."""
        starts = self.placed.start + self.placed.repeats
        stops = self.placed.start + self.placed.slots
        hits = np.flatnonzero((self.placed.shard == shard) & (starts < stop) & (stops > start))
        return [
            (row, max(start, first), min(stop, last))
            for row, first, last in zip(
                self.placed.row[hits].tolist(), starts[hits].tolist(), stops[hits].tolist(), strict=True
            )
        ]

    def unused(self, first: int) -> Pieces:
        """What the rows from `first` on hold, put together again where a document had been cut."""
        rest = self.take(first, self.rows - first)
        tokens = rest.slots.astype(np.int64) - rest.repeats
        return joined(Pieces(rest.shard, rest.document, rest.start + rest.repeats, tokens, rest.repeats))


def joined(pieces: Pieces) -> Pieces:
    """Pieces in the order of shards, those that follow each other in one document made one."""
    order = np.lexsort((pieces.start, pieces.shard))
    found = Pieces._make(column[order] for column in pieces)
    if not len(order):
        return found
    ends = found.start + found.tokens
    new = np.ones(len(order), np.bool_)
    new[1:] = (
        (found.shard[1:] != found.shard[:-1])
        | (found.document[1:] != found.document[:-1])
        | (found.start[1:] != ends[:-1])
    )
    first = np.flatnonzero(new)
    tokens = np.add.reduceat(found.tokens, first)
    return Pieces(found.shard[first], found.document[first], found.start[first], tokens, found.continues[first])


def rows_for(tokens: int, continuing: int, sequence_tokens: int, slack: Fraction) -> int:
    """How many rows a window of `tokens` gets, of which at most `continuing` pieces continue a document.

    At least what "split" needs in the worst case: a slot for each token, one more for each continuing piece and for
    each long document's last piece, and one a row that a cut or a gap of one slot takes.
    """
    if tokens == 0:
        return 0
    wanted = tokens * (1 + slack) / sequence_tokens
    least = tokens + continuing + tokens // (sequence_tokens + 1)
    return max(-(-wanted.numerator // wanted.denominator), -(-least // sequence_tokens))


def concatenate(pieces: Pieces, *, lead: bool, sequence_tokens: int) -> Placed:
    """Pieces one after another in rows of sequence_tokens targets.

    lead: the first token stands before the first row, as the context of its first target. Slot 0 of a row is the
    token before it in its document, or in the stream where a document begins.
    """
    tokens = int(pieces.tokens.sum()) - lead
    most = 2 * len(pieces.tokens) + 2 * (tokens // sequence_tokens + 1)
    placed = _empty(most)
    count = _concatenate(*pieces, int(lead), sequence_tokens, *placed)
    return Placed._make(column[:count] for column in placed)


def _empty(count: int) -> Placed:
    return Placed(
        row=np.empty(count, np.int32),
        slot=np.empty(count, np.int32),
        shard=np.empty(count, np.int32),
        document=np.empty(count, np.int64),
        start=np.empty(count, np.int64),
        slots=np.empty(count, np.int32),
        repeats=np.empty(count, np.bool_),
    )


@kernel
def _concatenate(
    shard: Any,
    document: Any,
    start: Any,
    tokens: Any,
    continues: Any,
    lead: int,
    length: int,
    rows: Any,
    slots: Any,
    shards: Any,
    documents: Any,
    starts: Any,
    counts: Any,
    repeats: Any,
) -> Any:
    """Fill the arrays of a Placed; how many entries."""
    at, position = 0, 0
    last_shard, last_document, last_token = -1, 0, 0
    for i in range(len(tokens)):
        begin, left, goes_on = start[i], tokens[i], continues[i]
        if i == 0 and lead == 1:
            last_shard, last_document, last_token = shard[i], document[i], begin
            begin, left, goes_on = begin + 1, left - 1, True
        while left > 0:
            row, inside = position // length, position % length
            take = min(left, length - inside)
            slot, repeat = inside + 1, 0
            if inside == 0 and goes_on:
                slot, repeat = 0, 1
            elif inside == 0 and last_shard >= 0:
                rows[at], slots[at], counts[at], repeats[at] = row, 0, 1, True
                shards[at], documents[at], starts[at] = last_shard, last_document, last_token
                at += 1
            rows[at], slots[at], counts[at], repeats[at] = row, slot, take + repeat, repeat == 1
            shards[at], documents[at], starts[at] = shard[i], document[i], begin - repeat
            at += 1
            begin, left, position, goes_on = begin + take, left - take, position + take, True
            last_shard, last_document, last_token = shard[i], document[i], begin - 1
    return at
