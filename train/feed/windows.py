"""A domain's stream cut into sequences: the two ways, each a closed form from any cursor on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from train.feed.best_fit import best_fit
from train.feed.packing import Packed, Packing, concatenate, joined, rows_for
from train.feed.permutation import numbered_key
from train.feed.spans import Placed, chained
from train.feed.stream import Pieces, Stream

WINDOWS_KEPT = 2  # of a domain: a batch seldom reaches over more
ROWS_KEY = np.uint64(0x5851F42D4C957F2D)  # tells the order of rows from that of blocks


class Occurrence(NamedTuple):
    """A part of a document's tokens (of the domain) in one sequence of a source."""

    epoch: int
    sequence: int
    begin: int
    end: int


class Left(NamedTuple):
    """What a domain has left: its cursor in the stream, and pieces before it that no sequence has held yet."""

    cursor: int
    pieces: Pieces | None
    epoch: int


class Body(Protocol):
    """A stream from a cursor on as sequences. sequences: how many; None = endless."""

    @property
    def sequences(self) -> int | None: ...
    def rows(self, first: int, count: int) -> Placed: ...
    def left(self, used: int) -> Left: ...
    def lost(self, first: int, count: int) -> tuple[int, int]: ...
    def occurrences(self, begin: int, end: int, used: int) -> list[Occurrence]: ...


