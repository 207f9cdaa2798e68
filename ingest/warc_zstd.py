"""Zstandard frames of a WARC file, walked by their block headers; with the shared dictionary where there is one.

Formats: RFC 8878; the dictionary in a first skippable frame 0x184D2A5D as in the IIPC "WARC with Zstandard" proposal.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

from ingest.packing import MAX_CHUNK, ZSTD_MAGIC
from ingest.warc_frames import PROBE, Damaged, GzipMembers
from ingest.warc_split import begins_record

SKIPPABLE = range(0x184D2A50, 0x184D2A60)
DICTIONARY = 0x184D2A5D
MAX_DICTIONARY = 64 << 20
MAX_BLOCK = 128 << 10


def is_skippable(head: bytes) -> bool:
    """Whether a skippable frame begins the bytes, as the one that holds the dictionary."""
    return int.from_bytes(head[:4], "little") in SKIPPABLE and len(head) >= 8


class Section(io.RawIOBase):
    """Bytes [start, end) of a file as a file of its own."""

    def __init__(self, file: BinaryIO, start: int, end: int) -> None:
        self.file = file
        self.start, self.at, self.end = start, start, end

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = (self.start, self.at, self.end)[whence]
        self.at = min(max(base + offset, self.start), self.end)
        return self.at - self.start

    def tell(self) -> int:
        return self.at - self.start

    def read(self, size: int = -1) -> bytes:
        left = self.end - self.at
        self.file.seek(self.at)
        data = self.file.read(left if size < 0 else min(size, left))
        self.at += len(data)
        return data


class ZstdMembers(GzipMembers):
    """Zstandard frames as members."""

    name = "zstd"
    magic = ZSTD_MAGIC

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.dictionary = self._read_dictionary()

    def chunks(self, offset: int) -> Iterator[bytes]:
        from fastwarc.stream_io import ZstdReader

        self.position = offset
        end = self._frame_end(offset)
        reader = ZstdReader(Section(self.file, offset, end), dictionary=self.dictionary)
        try:
            while chunk := reader.read(MAX_CHUNK):
                yield chunk
        except OSError as error:
            checksum = "checksum" in str(error)
            raise Damaged(
                "zstd", "damaged zstd frame" + (" (checksum)" if checksum else ""), checksum=checksum
            ) from None
        self.position = end

    def begins(self, offset: int) -> bool:
        self.file.seek(offset)
        head = self.file.read(4)
        if offset == 0 and int.from_bytes(head, "little") in SKIPPABLE:
            return True
        return head == self.magic and self._unpacks(offset)

    def _unpacks(self, offset: int) -> bool:
        from fastwarc.stream_io import ZstdReader

        try:
            end = self._frame_end(offset)
            head = ZstdReader(Section(self.file, offset, end), dictionary=self.dictionary).read(PROBE)
        except (OSError, Damaged):
            return False
        return begins_record(head.lstrip(b"\r\n"))

    def _frame_end(self, offset: int) -> int:
        """The offset after the frame, by its headers alone. Raises Damaged."""
        self.file.seek(offset)
        head = self.file.read(18)
        magic = int.from_bytes(head[:4], "little")
        if magic in SKIPPABLE:
            return offset + 8 + int.from_bytes(head[4:8], "little")
        if head[:4] != self.magic or len(head) < 6:
            raise Damaged("zstd", "no zstd frame begins here")
        descriptor = head[4]
        single = descriptor >> 5 & 1
        size_bytes = (1 if single else 0, 2, 4, 8)[descriptor >> 6]
        at = offset + 5 + (not single) + (0, 1, 2, 4)[descriptor & 3] + size_bytes
        last = False
        while not last:
            self.file.seek(at)
            block = self.file.read(3)
            if len(block) < 3:
                raise Damaged("truncated", "the file ends in the middle of a zstd frame")
            value = int.from_bytes(block, "little")
            last, kind, size = bool(value & 1), value >> 1 & 3, value >> 3
            if kind == 3 or size > MAX_BLOCK:
                raise Damaged("zstd", "damaged zstd block header")
            at += 3 + (1 if kind == 1 else size)
        at += 4 if descriptor & 4 else 0
        self.file.seek(0, 2)
        if at > self.file.tell():
            raise Damaged("truncated", "the file ends in the middle of a zstd frame")
        return at

    def _read_dictionary(self) -> bytes | None:
        self.file.seek(0)
        head = self.file.read(8)
        if int.from_bytes(head[:4], "little") != DICTIONARY:
            return None
        size = int.from_bytes(head[4:8], "little")
        data = self.file.read(min(size, MAX_DICTIONARY))
        if data.startswith(ZSTD_MAGIC):
            from fastwarc.stream_io import ZstdReader

            try:
                return bytes(ZstdReader(io.BytesIO(data)).read(MAX_DICTIONARY))
            except OSError:
                return None
        return data
