"""One domain from one cursor on: cut into sequences in one way, until that way changes or its epochs end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from train.feed.best_fit import best_fit
from train.feed.packing import Packed, Packing, joined, rows_for
from train.feed.permutation import numbered_key
from train.feed.spans import Placed, chained
from train.feed.stream import Pieces, Stream
from train.feed.windows import Body, Concatenation, Left, Occurrence, Windows, held

CARRIED_KEY = np.uint64(0x2545F4914F6CDD1D)  # tells the order of carried rows from that of a window's


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """Sequences of one domain, numbered from 0: those of a carried window first, then those of its stream.

    end: how many tokens of the endless stream its epochs allow; None = all. before: the source that this one goes on
    from, and how many of its sequences were used. What a window of it had not yet given is carried: packed anew.
    """

    stream: Stream
    sequence_tokens: int
    packing: Packing
    end: int | None
    before: tuple[Source, int] | None = None

    def is_like(self, sequence_tokens: int, packing: Packing, end: int | None) -> bool:
        """Whether a change to these settings changes nothing here."""
        return (self.sequence_tokens, self.packing, self.end) == (sequence_tokens, packing, end)

    @cached_property
    def _begin(self) -> Left:
        if self.before is None:
            return Left(0, None, 0)
        chain = [self.before[0]]
        while chain[-1].before is not None and "_begin" not in vars(chain[-1]):
            chain.append(chain[-1].before[0])
        for source in reversed(chain):  # the oldest first, so that no number of changes recurses deep
            _ = source._begin
        return self.before[0].left(self.before[1])

    @cached_property
    def _parts(self) -> tuple[Pieces | None, Pieces | None]:
        """Carried pieces that the epochs still allow, and those that they do not."""
        cursor, pieces, _ = self._begin
        if pieces is None or self.end is None or self.end >= cursor:
            return pieces, None
        return _split(pieces, max(0, self.end - cursor + int(pieces.tokens.sum())))

    @cached_property
    def carried(self) -> Packed | None:
        """Rows of what the source before left of a window."""
        pieces = self._parts[0]
        if pieces is None:
            return None
        fit = self.packing.method == "best_fit"
        slack = self.packing.slack if fit else self.packing.slack * 0
        rows = rows_for(int(pieces.tokens.sum()), int(pieces.continues.sum()), self.sequence_tokens, slack)
        return best_fit(
            pieces,
            rows=rows,
            sequence_tokens=self.sequence_tokens,
            overflow=self.packing.overflow if fit else "split",
            key=numbered_key(self.stream.key ^ CARRIED_KEY, self._begin.cursor),
        )

    @cached_property
    def _carried_rows(self) -> int:
        return 0 if self.carried is None else self.carried.rows

    @cached_property
    def _body(self) -> Body:
        start = self._begin.cursor
        end = None if self.end is None else max(self.end, start)
        if self.packing.method == "concat":
            return Concatenation(stream=self.stream, start=start, end=end, sequence_tokens=self.sequence_tokens)
        return Windows(
            stream=self.stream, start=start, end=end, sequence_tokens=self.sequence_tokens, packing=self.packing
        )

    @property
    def sequences(self) -> int | None:
        """How many there are until the epochs end; None = endless."""
        of_body = None if self.end is None else self._body.sequences
        return None if of_body is None else self._carried_rows + of_body

    def rows(self, first: int, count: int) -> Placed:
        """Sequences first .. first + count, as rows from 0."""
        if self.before is None:
            return self._body.rows(first, count)
        of_carried = max(0, min(count, self._carried_rows - first))
        parts = [self.carried.take(first, of_carried)] if of_carried and self.carried is not None else []
        if of_carried < count:
            part = self._body.rows(first + of_carried - self._carried_rows, count - of_carried)
            parts.append(part._replace(row=part.row + np.int32(of_carried)))
        return chained(parts)

    def left(self, used: int) -> Left:
        """What the domain has after so many sequences.

        Before the first, what it began with: what the carried rows crop or drop is lost only once one of them is given.
        """
        if used == 0:
            return self._begin
        cursor, _, epoch = self._begin
        rest = self._parts[1]
        if self.carried is not None and used < self._carried_rows:
            pieces = self.carried.unused(used)
            return Left(cursor, _together(pieces, rest), epoch)
        if rest is not None:  # the epochs end within the carried window
            return Left(cursor, rest, epoch)
        return self._body.left(used - self._carried_rows)

    def consumed(self, used: int) -> int:
        """Tokens of the endless stream that so many sequences and all before have held, or lost."""
        left = self.left(used)
        return left.cursor - (0 if left.pieces is None else int(left.pieces.tokens.sum()))

    def lost(self, first: int, count: int) -> tuple[int, int]:
        """Tokens cropped and dropped of the windows that begin in these sequences."""
        cropped = dropped = 0
        if self.carried is not None and first == 0 < count:
            cropped, dropped = self.carried.cropped, self.carried.dropped
        start, stop = max(0, first - self._carried_rows), max(0, first + count - self._carried_rows)
        more = self._body.lost(start, stop - start)
        return cropped + more[0], dropped + more[1]

    def occurrences(self, begin: int, end: int, used: int) -> list[Occurrence]:
        """Where the first `used` sequences hold a range of the domain's tokens, which lies in one shard."""
        found = []
        if self.carried is not None:
            found = held(self.carried, self.stream, (begin, end), Occurrence(self._begin.epoch, 0, 0, 0))
            found = [one for one in found if one.sequence < used]
        rows = self._carried_rows
        in_body = self._body.occurrences(begin, end, max(0, used - rows))
        return found + [one._replace(sequence=one.sequence + rows) for one in in_body]


def _together(pieces: Pieces, rest: Pieces | None) -> Pieces:
    if rest is None:
        return pieces
    return joined(
        Pieces(
            shard=np.concatenate((pieces.shard, rest.shard)),
            document=np.concatenate((pieces.document, rest.document)),
            start=np.concatenate((pieces.start, rest.start)),
            tokens=np.concatenate((pieces.tokens, rest.tokens)),
            continues=np.concatenate((pieces.continues, rest.continues)),
        )
    )


def _split(pieces: Pieces, tokens: int) -> tuple[Pieces | None, Pieces | None]:
    """The first so many tokens of pieces, and the rest."""
    ends = np.cumsum(pieces.tokens)
    whole = int(np.searchsorted(ends, tokens, "right"))
    inside = tokens - (int(ends[whole - 1]) if whole else 0)
    first = Pieces._make(column[: whole + (inside > 0)].copy() for column in pieces)
    rest = Pieces._make(column[whole:].copy() for column in pieces)
    if inside > 0:
        first.tokens[-1] = inside
        rest.start[0] += inside
        rest.tokens[0] -= inside
        rest.continues[0] = True
    return (first if len(first.tokens) else None), (rest if len(rest.tokens) else None)
