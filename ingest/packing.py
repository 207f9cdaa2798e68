"""Opening files and unpacking gz and zst as a stream of chunks, told from the bytes, with damage located."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

GZIP_MAGIC = b"\x1f\x8b\x08"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
CHUNK = 64 << 10
ZSTD_READ = 4 << 10
MAX_CHUNK = 1 << 20  # of unpacked bytes at a time: bounds what one packed chunk can swell to


def open_input(path: str) -> BinaryIO:
    """Open for reading, seekable: a local path, as it stands, or any fsspec URL."""
    if "://" not in path:
        return open(path, "rb")
    import fsspec

    return cast(BinaryIO, fsspec.open(path, "rb").open())


def packing_of(head: bytes) -> str:
    """gz, zst or none, by the first bytes."""
    if head.startswith(GZIP_MAGIC):
        return "gz"
    return "zst" if head.startswith(ZSTD_MAGIC) else "none"


@dataclass(frozen=True, kw_only=True)
class Damage:
    """Where a packed stream breaks: file offset of the first byte that could not be used, and why."""

    offset: int
    error: str
    message: str


class Unpacked:
    """The unpacked chunks of a file from where it stands to its end; `damage` is set when they end early."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        head = file.read(4)
        file.seek(-len(head), 1)
        self.packing = packing_of(head)
        self.damage: Damage | None = None

    def __iter__(self) -> Iterator[bytes]:
        if self.packing == "gz":
            return self._gzip()
        if self.packing == "zst":
            return self._zstd()
        return self._plain()

    def _plain(self) -> Iterator[bytes]:
        while chunk := self.file.read(MAX_CHUNK):
            yield chunk

    def _gzip(self) -> Iterator[bytes]:
        inflater = zlib.decompressobj(31)
        offset = self.file.tell()  # of the first byte not yet consumed
        pending = b""
        started = False
        while True:
            if not pending:
                pending = self.file.read(CHUNK)
                if not pending:
                    break
            if not started and not pending.startswith(GZIP_MAGIC[: len(pending)]):
                if pending.strip(b"\0"):
                    self.damage = Damage(offset=offset, error="gzip", message="bytes that are no gzip follow a member")
                    return
                offset, pending = offset + len(pending), b""  # zero padding after the last member
                continue
            started = True
            try:
                out = inflater.decompress(pending, MAX_CHUNK)
            except zlib.error as error:
                self.damage = Damage(offset=offset, error="gzip", message=f"damaged gzip data ({_code(error)})")
                return
            rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            offset, pending = offset + len(pending) - len(rest), rest
            if inflater.eof:
                inflater, started = zlib.decompressobj(31), False
            if out:
                yield out
        if started:
            self.damage = Damage(
                offset=offset, error="truncated", message="the gzip data end in the middle of a member"
            )

    def _zstd(self) -> Iterator[bytes]:
        import pyarrow as pa

        held: list[bytes] = []
        try:
            stream: Any = pa.CompressedInputStream(pa.PythonFile(self.file, mode="r"), "zstd")
            # Small reads: one that meets damage gives nothing of what it had unpacked before.
            while chunk := stream.read(ZSTD_READ):
                held.append(chunk)
                if len(held) * ZSTD_READ >= CHUNK * 4:
                    yield b"".join(held)
                    held = []
        except (OSError, ValueError) as error:
            cut = "runcated" in str(error)
            self.damage = Damage(
                offset=self.file.tell(),
                error="truncated" if cut else "zstd",
                message="the zstd data end in the middle of a frame" if cut else "damaged zstd data",
            )
        if held:
            yield b"".join(held)


def _code(error: zlib.error) -> str:
    """zlib's own words end in a fixed phrase; nothing of the data is in them."""
    return str(error).rsplit(":", 1)[-1].strip()
