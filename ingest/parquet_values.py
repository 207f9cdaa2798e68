"""Arrow columns as plain Python values, where some of them may be none that Python has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from ingest.dates import instants
from ingest.fields import BadRow


class _Row(Mapping[str, Any]):
    """A row by its fields' names. A value that is an exception is raised where it is asked for."""

    def __init__(self, names: list[str], values: tuple[Any, ...]) -> None:
        self._values = dict(zip(names, values, strict=True))

    def __getitem__(self, name: str) -> Any:
        value = self._values[name]
        if isinstance(value, BadRow):
            raise value
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def python_rows(batch: pa.RecordBatch) -> list[_Row]:
    """The batch's rows. Asking a row for a value that Python cannot hold raises BadRow: `encoding` for a string that is
    not UTF-8, `bad_type` else. Moments outside of the years 1 to 9999 are BadDate, which is no date."""
    names = batch.schema.names
    columns = [_values(batch.column(i), name) for i, name in enumerate(names)]
    return [_Row(names, values) for values in zip(*columns, strict=True)]


class BadDate:
    """A moment that no calendar date of Python's names."""


def _values(column: pa.Array, name: str) -> list[Any]:
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        found, given = instants(column).to_pylist(), column.is_valid().to_pylist()
        return [BadDate() if value is None and valid else value for value, valid in zip(found, given, strict=True)]
    try:
        return list(column.to_pylist())
    except Exception:
        return [_value(column, row, name) for row in range(len(column))]


def _value(column: pa.Array, row: int, name: str) -> Any:
    try:
        return column[row].as_py()
    except UnicodeDecodeError:
        return BadRow("encoding", f"field {name!r} is not UTF-8")
    except Exception as error:
        return BadRow("bad_type", f"field {name!r} holds a value that cannot be read ({type(error).__name__})")
