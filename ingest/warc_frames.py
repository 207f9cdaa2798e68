"""The records of a WARC or ARC file's piece, with damage located and passed over.

A gzip or zstd file is read member by member; a piece owns the members whose first byte lies in it. After damage
reading goes on at the next member (or, unpacked, the next record header) that proves itself by what it holds.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from ingest.packing import CHUNK, GZIP_MAGIC, MAX_CHUNK, packing_of
from ingest.units import Piece
from ingest.warc_split import Malformed, Record, Splitter, begins_record

PROBE = 4096  # compressed bytes looked at to tell a member from chance; chance passes with about 2**-80
SEARCH = 16 << 20  # how far into a file that begins with damage its packing is looked for
NEXT_RECORD = re.compile(rb"\n(?=WARC/\d+\.\d+[ \t]*\r?\n)")


@dataclass(frozen=True, kw_only=True)
class Broken:
    """Bytes [start, end) of the file that gave no record."""

    start: int
    end: int
    error: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A record and the file offset of its member (of itself, where nothing is packed)."""

    record: Record
    offset: int


def frames(file: BinaryIO, piece: Piece, max_block: int) -> Iterator[Placed | Broken]:
    """Records of the members that start in the piece, and the ranges that are damaged."""
    members = _members_of(file, piece)
    if members is not None:
        yield from _members(members, file, piece, max_block)
    elif piece.part == 0:  # bytes cannot tell a record's start from a page that quotes one: not cut
        yield from _plain(file, piece, max_block)


def _members_of(file: BinaryIO, piece: Piece) -> GzipMembers | None:
    """How the file is packed, or None where it is not: by its first bytes, else by the first member in it."""
    from ingest.warc_zstd import ZstdMembers, is_skippable

    head = file.read(PROBE)
    packing = packing_of(head)
    if packing == "gz":
        return GzipMembers(file)
    if packing == "zst" or is_skippable(head):
        return ZstdMembers(file)
    if not head or begins_record(head.lstrip(b"\r\n")):
        return None
    kinds: tuple[GzipMembers, ...] = (GzipMembers(file), ZstdMembers(file))
    return next((kind for kind in kinds if kind.find(0, min(piece.bytes, SEARCH)) is not None), None)


def _members(kind: GzipMembers, file: BinaryIO, piece: Piece, max_block: int) -> Iterator[Placed | Broken]:
    offset: int | None = piece.start
    if piece.start > 0 or not kind.begins(piece.start):
        offset = kind.find(piece.start, piece.end)
        if piece.start == 0 and offset != 0:
            yield Broken(
                start=0, end=piece.end if offset is None else offset, error="gzip", message="no member begins here"
            )
    while offset is not None and offset < piece.end:
        splitter = Splitter(max_block)
        waiting: Record | None = None  # the newest record waits until the member proves whole, or another follows
        several = False
        fault: tuple[str, str] | None = None
        malformed: str | None = None
        following: int | None
        try:
            for chunk in kind.chunks(offset):
                if malformed is not None:
                    continue  # only looking for the member's end
                try:
                    records = splitter.feed(chunk)
                except Malformed as error:
                    records, malformed = splitter.taken, str(error)
                for record in records:
                    if waiting is not None:
                        several = True
                        yield Placed(record=waiting, offset=offset)
                    waiting = record
            following = kind.position
            if malformed is None:
                try:
                    records = [last] if (last := splitter.close()) is not None else []
                except Malformed as error:
                    records, malformed = [], str(error)
                for record in filter(None, (waiting, *records)):
                    yield Placed(record=record, offset=offset)
            elif waiting is not None:
                several = True
                yield Placed(record=waiting, offset=offset)
            if malformed is not None:
                fault = ("truncated" if "ends in" in malformed else "bad_record", malformed)
        except Damaged as error:
            if waiting is not None and several and not error.checksum:
                yield Placed(record=waiting, offset=offset)
            fault = (error.error, str(error))
            following = kind.find(offset + 1, piece.bytes)
        if fault is not None:
            begin = kind.position if several and kind.position < (following or piece.bytes) else offset
            end = piece.bytes if following is None else following
            yield Broken(start=begin, end=max(end, begin), error=fault[0], message=fault[1])
        offset = following
        if following is not None and following < piece.bytes and not kind.begins(following):
            offset = kind.find(following, piece.bytes)
            end = piece.bytes if offset is None else offset
            if not kind.is_padding(following, end):
                yield Broken(start=following, end=end, error=kind.name, message="bytes that begin no member")


