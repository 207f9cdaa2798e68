"""CSV with a header line; quoted fields may hold line ends. Rows that do not fit the header are lost, located."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from ingest.fields import BadRow, row_of, wanted
from ingest.lines import Block, Lines
from ingest.packing import open_input
from ingest.records import Gatherer, Records
from ingest.rows import records_of
from ingest.source import Source
from ingest.units import Piece

BOM = "\ufeff"
BLOCK_BYTES = 4 << 20


class _Reading:
    """The file's lines as text, with the bytes and lines that were used. Bytes that are no UTF-8 become surrogates."""

    def __init__(self, file: BinaryIO, piece: Piece, limit: int) -> None:
        self.lines = Lines(file, piece, block_bytes=BLOCK_BYTES, max_line=limit)
        self.bytes = 0
        self.line = 0

    def __iter__(self) -> Iterator[str]:
        for block in self.lines:
            if not isinstance(block, Block):
                self.bytes += block.bytes
                self.line += 1
                yield "\n"
                continue
            for line in block.data.splitlines(keepends=True):
                self.bytes += len(line)
                self.line += line.endswith((b"\n", b"\r"))
                yield line.decode("utf-8", "surrogateescape")


def read_csv(piece: Piece, gatherer: Gatherer) -> Iterator[Records]:
    """Rows as documents; a file is never cut, since a quoted field may hold any line."""
    if piece.part != 0:
        return
    source = gatherer.source
    csv.field_size_limit(source.max_record_bytes)
    whole = Piece(path=piece.path, name=piece.name, start=0, end=piece.bytes, bytes=piece.bytes)
    with open_input(piece.path) as file:
        reading = _Reading(file, whole, source.max_record_bytes)
        good: list[dict[str, Any]] = []
        size = 0
        for line, length, row in _rows(source, reading):
            if line == 0:
                gatherer.lose(f"{piece.path}@0-{piece.bytes}", "bad_csv", str(row), piece.bytes)
                break
            if isinstance(row, BadRow):
                gatherer.lose(f"{piece.path}:{line}", row.error, str(row), length)
            else:
                good.append({**row, "_bytes": length})
                size += length
            if len(good) >= gatherer.batch_rows or size >= gatherer.batch_bytes:
                yield records_of(good, gatherer)
                good, size = [], 0
        damage = reading.lines.damage
        if damage is not None:
            left = piece.bytes - damage.offset + reading.lines.partial
            gatherer.lose(f"{piece.path}@{damage.offset}-{piece.bytes}", damage.error, damage.message, left)
        if good or gatherer.lost:
            yield records_of(good, gatherer)


def _rows(source: Source, reading: _Reading) -> Iterator[tuple[int, int, dict[str, Any] | BadRow]]:
    """(line where the row begins, its bytes, the row or what is wrong with it); line 0: the whole file is unusable."""
    lines = iter(reading)
    rows = csv.reader(lines, strict=True)
    header: list[str] | None = None
    while True:
        line, before = reading.line + 1, reading.bytes
        try:
            values = next(rows)
        except StopIteration:
            return
        except csv.Error:
            fault = BadRow("bad_csv", "not valid CSV: an open quote, or characters after a closing one")
            yield line, reading.bytes - before, fault
            rows = csv.reader(lines, strict=True)
            continue
        if header is None:
            header = [name.removeprefix(BOM).strip() for name in values]
            twice = next((field for field in wanted(source).values() if header.count(field) > 1), None)
            if twice is not None:
                yield 0, 0, BadRow("bad_csv", f"the header has {header.count(twice)} columns of the name {twice!r}")
                return
        elif values:
            yield line, reading.bytes - before, _row(source, header, values)


def _row(source: Source, header: list[str], values: list[str]) -> dict[str, Any] | BadRow:
    if len(values) != len(header):
        return BadRow("bad_csv", f"{len(values)} fields where the header has {len(header)}")
    named = dict(zip(header, values, strict=True))
    try:
        return row_of(source, {name: _typed(source, name, value) for name, value in named.items()})
    except BadRow as fault:
        return fault
    except Exception as error:
        return BadRow("bad_type", f"cannot be made a document ({type(error).__name__})")


def _typed(source: Source, name: str, value: str) -> Any:
    """CSV knows only strings: an empty field is null, except text; other declared types are read as JSON."""
    if name == source.text_field and source.format != "messages":
        return value
    if value == "":
        return None
    kind = "messages" if name == source.messages_field and source.format == "messages" else source.columns.get(name)
    if kind in (None, "string", "timestamp"):
        return value
    try:
        return json.loads(value.lower() if kind == "bool" else value)
    except (ValueError, RecursionError) as error:
        raise BadRow("bad_type", f"field {name!r} is not {kind}") from error
