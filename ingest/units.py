"""The units of work: small files together, big ones by byte range, from the listing alone.

A unit is what one task reads, and what a resume repeats at most. Because the cut depends only on names and sizes, any
number of workers and any engine makes the same units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ingest.inputs import InputFile
from ingest.source import WARC_FORMATS, Source

UNIT_BYTES = 64 << 20
MAX_PIECES = 4096  # files a unit: bounds what a resume repeats where files are tiny
MAX_PACKED_PARTS = 8  # each part of a compressed table unpacks the whole file, so parts are few
PACKED_SUFFIXES = (".gz", ".zst", ".gzip", ".zstd")


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Bytes [start, end) of a file; what begins in them is read here, wherever it ends.

    name: the file's path below its glob's root. bytes: the whole file's size.
    part, parts: this piece's number among its file's pieces.
    """

    path: str
    name: str
    start: int
    end: int
    bytes: int
    part: int = 0
    parts: int = 1


@dataclass(frozen=True, kw_only=True)
class Unit:
    """What one task reads: pieces of one source, in listing order."""

    source: Source
    pieces: tuple[Piece, ...]

    @property
    def bytes(self) -> int:
        return sum(piece.end - piece.start for piece in self.pieces)


def plan_units(source: Source, files: Sequence[InputFile], unit_bytes: int = UNIT_BYTES) -> tuple[Unit, ...]:
    """Cut a listing into units of about `unit_bytes` of the files' own (compressed) bytes."""
    units: list[Unit] = []
    together: list[Piece] = []
    size = 0

    def close() -> None:
        nonlocal together, size
        if together:
            units.append(Unit(source=source, pieces=tuple(together)))
        together, size = [], 0

    for file in files:
        parts = _parts(source, file, unit_bytes)
        if parts > 1:
            close()
            units += [Unit(source=source, pieces=(piece,)) for piece in _cut(file, parts)]
            continue
        if together and (size + file.bytes > unit_bytes or len(together) >= MAX_PIECES):
            close()
        together += _cut(file, 1)
        size += file.bytes
    close()
    return tuple(units)


def _parts(source: Source, file: InputFile, unit_bytes: int) -> int:
    """How many pieces a file is cut into. A WARC that is not compressed, a csv and a lone document stay whole."""
    wanted = -(-file.bytes // unit_bytes)
    packed = file.path.lower().endswith(PACKED_SUFFIXES)
    if source.format in WARC_FORMATS:
        return wanted if packed else 1
    if source.format in ("jsonl", "messages"):
        return min(wanted, MAX_PACKED_PARTS) if packed else wanted
    return wanted if source.format == "parquet" else 1


def _cut(file: InputFile, parts: int) -> list[Piece]:
    edges = [file.bytes * i // parts for i in range(parts + 1)]
    return [
        Piece(path=file.path, name=file.name, start=a, end=b, bytes=file.bytes, part=i, parts=parts)
        for i, (a, b) in enumerate(zip(edges[:-1], edges[1:], strict=True))
    ]