@dataclass(frozen=True, kw_only=True)
class Concatenation:
    """Sequence j has tokens start + j L .. start + (j + 1) L of the stream as targets; `end` None = endless."""

    stream: Stream
    start: int
    end: int | None
    sequence_tokens: int

    @property
    def sequences(self) -> int | None:
        return None if self.end is None else max(0, -(-(self.end - self.start) // self.sequence_tokens))

    def _position(self, sequence: int) -> int:
        position = self.start + sequence * self.sequence_tokens
        return position if self.end is None else max(self.start, min(position, self.end))

    def rows(self, first: int, count: int) -> Placed:
        start, stop = self._position(first), self._position(first + count)
        lead = start > 0
        pieces = self.stream.pieces(*self.stream.ranges(start - lead, stop))
        return concatenate(pieces, lead=lead, sequence_tokens=self.sequence_tokens)

    def left(self, used: int) -> Left:
        return Left(self._position(used), None, 0)

    def lost(self, first: int, count: int) -> tuple[int, int]:
        return 0, 0

    def occurrences(self, begin: int, end: int, used: int) -> list[Occurrence]:
        first, last, length = self.start, self._position(used), self.sequence_tokens
        found = []
        for epoch in range(first // self.stream.tokens, -(-last // self.stream.tokens)):
            for place, token, count in self.stream.places(begin, end, epoch):
                at, stop = max(place, first), min(place + count, last)
                while at < stop:
                    sequence = (at - first) // length
                    upto = min(stop, first + (sequence + 1) * length)
                    found.append(Occurrence(epoch, sequence, token + at - place, token + upto - place))
                    at = upto
        return found


class Run(NamedTuple):
    """Like epochs, or parts of one: the first at `start` of the stream, each of `tokens` cut into `windows`.

    sequences: before this run. epochs: None = endless. rows: of each window.
    """

    sequences: int
    start: int
    tokens: int
    epochs: int | None
    windows: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Windows of the stream, none over an epoch's end, each packed by itself into a number of rows known beforehand."""

    stream: Stream
    start: int
    end: int | None
    sequence_tokens: int
    packing: Packing

    @cached_property
    def _runs(self) -> tuple[Run, ...]:
        epoch, at, sequences = self.stream.tokens, self.start, 0
        found: list[Run] = []
        while self.end is None or at < self.end:
            upto = (at // epoch + 1) * epoch
            if self.end is not None:
                upto = min(upto, self.end)
            tokens = upto - at
            epochs = 1 if tokens < epoch else None if self.end is None else (self.end - at) // epoch
            windows = -(-tokens // (self.packing.window_sequences * self.sequence_tokens))
            rows = self._rows(-(-tokens // windows))
            found.append(Run(sequences, at, tokens, epochs, windows, rows))
            if epochs is None:
                break
            at, sequences = at + epochs * tokens, sequences + epochs * windows * rows
        return tuple(found)

    def _rows(self, tokens: int) -> int:
        # A window takes in parts of at most two blocks more than it holds, and an epoch's short one.
        continuing = tokens // self.stream.block_tokens + 3
        return rows_for(tokens, continuing, self.sequence_tokens, self.packing.slack)

    @property
    def sequences(self) -> int | None:
        if not self._runs:
            return 0
        last = self._runs[-1]
        return None if last.epochs is None else last.sequences + last.epochs * last.windows * last.rows

    def _window(self, sequence: int) -> tuple[int, int, int, int]:
        """The window of a sequence: where it starts and stops in the stream, its rows, and the row of the sequence."""
        run = next(run for run in reversed(self._runs) if run.sequences <= sequence)
        number, row = divmod(sequence - run.sequences, run.rows)
        epoch, window = divmod(number, run.windows)
        start = run.start + epoch * run.tokens
        edges = (start + (window + more) * run.tokens // run.windows for more in (0, 1))
        return next(edges), next(edges), run.rows, row

    @cached_property
    def _kept(self) -> dict[int, Packed]:
        return {}

    def _packed(self, start: int, stop: int, rows: int) -> Packed:
        found = self._kept.pop(start, None)
        if found is None:
            begins, counts = self.stream.ranges(start, stop)
            order = np.argsort(begins)
            found = best_fit(
                joined(self.stream.pieces(begins[order], counts[order])),
                rows=rows,
                sequence_tokens=self.sequence_tokens,
                overflow=self.packing.overflow,
                key=numbered_key(self.stream.key ^ ROWS_KEY, start),
            )
        self._kept[start] = found
        while len(self._kept) > WINDOWS_KEPT:
            self._kept.pop(next(iter(self._kept)), None)
        return found

    def rows(self, first: int, count: int) -> Placed:
        parts, done = [], 0
        while done < count:
            start, stop, rows, row = self._window(first + done)
            take = min(count - done, rows - row)
            part = self._packed(start, stop, rows).take(row, take)
            parts.append(part._replace(row=part.row + np.int32(done)))
            done += take
        return chained(parts)

    def left(self, used: int) -> Left:
        if self.sequences is not None and used >= self.sequences:
            return Left(self.start if self.end is None else max(self.start, self.end), None, 0)
        start, stop, rows, row = self._window(used)
        if row == 0:
            return Left(start, None, 0)
        return Left(stop, self._packed(start, stop, rows).unused(row), start // self.stream.tokens)

    def lost(self, first: int, count: int) -> tuple[int, int]:
        """Tokens cropped and dropped of the windows that begin in these sequences."""
        cropped = dropped = 0
        if self.packing.overflow != "split":
            at = first
            while at < first + count:
                start, stop, rows, row = self._window(at)
                if row == 0:
                    packed = self._packed(start, stop, rows)
                    cropped, dropped = cropped + packed.cropped, dropped + packed.dropped
                at += rows - row
        return cropped, dropped

    def occurrences(self, begin: int, end: int, used: int) -> list[Occurrence]:
        found: list[Occurrence] = []
        epochs = (
            range(self.start // self.stream.tokens, self._window(used - 1)[0] // self.stream.tokens + 1) if used else ()
        )
        for epoch in epochs:
            places = self.stream.places(begin, end, epoch)
            for first in sorted({n for at, _, count in places for n in self._windows_with(at, at + count)}):
                if first < used:
                    packed = self._packed(*self._window(first)[:3])
                    found += held(packed, self.stream, (begin, end), Occurrence(epoch, first, 0, 0))
        return [one for one in found if one.sequence < used]

    def _windows_with(self, start: int, stop: int) -> list[int]:
        """First sequences of the windows that hold positions start .. stop of the stream."""
        found: list[int] = []
        for run in self._runs:
            low = max(start, run.start)
            high = stop if run.epochs is None else min(stop, run.start + run.epochs * run.tokens)
            while low < high:
                epoch, inside = divmod(low - run.start, run.tokens)
                window = inside * run.windows // run.tokens
                if (window + 1) * run.tokens // run.windows <= inside:
                    window += 1
                number = epoch * run.windows + window
                found.append(run.sequences + number * run.rows)
                low = run.start + epoch * run.tokens + (window + 1) * run.tokens // run.windows
        return found


def held(packed: Packed, stream: Stream, tokens: tuple[int, int], first: Occurrence) -> list[Occurrence]:
    """Parts of a range of the domain's tokens (in one shard) in a window whose epoch and first sequence are given."""
    shard, token = stream.to_shard(tokens[0])
    shift = tokens[0] - token
    return [
        Occurrence(first.epoch, first.sequence + row, start + shift, stop + shift)
        for row, start, stop in packed.within(shard, token, tokens[1] - shift)
    ]
