"""Lines of a table file: those that start in a piece, in blocks of whole lines, with their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from ingest.packing import MAX_CHUNK, Damage, Unpacked
from ingest.units import Piece

STRIPE = 4 << 20  # of unpacked bytes: how the lines of a compressed file are dealt to its parts


@dataclass(frozen=True, kw_only=True)
class Block:
    """Whole lines; `line` is the number of the first, from 1."""

    data: bytes
    line: int


@dataclass(frozen=True, kw_only=True)
class Oversize:
    """A line above the limit; it was skipped."""

    line: int
    bytes: int


class Lines:
    """The lines that start in a piece.

    A plain file is cut by bytes. A compressed one cannot be entered in the middle: each part unpacks it all and takes
    every parts-th stripe of unpacked bytes, so the deal depends neither on the unpacker nor on its buffers.
    `damage` and `partial` (bytes of the line that the damage cut) are set once the lines are exhausted.
    """

    def __init__(self, file: BinaryIO, piece: Piece, *, block_bytes: int, max_line: int) -> None:
        self.file = file
        self.piece = piece
        self.block_bytes = block_bytes
        self.max_line = max_line
        self.damage: Damage | None = None
        self.partial = 0

    def __iter__(self) -> Iterator[Block | Oversize]:
        held: list[bytes] = []
        size, first = 0, 1
        skipped = 0  # bytes of an oversize line so far
        for jump, data in self._segments():
            if jump is not None:
                yield from self._flush(b"".join(held), first, skipped)
                held, size, skipped, first = [], 0, 0, jump
            if skipped:
                cut = data.find(b"\n") + 1
                skipped += cut or len(data)
                if not cut:
                    continue
                yield Oversize(line=first, bytes=skipped)
                skipped, first, data = 0, first + 1, data[cut:]
            held.append(data)
            size += len(data)
            if size < self.block_bytes:
                continue
            joined = b"".join(held)
            cut = joined.rfind(b"\n") + 1
            if cut:
                yield Block(data=joined[:cut], line=first)
                first += joined.count(b"\n", 0, cut)
            rest = joined[cut:]
            if len(rest) > self.max_line:
                skipped, rest = len(rest), b""
            held, size = [rest], len(rest)
        yield from self._flush(b"".join(held), first, skipped)

    def _flush(self, joined: bytes, first: int, skipped: int) -> Iterator[Block | Oversize]:
        if skipped:
            yield Oversize(line=first, bytes=skipped)
        elif self.damage is not None:
            cut = joined.rfind(b"\n") + 1
            joined, self.partial = joined[:cut], len(joined) - cut
        if joined:
            yield Block(data=joined, line=first)

    def _segments(self) -> Iterator[tuple[int | None, bytes]]:
        """Bytes of the lines that start in the piece; with their first line's number where they do not follow on."""
        unpacked = Unpacked(self.file)
        if unpacked.packing == "none":
            yield from self._plain()
            return
        if self.piece.parts == 1:
            for chunk in unpacked:
                yield None, chunk
        else:
            yield from self._dealt(iter(unpacked))
        self.damage = unpacked.damage

    def _plain(self) -> Iterator[tuple[int | None, bytes]]:
        """Bytes from the first line start at or after `start` to the end of the last line that starts before `end`."""
        start, end = self.piece.start, self.piece.end
        position = max(start - 1, 0)
        self.file.seek(position)
        entered = start == 0
        while chunk := self.file.read(MAX_CHUNK):
            at, position = position, position + len(chunk)
            if not entered:
                cut = chunk.find(b"\n") + 1
                if not cut:
                    continue
                if at + cut >= end:
                    return  # no line starts in the piece
                entered, chunk, at = True, chunk[cut:], at + cut
            if position < end:
                yield None, chunk
                continue
            stop = chunk.find(b"\n", max(end - 1 - at, 0)) + 1
            yield None, chunk[:stop] if stop else chunk
            if stop:
                return

    def _dealt(self, chunks: Iterator[bytes]) -> Iterator[tuple[int | None, bytes]]:
        """The lines that start in every parts-th stripe of the unpacked bytes."""
        position, line = 0, 1
        begins, ours, last_ours = True, False, False  # at a line's start; the open line is ours; the last bytes were
        for data in self._by_stripe(chunks):
            mine = (position // STRIPE) % self.piece.parts == self.piece.part
            position += len(data)
            head = 0 if begins else (data.find(b"\n") + 1 or len(data))
            if head and ours:
                yield None, data[:head]
            line += data.count(b"\n", 0, head)
            if head < len(data):
                if mine:
                    yield (None if last_ours else line), data[head:]
                line += data.count(b"\n", head)
                ours = last_ours = mine
            begins = data.endswith(b"\n")

    @staticmethod
    def _by_stripe(chunks: Iterator[bytes]) -> Iterator[bytes]:
        position = 0
        for chunk in chunks:
            at = 0
            while at < len(chunk):
                size = min(len(chunk) - at, STRIPE - position % STRIPE)
                yield chunk[at : at + size]
                at, position = at + size, position + size

    def number_of_first(self) -> int:
        """The file's number of the line that starts the piece: read from the start, so only where a place is told."""
        if self.piece.start == 0 or self.piece.parts == 1:
            return 1
        back = self.file.tell()
        self.file.seek(0)
        if Unpacked(self.file).packing != "none":
            self.file.seek(back)
            return 1  # _dealt counts from the file's start
        self.file.seek(0)
        line, left = 1, self.piece.start
        while left > 0 and (chunk := self.file.read(min(left, MAX_CHUNK))):
            line, left = line + chunk.count(b"\n"), left - len(chunk)
        self.file.seek(self.piece.start - 1)
        begins = self.file.read(1) == b"\n"
        self.file.seek(back)
        return line if begins else line + 1