class Damaged(ValueError):
    """A member that cannot be unpacked. checksum: it unpacks, but what came out is not what was packed."""

    def __init__(self, error: str, message: str, *, checksum: bool = False) -> None:
        super().__init__(message)
        self.error = error
        self.checksum = checksum


class GzipMembers:
    """Gzip members of a file. `position` is the offset after the last byte that was used."""

    name = "gzip"
    magic = GZIP_MAGIC

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.position = 0

    def chunks(self, offset: int) -> Iterator[bytes]:
        """The unpacked chunks of the member at `offset`. Raises Damaged."""
        self.file.seek(offset)
        self.position = offset
        inflater = zlib.decompressobj(31)
        pending = b""
        while not inflater.eof:
            pending = pending or self.file.read(CHUNK)
            if not pending:
                raise Damaged("truncated", "the file ends in the middle of a gzip member")
            try:
                out = inflater.decompress(pending, MAX_CHUNK)
            except zlib.error as error:
                checksum = "check" in str(error)
                raise Damaged(
                    "gzip", "damaged gzip member" + (" (checksum)" if checksum else ""), checksum=checksum
                ) from None
            rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            self.position += len(pending) - len(rest)
            pending = rest
            if out:
                yield out

    def begins(self, offset: int) -> bool:
        """Whether a member that holds a record begins at `offset`."""
        self.file.seek(offset)
        return self._holds_record(self.file.read(PROBE))

    def _holds_record(self, packed: bytes) -> bool:
        if not packed.startswith(self.magic) or len(packed) < 11 or packed[3] & 0xE0:
            return False
        try:
            head = zlib.decompressobj(31).decompress(packed, PROBE)
        except zlib.error:
            return False
        return begins_record(head.lstrip(b"\r\n"))

    def find(self, start: int, end: int) -> int | None:
        """The first offset in [start, end) at which a member that holds a record begins."""
        base, held = start, b""
        while base < end:
            self.file.seek(base + len(held))
            block = self.file.read(MAX_CHUNK)
            window = held + block
            at = window.find(self.magic)
            while at >= 0 and base + at < end:
                if self.begins(base + at):
                    return base + at
                at = window.find(self.magic, at + 1)
            if not block:
                return None
            keep = len(self.magic) - 1
            base, held = base + len(window) - keep, window[-keep:]
        return None

    def is_padding(self, start: int, end: int) -> bool:
        """Whether [start, end) are zero bytes or line ends, as some writers leave behind a member."""
        self.file.seek(start)
        return not self.file.read(min(end - start, MAX_CHUNK)).strip(b"\0\r\n")


def _plain(file: BinaryIO, piece: Piece, max_block: int) -> Iterator[Placed | Broken]:
    base = 0
    while base < piece.bytes:
        file.seek(base)
        splitter = Splitter(max_block)
        try:
            while chunk := file.read(MAX_CHUNK):
                for record in splitter.feed(chunk):
                    yield Placed(record=record, offset=base + record.start)
            last = splitter.close()
            if last is not None:
                yield Placed(record=last, offset=base + last.start)
            return
        except Malformed as error:
            for record in splitter.taken:
                yield Placed(record=record, offset=base + record.start)
            begin = base + error.offset
            following = _next_plain(file, begin)
            end = piece.bytes if following is None else following
            cut = "truncated" if following is None and "ends in" in str(error) else "bad_record"
            yield Broken(start=begin, end=end, error=cut, message=str(error))
            base = end


def _next_plain(file: BinaryIO, begin: int) -> int | None:
    """The offset of the next record header after `begin`."""
    file.seek(begin)
    base, held = begin, b""
    while block := file.read(MAX_CHUNK):
        window = held + block
        if match := NEXT_RECORD.search(window):
            return base + match.end()
        keep = window[-64:]
        base, held = base + len(window) - len(keep), keep
    return None
