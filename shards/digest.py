"""Order-free digests: equal for equal rows, whatever the shards, their order, the workers or the engine.

A row is hashed by xxh3-128 over its stored columns in name order, each as: name (UTF-8), one byte 0 (a value
follows) or 1 (null), value. Values are UTF-8 bytes; little-endian integers of their width; IEEE bits with one NaN;
booleans as one byte; timestamps as int64 microseconds; lists as their length (int64) and their encoded items;
structs as their fields in name order, each encoded like a column. A dataset's digest is the sum of its rows' hashes
modulo 2^128, as 32 hex digits.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from shards.schema import is_transient

MODULUS = 1 << 128
VALUE, NULL = b"\x00", b"\x01"
NAN_BITS = np.uint64(0x7FF8000000000000)


def row_hashes(batch: pa.RecordBatch) -> list[int]:
    """The xxh3-128 of each row over its stored columns (transient ones do not count), as integers."""
    encoded, offsets = _encoded(batch)
    starts = offsets.tolist()
    return [xxhash.xxh3_128_intdigest(encoded[a:b]) for a, b in zip(starts[:-1], starts[1:], strict=True)]


def row_ids(batch: pa.RecordBatch) -> pa.Array:
    """The xxh3-128 of each row as 32 hex digits: what a document's id is made of (see ingest)."""
    return pa.array([f"{value:032x}" for value in row_hashes(batch)], pa.string())


def digest(batches: Iterable[pa.RecordBatch]) -> int:
    """The order-free digest of all rows, as an integer below 2^128: add digests of parts, then `to_hex`."""
    return sum(sum(row_hashes(batch)) for batch in batches) % MODULUS


def to_hex(value: int) -> str:
    return f"{value % MODULUS:032x}"


def _encoded(batch: pa.RecordBatch) -> tuple[memoryview, np.ndarray[Any, np.dtype[np.int64]]]:
    """All rows' encodings in one buffer, and the n+1 offsets at which they start."""
    pieces: list[pa.Array] = []
    for name in sorted(name for name in batch.schema.names if not is_transient(name)):
        column = batch.column(name)
        key = name.encode()
        flags = pc.if_else(
            column.is_null(), pa.scalar(key + NULL, pa.large_binary()), pa.scalar(key + VALUE, pa.large_binary())
        )
        pieces += [flags, _values(column)]
    if not pieces or batch.num_rows == 0:
        return memoryview(b""), np.zeros(batch.num_rows + 1, dtype=np.int64)
    joined = pc.binary_join_element_wise(
        *pieces, pa.scalar(b"", pa.large_binary()), null_handling="replace", null_replacement=""
    )
    offsets = np.frombuffer(joined.buffers()[1], dtype=np.int64)[joined.offset : joined.offset + len(joined) + 1]
    data = joined.buffers()[2]
    return memoryview(data) if data is not None else memoryview(b""), offsets


def _values(column: pa.Array) -> pa.Array:
    """A column's values as large_binary, null where the column is."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _values(column.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_large_binary(kind):
        return column
    if pa.types.is_timestamp(kind):
        return _fixed(column.cast(pa.timestamp("us", tz=kind.tz)).cast(pa.int64()))
    if pa.types.is_boolean(kind):
        return _fixed(column.cast(pa.uint8()))
    if pa.types.is_floating(kind):
        return _fixed(_one_nan(column))
    if pa.types.is_integer(kind):
        return _fixed(column)
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.large_binary())
    return pa.array(
        [None if value is None else _nested(value, kind) for value in column.to_pylist()], pa.large_binary()
    )


def _fixed(column: pa.Array) -> pa.Array:
    """Fixed-width numbers as large_binary of their little-endian bytes, without touching each row."""
    filled = column.fill_null(0) if column.null_count else column
    numbers = np.ascontiguousarray(filled.to_numpy(zero_copy_only=False))
    offsets = np.arange(len(column) + 1, dtype=np.int64) * numbers.dtype.itemsize
    values = pa.Array.from_buffers(
        pa.large_binary(), len(column), [None, pa.py_buffer(offsets), pa.py_buffer(numbers.tobytes())]
    )
    return pc.if_else(column.is_valid(), values, pa.scalar(None, pa.large_binary())) if column.null_count else values


def _one_nan(column: pa.Array) -> pa.Array:
    mask = np.asarray(column.is_null())
    numbers = np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.float64).copy()
    bits = numbers.view(np.uint64)
    bits[np.isnan(numbers)] = NAN_BITS
    return pa.array(numbers, pa.float64(), mask=mask)


def _nested(value: Any, kind: pa.DataType) -> bytes:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return struct.pack("<q", len(value)) + b"".join(_item(item, kind.value_type) for item in value)
    if pa.types.is_struct(kind):
        fields = sorted((kind.field(i) for i in range(kind.num_fields)), key=lambda field: field.name)
        return b"".join(field.name.encode() + _item(value[field.name], field.type) for field in fields)
    encoded: bytes = _values(pa.array([value], kind))[0].as_py()
    return encoded


def _item(value: Any, kind: pa.DataType) -> bytes:
    return NULL if value is None else VALUE + _nested(value, kind)
