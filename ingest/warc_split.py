"""One unpacked stream of WARC or ARC bytes to its records: pushed in, so that any unpacker can feed it."""

from __future__ import annotations

import re
from dataclasses import dataclass

WARC_LENGTH = re.compile(rb"^content-length[ \t]*:[ \t]*(\d{1,18})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
WARC_START = re.compile(rb"WARC/\d+\.\d+[ \t]*\r?\n")
ARC_START = re.compile(rb"([a-zA-Z][a-zA-Z0-9+.\-]*:[^\r\n]*) (\S+) (\d{8,17}) (\S+) (\d{1,18})\r?\n")
WARC_BEGIN = b"WARC/"
HEAD_END = re.compile(rb"\r?\n\r?\n")
MAX_HEAD = 1 << 20
WARC_AFTER = b"\r\n\r\n"
ARC_AFTER = (b"\n", b"\r\n")
NEWLINES = b"\r\n"


@dataclass(frozen=True, kw_only=True)
class Record:
    """One record: its header (with the blank line), its block, and where it starts in the stream.

    block is None where it is above the limit; `length` is the block's size either way.
    """

    head: bytes
    block: bytes | None
    length: int
    start: int

    @property
    def bytes(self) -> int:
        return len(self.head) + self.length


class Malformed(ValueError):
    """The stream stops being records at `offset` (of the stream)."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


def begins_record(data: bytes) -> bool:
    """Whether unpacked bytes begin a WARC or an ARC record."""
    return data.startswith(WARC_BEGIN) or ARC_START.match(data) is not None


class Splitter:
    """Feed it a stream; it returns each record once what follows it looks right too.

    A record is followed by its blank lines (CR LF CR LF; one line end in ARC), or at least by another record's header
    or the stream's end. So a record whose length is wrong is not returned but told by Malformed.
    """

    def __init__(self, max_block: int) -> None:
        self.max_block = max_block
        self.buffer = bytearray()
        self.offset = 0  # of buffer[0] in the stream
        self.held: Record | None = None
        self.skip = 0  # bytes of an oversize block still to pass
        self.head: tuple[bytes, int] | None = None  # header and length of the record whose block is awaited
        self.start = 0
        self.taken: list[Record] = []

    def feed(self, data: bytes) -> list[Record]:
        """The records that these bytes confirm. Raises Malformed; `taken` holds those before it."""
        self.buffer += data
        self.taken = []
        while self._step():
            pass
        return self.taken

    def _step(self) -> bool:
        if self.skip:
            passed = min(self.skip, len(self.buffer))
            self._drop(passed)
            self.skip -= passed
            return not self.skip
        if self.head is None:
            return self._header()
        head, length = self.head
        if len(self.buffer) < length:
            return False
        self._hold(Record(head=head, block=bytes(self.buffer[:length]), length=length, start=self.start))
        self._drop(length)
        return True

    def _header(self) -> bool:
        if self.held is not None and self.skip == 0:
            after = WARC_AFTER if self.held.head.startswith(WARC_BEGIN) else ARC_AFTER
            if self.buffer.startswith(after):
                self._confirm()
            elif len(self.buffer) < len(WARC_AFTER):
                return False
        blank = len(self.buffer) - len(self.buffer.lstrip(NEWLINES))
        self._drop(blank)
        window = bytes(self.buffer[:MAX_HEAD])
        if len(window) < len(WARC_BEGIN):
            return False
        end = self._head_end(window)
        if end is None:
            if len(window) >= MAX_HEAD or not self._may_begin(window):
                raise Malformed(self.held.start if self.held else self.offset, "bytes that begin no record")
            return False
        length = self._length(window[:end])
        self._confirm()
        if length is None:
            raise Malformed(self.offset, "a record header without a length")
        self.start = self.offset
        self._drop(end)
        if length > self.max_block:
            self._hold(Record(head=window[:end], block=None, length=length, start=self.start))
            self.skip = length
        else:
            self.head = (window[:end], length)
        return True

    def _confirm(self) -> None:
        if self.held is not None:
            self.taken.append(self.held)
            self.held = None

    @staticmethod
    def _head_end(window: bytes) -> int | None:
        if window.startswith(WARC_BEGIN):
            found = HEAD_END.search(window)
            return found.end() if found and WARC_START.match(window) else None
        found = ARC_START.match(window)
        return found.end() if found else None

    @staticmethod
    def _may_begin(window: bytes) -> bool:
        """Whether more bytes could still make it a record's header."""
        if window.startswith(WARC_BEGIN):
            return b"\n" not in window or WARC_START.match(window) is not None
        return b"\n" not in window and len(window) < 1 << 16 and window[:1].isalpha()

    @staticmethod
    def _length(head: bytes) -> int | None:
        pattern = WARC_LENGTH.search(head) if head.startswith(WARC_BEGIN) else None
        if pattern is not None:
            return int(pattern[1])
        arc = ARC_START.match(head)
        return int(arc[5]) if arc else None

    def _hold(self, record: Record) -> None:
        self.held, self.head = record, None

    def _drop(self, size: int) -> None:
        del self.buffer[:size]
        self.offset += size

    def close(self) -> Record | None:
        """The last record, at the stream's good end. Raises Malformed where a record is cut."""
        if self.head is not None and (whole := _whole_message(bytes(self.buffer))) is not None:
            self._hold(Record(head=self.head[0], block=whole, length=len(whole), start=self.start))
            self.buffer.clear()
        if self.skip or self.head is not None:
            start = self.held.start if self.skip and self.held else self.start
            raise Malformed(start, "the stream ends in the middle of a record")
        if self.buffer.strip(NEWLINES):
            raise Malformed(self.held.start if self.held else self.offset, "bytes that begin no record")
        last, self.held = self.held, None
        return last


def _whole_message(block: bytes) -> bytes | None:
    """A cut block whose HTTP message is whole by its own Content-Length (a header edited by hand), else None."""
    end = HEAD_END.search(block)
    length = WARC_LENGTH.search(block, 0, end.start() + 1) if end else None
    if end is None or length is None or not block.startswith(b"HTTP/"):
        return None
    return block if len(block) - end.end() >= int(length[1]) else None
