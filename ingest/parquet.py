"""Parquet: the row groups whose data begin in the piece, columns as they are; rows that cannot be documents lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest.fields import BadRow, dates, row_of, wanted
from ingest.packing import open_input
from ingest.records import DATE, Gatherer, Records, build_batch, drops_batch
from ingest.rows import records_of
from ingest.source import Source
from ingest.units import Piece


def read_parquet(piece: Piece, gatherer: Gatherer) -> Iterator[Records]:
    """Rows of the piece's row groups. A file or a row group that cannot be read is lost as a whole, located."""
    with open_input(piece.path) as raw:
        try:
            file = pq.ParquetFile(raw)
        except (pa.ArrowException, OSError, ValueError):
            if piece.part == 0:
                place = f"{piece.path}@0-{piece.bytes}"
                gatherer.lose(place, "bad_parquet", "no readable Parquet file", piece.bytes)
            return
        for group in range(file.metadata.num_row_groups):
            facts = file.metadata.row_group(group)
            if not piece.start <= _offset(facts) < piece.end and piece.parts != 1:
                continue
            yield from _read_group(piece, file, group, facts, gatherer)


def _offset(facts: Any) -> int:
    """Where a row group's bytes begin."""
    starts = []
    for i in range(facts.num_columns):
        column = facts.column(i)
        starts.append(column.dictionary_page_offset or column.data_page_offset)
    return min(starts, default=0)


def _read_group(piece: Piece, file: Any, group: int, facts: Any, gatherer: Gatherer) -> Iterator[Records]:
    source = gatherer.source
    fields = wanted(source)
    present = set(file.schema_arrow.names)
    size = max(facts.total_byte_size, 1)
    rows = max(1, min(gatherer.batch_rows, gatherer.batch_bytes * max(facts.num_rows, 1) // size))
    first = 0
    try:
        names = [field for field in dict.fromkeys(fields.values()) if field in present]
        for batch in file.iter_batches(batch_size=rows, row_groups=[group], columns=names, use_threads=False):
            if (before := gatherer.take()) is not None:
                yield before
            columns = _columns(source, batch, fields)
            if columns is None:
                yield from _by_row(piece, group, first, batch, gatherer)
            else:
                yield Records(batch=build_batch(source, columns, batch.num_rows), drops=drops_batch(()))
            first += batch.num_rows
    except (pa.ArrowException, OSError, ValueError):
        begin = _offset(facts)
        packed = sum(facts.column(i).total_compressed_size for i in range(facts.num_columns))
        place = f"{piece.path}@{begin}-{begin + packed}"
        left = packed * max(facts.num_rows - first, 0) // max(facts.num_rows, 1)
        gatherer.lose(place, "bad_parquet", f"row group {group} cannot be read from row {first} on", left)


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
        if (fitting := _fit(values, schema.field(column).type, column)) is None:
            return None
        columns[column] = fitting
    text = columns.get("text")
    if text is None or text.null_count:
        return None
    columns["_bytes"] = pc.binary_length(text).cast(pa.int64())
    return columns


def _fit(values: pa.Array, kind: pa.DataType, column: str) -> pa.Array | None:
    """The values as `kind` where the cast means what a row-wise cast means, else None."""
    is_string = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    if column == "date":
        if is_string:
            return dates(values.cast(pa.string()))
        return values.cast(DATE) if pa.types.is_timestamp(values.type) and values.type.tz else None
    if pa.types.is_null(values.type) or values.type == kind:
        return values.cast(kind)
    if column in ("text", "source_id", "url") or kind == pa.string():
        numeric = pa.types.is_integer(values.type) and column != "text"
        return values.cast(kind) if is_string or numeric else None
    widening = pa.types.is_integer(values.type) and (pa.types.is_integer(kind) or pa.types.is_floating(kind))
    if widening or (pa.types.is_floating(values.type) and pa.types.is_floating(kind)):
        try:
            return values.cast(kind)
        except pa.ArrowInvalid:
            return None
    return None


def _by_row(piece: Piece, group: int, first: int, batch: pa.RecordBatch, gatherer: Gatherer) -> Iterator[Records]:
    good: list[dict[str, Any]] = []
    each = max(batch.nbytes // max(batch.num_rows, 1), 1)
    for number, values in enumerate(_python_rows(batch)):
        try:
            row = row_of(gatherer.source, values)
        except BadRow as fault:
            place = f"{piece.path}:row group {group} row {first + number}"
            gatherer.lose(place, fault.error, str(fault), each)
            continue
        good.append({**row, "_bytes": len(row["text"].encode())})
    yield records_of(good, gatherer)


def _python_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    try:
        return list(batch.to_pylist())
    except UnicodeDecodeError:
        # Bytes that are no UTF-8 in a string column: such values become surrogates, and then a bad row.
        columns = {}
        for name in batch.schema.names:
            column = batch.column(name)
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                raw = column.cast(pa.large_binary()).to_pylist()
                columns[name] = [None if value is None else value.decode("utf-8", "surrogateescape") for value in raw]
            else:
                columns[name] = column.to_pylist()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
