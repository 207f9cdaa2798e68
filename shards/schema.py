"""The columns of a dataset on disk, written explicitly even for an empty shard.

Names follow the FineWeb family, so `datasets.load_dataset`, datatrove and DuckDB read shards as they are.
A column whose name starts with "_" is transient: it travels between fused steps and is never written.
"""

from __future__ import annotations

import pyarrow as pa

TRANSIENT = "_"

MESSAGE = pa.struct([pa.field("role", pa.string()), pa.field("content", pa.large_string())])

DOCUMENT = pa.schema(
    [
        ("id", pa.string()),
        ("source_id", pa.string()),
        ("source", pa.string()),
        ("domain", pa.string()),
        ("url", pa.string()),
        ("date", pa.timestamp("us", tz="UTC")),
        ("text", pa.large_string()),
    ]
)

DROPPED = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("url", pa.string()),
        ("step", pa.string()),
        ("rule", pa.string()),
        ("rules", pa.list_(pa.string())),
        ("value", pa.float64()),
        ("threshold", pa.float64()),
        ("evidence", pa.string()),
        ("copies", pa.int32()),
        ("text", pa.large_string()),
    ]
)

QUARANTINE = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("location", pa.string()),
        ("step", pa.string()),
        ("error", pa.string()),
        ("message", pa.string()),
        ("bytes", pa.int64()),
    ]
)

SAMPLES = pa.schema(
    [
        ("task", pa.string()),
        ("item", pa.string()),
        ("number", pa.int32()),
        ("kind", pa.string()),
        ("outcome", pa.string()),
        ("reason", pa.string()),
        ("verdict", pa.string()),
        ("tokens", pa.int64()),
        ("messages", pa.large_string()),
        ("chosen", pa.large_string()),
        ("rejected", pa.large_string()),
        ("text", pa.large_string()),
        ("figures", pa.map_(pa.string(), pa.float64())),
        ("facts", pa.map_(pa.string(), pa.large_string())),
        ("keys", pa.list_(pa.string())),
        ("teachers", pa.list_(pa.string())),
        ("domain", pa.string()),
        ("skill", pa.string()),
        ("language", pa.string()),
        ("licence", pa.string()),
        ("source", pa.string()),
    ]
)
"""messages, chosen and rejected are JSON: a message may hold whatever a backend's format has."""


def is_transient(name: str) -> bool:
    return name.startswith(TRANSIENT)


def stored_columns(schema: pa.Schema) -> pa.Schema:
    """The schema without its transient columns."""
    return pa.schema([field for field in schema if not is_transient(field.name)])


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """`batch` with exactly the columns of `schema`, in its order; a missing column becomes nulls.

    Raises TypeError when a column cannot be cast without loss: to declare one type and make another is a bug.
    """
    present = set(batch.schema.names)
    columns = []
    for field in schema:
        if field.name not in present:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(field.name)
        if column.type != field.type:
            try:
                column = column.cast(field.type)
            except pa.ArrowInvalid as error:
                raise TypeError(f"column {field.name!r} is {column.type}, declared as {field.type}") from error
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)
