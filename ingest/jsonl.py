"""JSON lines: whole blocks parsed at once into columns; a block with a fault is parsed line by line, so that only the
faulty lines are lost, each with its place."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pj

from ingest.dates import instants
from ingest.fields import BadRow, dates, row_of, wanted
from ingest.lines import Block, Lines
from ingest.packing import open_input
from ingest.records import Gatherer, Records, build_batch, drops_batch
from ingest.rows import records_of
from ingest.source import Source
from ingest.units import Piece

BLOCK_BYTES = 4 << 20
BLANK = b" \t\r\n"
BOM = b"\xef\xbb\xbf"


def read_jsonl(piece: Piece, gatherer: Gatherer) -> Iterator[Records]:
    """Rows of the lines that start in the piece. Lines that are no document row are lost, as file:line."""
    source = gatherer.source
    with open_input(piece.path) as file:
        block_bytes = max(min(gatherer.batch_bytes, BLOCK_BYTES), 1)
        lines = Lines(file, piece, block_bytes=block_bytes, max_line=source.max_record_bytes)
        ground: int | None = None
        for block in lines:
            if isinstance(block, Block):
                if (columns := _at_once(source, block.data, first=block.line == 1)) is not None:
                    if (before := gatherer.take()) is not None:
                        yield before
                    yield from _slices(source, columns, gatherer.batch_rows, gatherer.batch_bytes)
                    continue
                ground = lines.number_of_first() if ground is None else ground
                yield from _by_line(piece, block, ground - 1, gatherer)
            else:
                ground = lines.number_of_first() if ground is None else ground
                place = f"{piece.path}:{ground - 1 + block.line}"
                gatherer.lose(
                    place, "too_large", f"a line of {block.bytes} bytes is above max_record_bytes", block.bytes
                )
        _tell_damage(piece, lines, gatherer)
        if (last := gatherer.take()) is not None:
            yield last


def _tell_damage(piece: Piece, lines: Lines, gatherer: Gatherer) -> None:
    if lines.damage is None or piece.part != 0:
        return  # every part of a compressed file meets the same damage; the first one tells it
    offset = min(lines.damage.offset, piece.bytes)
    gatherer.lose(
        f"{piece.path}@{offset}-{piece.bytes}",
        lines.damage.error,
        lines.damage.message,
        piece.bytes - offset + lines.partial,
    )


def _at_once(source: Source, data: bytes, *, first: bool) -> dict[str, pa.Array] | None:
    """As `_columns`; None also for what Arrow fails at in a way that is not foreseen. The lines tell which it was."""
    try:
        return _columns(source, data, first=first)
    except Exception:
        return None


def _columns(source: Source, data: bytes, *, first: bool) -> dict[str, pa.Array] | None:
    """The block's rows as columns, or None where any line needs a closer look."""
    if source.format == "messages" or (first and data.startswith(BOM)):
        return None
    sizes = _sizes(data)
    if sizes is None or not _is_utf8(data):
        return None
    fields = wanted(source)
    table = _parse(source, data, fields, pa.string()) or _parse(source, data, fields, pa.int64())
    if table is None or table.num_rows != len(sizes) or table.column(source.text_field).null_count:
        return None
    columns = {column: _whole(table.column(field)) for column, field in fields.items()}
    columns["source_id"] = columns["source_id"].cast(pa.string())
    columns["date"] = dates(columns["date"])
    for column, kind in source.columns.items():
        if kind == "timestamp" and instants(columns[column]).null_count != columns[column].null_count:
            return None
    columns["_bytes"] = pa.array(sizes)
    return columns


def _parse(source: Source, data: bytes, fields: dict[str, str], id_type: pa.DataType) -> pa.Table | None:
    """The block as a table of the wanted fields; ids are strings in one source and whole numbers in another."""
    schema = pa.schema(
        [(field, id_type if column == "source_id" else _json_type(source, column)) for column, field in fields.items()]
    )
    try:
        return pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _json_type(source: Source, column: str) -> pa.DataType:
    if column == "text":
        return pa.large_string()
    if column in ("url", "date"):
        return pa.string()
    return source.extra().field(column).type


def _sizes(data: bytes) -> npt.NDArray[np.int64] | None:
    """Bytes of each line, its line end with it; None unless each line opens and closes an object."""
    raw = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(raw == ord("\n")) + 1
    if len(data) and (len(ends) == 0 or ends[-1] != len(data)):
        ends = np.append(ends, len(data))
    starts = np.concatenate([[0], ends[:-1]])
    last = ends - 1 - (raw[ends - 1] == ord("\n"))
    last = np.where(raw[np.maximum(last, 0)] == ord("\r"), last - 1, last)
    if (last < starts).any() or (raw[starts] != ord("{")).any() or (raw[last] != ord("}")).any():
        return None
    sizes: npt.NDArray[np.int64] = (ends - starts).astype(np.int64)
    return sizes


def _is_utf8(data: bytes) -> bool:
    offsets = pa.py_buffer(np.array([0, len(data)], dtype=np.int64))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(data)]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _slices(source: Source, columns: dict[str, pa.Array], batch_rows: int, batch_bytes: int) -> Iterator[Records]:
    sizes = np.asarray(columns["_bytes"])
    at = 0
    while at < len(sizes):
        fits = int(np.searchsorted(np.cumsum(sizes[at : at + batch_rows]), batch_bytes, side="right"))
        rows = max(fits, 1)
        part = {name: array.slice(at, rows) for name, array in columns.items()}
        yield Records(batch=build_batch(source, part, rows), drops=drops_batch(()))
        at += rows


def _by_line(piece: Piece, block: Block, before: int, gatherer: Gatherer) -> Iterator[Records]:
    """The slow and exact way. `before`: lines of the file before the piece's first."""
    source = gatherer.source
    rows: list[dict[str, Any]] = []
    size = 0
    for number, line in enumerate(io.BytesIO(block.data)):
        if not line.strip(BLANK):
            continue
        try:
            row = row_of(source, _object(line, first=block.line == 1 and number == 0))
        except BadRow as fault:
            place = f"{piece.path}:{before + block.line + number}"
            gatherer.lose(place, fault.error, str(fault), len(line))
            continue
        rows.append({**row, "_bytes": len(line)})
        size += len(line)
        if len(rows) >= gatherer.batch_rows or size >= gatherer.batch_bytes:
            yield records_of(rows, gatherer)
            rows, size = [], 0
    if rows or gatherer.lost:
        yield records_of(rows, gatherer)


def _object(line: bytes, *, first: bool) -> dict[str, Any]:
    if first and line.startswith(BOM):
        line = line[len(BOM) :]
    try:
        value = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise BadRow("encoding", f"not UTF-8 at byte {error.start} of the line") from error
    except RecursionError as error:
        raise BadRow("bad_json", "JSON nested too deeply") from error
    except ValueError as error:
        at = getattr(error, "pos", None)
        raise BadRow(
            "bad_json", "not valid JSON" + (f" at character {at} of the line" if at is not None else "")
        ) from error
    if not isinstance(value, dict):
        raise BadRow("not_an_object", "valid JSON, but not an object")
    return value
