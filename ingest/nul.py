"""NULs in names, addresses and carried strings: taken out, as `extract` takes them out of text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

NUL = "\0"


def without_nul(array: pa.Array) -> pa.Array:
    """The array with no NUL in its strings, also those within lists and structs; the same one where there is none."""
    if not _has_nul(array):
        return array
    if _is_string(array.type):
        return pc.replace_substring(array, NUL, "")
    return pa.array([_stripped(value) for value in array.to_pylist()], array.type)


def _has_nul(array: pa.Array) -> bool:
    if _is_string(array.type):
        return bool(pc.any(pc.match_substring(array, NUL)).as_py())
    if pa.types.is_list(array.type):
        return _has_nul(array.flatten())
    return pa.types.is_struct(array.type) and any(_has_nul(part) for part in array.flatten())


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _stripped(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(NUL, "")
    if isinstance(value, list):
        return [_stripped(item) for item in value]
    return {name: _stripped(item) for name, item in value.items()} if isinstance(value, dict) else value
