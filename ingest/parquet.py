"""Parquet: the row groups whose data begin in the piece, columns as they are; rows that cannot be documents lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest.dates import instants
from ingest.fields import BadRow, dates, row_of, wanted
from ingest.packing import open_input
from ingest.parquet_values import python_rows
from ingest.records import Gatherer, Records, build_batch, drops_batch
from ingest.rows import records_of
from ingest.source import Source
from ingest.units import Piece


def read_parquet(piece: Piece, gatherer: Gatherer) -> Iterator[Records]:
    """Rows of the piece's row groups. A file or a row group that cannot be read is lost as a whole, located.

    Arrow answers odd files with many kinds of exception, so any of them makes what was being read lost, and only that.
    """
    with open_input(piece.path) as raw:
        try:
            file = pq.ParquetFile(raw)
            names = file.schema_arrow.names
            groups = [(group, file.metadata.row_group(group)) for group in range(file.metadata.num_row_groups)]
        except Exception:
            _lose_file(piece, "no readable Parquet file", gatherer)
            return
        fields = list(dict.fromkeys(wanted(gatherer.source).values()))
        if (twice := next((field for field in fields if names.count(field) > 1), None)) is not None:
            _lose_file(piece, f"{names.count(twice)} columns of the name {twice!r}", gatherer)
            return
        for group, facts in groups:
            if not piece.start <= _offset(facts) < piece.end and piece.parts != 1:
                continue
            yield from _read_group(piece, file, group, facts, gatherer)


def _lose_file(piece: Piece, message: str, gatherer: Gatherer) -> None:
    """Each part of a file meets the same fault; the first one tells it."""
    if piece.part == 0:
        gatherer.lose(f"{piece.path}@0-{piece.bytes}", "bad_parquet", message, piece.bytes)


def _offset(facts: Any) -> int:
    """Where a row group's bytes begin."""
    starts = []
    for i in range(facts.num_columns):
        column = facts.column(i)
        starts.append(column.dictionary_page_offset or column.data_page_offset)
    return min(starts, default=0)


def _read_group(piece: Piece, file: Any, group: int, facts: Any, gatherer: Gatherer) -> Iterator[Records]:
    present = set(file.schema_arrow.names)
    size = max(facts.total_byte_size, 1)
    rows = max(1, min(gatherer.batch_rows, gatherer.batch_bytes * max(facts.num_rows, 1) // size))
    first = 0
    try:
        names = [field for field in dict.fromkeys(wanted(gatherer.source).values()) if field in present]
        for batch in file.iter_batches(batch_size=rows, row_groups=[group], columns=names, use_threads=False):
            if (before := gatherer.take()) is not None:
                yield before
            yield _records(piece, group, first, batch, gatherer)
            first += batch.num_rows
    except Exception:
        begin = _offset(facts)
        packed = sum(facts.column(i).total_compressed_size for i in range(facts.num_columns))
        place = f"{piece.path}@{begin}-{begin + packed}"
        left = packed * max(facts.num_rows - first, 0) // max(facts.num_rows, 1)
        gatherer.lose(place, "bad_parquet", f"row group {group} cannot be read from row {first} on", left)


def _records(piece: Piece, group: int, first: int, batch: pa.RecordBatch, gatherer: Gatherer) -> Records:
    """The batch as documents: at once, or where that fails or some row needs a closer look, row by row."""
    source = gatherer.source
    try:
        if (columns := _columns(source, batch, wanted(source))) is not None:
            return Records(batch=build_batch(source, columns, batch.num_rows), drops=drops_batch(()))
    except Exception:  # the rows tell which of them it was
        pass
    before = len(gatherer.lost)
    try:
        return _by_row(piece, group, first, batch, gatherer)
    except Exception as error:
        del gatherer.lost[before:]
        place = f"{piece.path}:row group {group} row {first}"
        message = f"{batch.num_rows} rows from here on cannot be made documents ({type(error).__name__})"
        gatherer.lose(place, "bad_parquet", message, max(batch.nbytes, 1))
        return records_of([], gatherer)


def _columns(source: Source, batch: pa.RecordBatch, fields: dict[str, str]) -> dict[str, pa.Array] | None:
    """The batch's columns as a document's, or None where some row needs a closer look."""
    if source.format == "messages":
        return None
    schema = source.schema()
    columns: dict[str, pa.Array] = {}
    for column, field in fields.items():
        if field not in batch.schema.names:
            continue
        values = batch.column(field)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        values.validate(full=True)  # Arrow takes strings for UTF-8 and does not look
        if (fitting := _fit(values, schema.field(column).type, column)) is None:
            return None
        columns[column] = fitting
    text = columns.get("text")
    if text is None or text.null_count:
        return None
    columns["_bytes"] = pc.binary_length(text).cast(pa.int64())
    if len(text) and pc.max(columns["_bytes"]).as_py() > source.max_record_bytes:
        return None
    return columns


def _fit(values: pa.Array, kind: pa.DataType, column: str) -> pa.Array | None:
    """The values as `kind` where the cast means what a row-wise cast means, else None."""
    is_string = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    if pa.types.is_timestamp(kind):
        if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
            found = instants(values)
        elif is_string or pa.types.is_null(values.type):
            found = dates(values.cast(pa.string()))
        else:
            return None
        # No date is a null in `date`, and a bad row in a carried column.
        return found if column == "date" or found.null_count == values.null_count else None
    if pa.types.is_null(values.type) or values.type == kind:
        return values.cast(kind)
    if column in ("text", "source_id", "url") or kind == pa.string():
        numeric = pa.types.is_integer(values.type) and column != "text"
        return values.cast(kind) if is_string or numeric else None
    widening = pa.types.is_integer(values.type) and (pa.types.is_integer(kind) or pa.types.is_floating(kind))
    if widening or (pa.types.is_floating(values.type) and pa.types.is_floating(kind)):
        return values.cast(kind)
    return None


def _by_row(piece: Piece, group: int, first: int, batch: pa.RecordBatch, gatherer: Gatherer) -> Records:
    good: list[dict[str, Any]] = []
    limit = gatherer.source.max_record_bytes
    each = max(batch.nbytes // max(batch.num_rows, 1), 1)
    for number, values in enumerate(python_rows(batch)):
        try:
            row = row_of(gatherer.source, values)
            size = len(row["text"].encode())
            if size > limit:
                raise BadRow("too_large", f"a row of {size} bytes is above max_record_bytes")
        except BadRow as fault:
            place = f"{piece.path}:row group {group} row {first + number}"
            gatherer.lose(place, fault.error, str(fault), each)
            continue
        good.append({**row, "_bytes": size})
    return records_of(good, gatherer)
