"""A table as it was given, CSV, Parquet or Arrow: columns by name, and the line that each row stands on."""

from __future__ import annotations

import csv
import gzip
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from mixing.observations.points import Floats, MixingError
from shards.store import StoreError, filesystem

Source: TypeAlias = str | PurePath | pa.Table
EMPTY: Final = frozenset({"", "na", "nan", "null", "none"})
KINDS: Final = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True, kw_only=True, eq=False)
class Sheet:
    """name: the file, as messages say it. columns: cells as text (CSV) or as Arrow has them. places: a row each.
    notes: what was left out or mended.
    """

    name: str
    columns: dict[str, list[Any]]
    places: list[str]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.places)

    @property
    def stem(self) -> str:
        """The file's name without folder and ending."""
        return self.name.rsplit("/", 1)[-1].split(".", 1)[0]

    def where(self, row: int) -> str:
        return f"{self.name}: {self.places[row]}"

    def first(self, *names: str) -> str | None:
        """The first of these columns that is there."""
        return next((name for name in names if name in self.columns), None)

    def numbers(self, column: str) -> Floats:
        """[n], NaN where a cell is empty. Raises MixingError with the line of a cell that holds something else."""
        found = np.empty(len(self))
        for row, cell in enumerate(self.columns[column]):
            try:
                found[row] = np.nan if is_empty(cell) else float(cell)
            except (TypeError, ValueError):
                raise MixingError(f"{self.where(row)}: {column} is {cell!r}; give a number, or nothing") from None
        return found

    def texts(self, column: str) -> list[str]:
        """Cells as text; "" where one is empty. A whole number is written without a point."""
        return [_text(cell) for cell in self.columns[column]]

    def rows(self, chosen: Sequence[int]) -> Sheet:
        columns = {name: [cells[row] for row in chosen] for name, cells in self.columns.items()}
        return replace(self, columns=columns, places=[self.places[row] for row in chosen])

    def only(self, wanted: Mapping[str, Any]) -> Sheet:
        """The rows whose columns hold the value that is wanted, or one of several (a tuple or list).

        Raises MixingError where a column is not there, or no row is left.
        """
        keep = list(range(len(self)))
        for column, told in wanted.items():
            if column not in self.columns:
                raise MixingError(f"{self.name}: no column {column!r}; there are {', '.join(self.columns)}")
            values = told if isinstance(told, tuple | list | set | frozenset) else (told,)
            cells, accepted = self.texts(column), {_text(value) for value in values}
            there = sorted({cells[row] for row in keep})
            keep = [row for row in keep if cells[row] in accepted]
            if not keep:
                few = ", ".join(there[:12]) + (", ..." if len(there) > 12 else "")
                raise MixingError(f"{self.name}: no row where {column} is {told!r}; it is {few}")
        return self.rows(keep)


def is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in EMPTY)


def read_sheet(source: Source, name: str | None = None) -> Sheet:
    """The rows of a path, URL or Arrow table. Raises MixingError where it cannot be read as what its name says."""
    if isinstance(source, pa.Table):
        return _of_arrow(source, name or "table")
    url = str(source)
    if not url.endswith(KINDS):
        raise MixingError(f"{url}: ends in none of {', '.join(KINDS)}; give a table in one of these")
    try:
        files, path = filesystem(url)
        with files.open(path, "rb") as file:
            data: bytes = file.read()
        if url.endswith(".parquet"):
            from pyarrow import parquet

            # One thread: a pool of threads that is still starting when a short program ends aborts it.
            with parquet.ParquetFile(pa.BufferReader(data), pre_buffer=False) as held:
                return _of_arrow(held.read(use_threads=False), url)
        text = (gzip.decompress(data) if url.endswith(".gz") else data).decode("utf-8-sig")
        return _of_csv(text, url)
    except FileNotFoundError:
        raise MixingError(f"{url}: does not exist; give a file that does") from None
    except StoreError as error:
        raise MixingError(str(error)) from None
    except (OSError, EOFError) as error:
        raise MixingError(f"{url}: cannot be read: {str(error).splitlines()[0] or type(error).__name__}") from None
    except UnicodeDecodeError as error:
        raise MixingError(f"{url}: byte {error.start} is no UTF-8; save it as UTF-8") from None
    except pa.ArrowException as error:
        raise MixingError(f"{url}: is no Parquet file: {str(error).splitlines()[0]}") from None


def _of_arrow(table: pa.Table, name: str) -> Sheet:
    if len(set(table.column_names)) != table.num_columns:
        raise MixingError(f"{name}: a column stands twice; name each once")
    columns = {column: table.column(column).to_pylist() for column in table.column_names}
    return _checked(Sheet(name=name, columns=columns, places=[f"row {row + 1}" for row in range(table.num_rows)]))


def _of_csv(text: str, name: str) -> Sheet:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [cell.strip() for cell in next(reader, [])]
        twice = [cell for cell in header if header.count(cell) > 1]
        if twice:
            raise MixingError(f"{name}: line 1: the column {twice[0]!r} stands twice; name each once")
        rows, places = [], []
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                told = f"{len(row)} cells, where the first line names {len(header)} columns"
                raise MixingError(f"{name}: line {reader.line_num}: {told}; give a cell a column")
            rows.append(row)
            places.append(f"line {reader.line_num}")
    except csv.Error as error:
        raise MixingError(f"{name}: line {reader.line_num}: is no CSV: {error}") from None
    columns = {column: [row[at] for row in rows] for at, column in enumerate(header)}
    return _checked(Sheet(name=name, columns=columns, places=places))


def _checked(sheet: Sheet) -> Sheet:
    if not len(sheet):
        raise MixingError(f"{sheet.name}: holds no row; give at least one run")
    return sheet


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        told = cell.strip()
        return "" if told.lower() in EMPTY else _whole(told)
    if isinstance(cell, float):
        return "" if math.isnan(cell) else str(int(cell)) if cell.is_integer() else str(cell)
    return "" if cell is None else str(cell)


def _whole(text: str) -> str:
    """30000.0 is 30000, whatever wrote the table."""
    head, point, tail = text.partition(".")
    return head if point and head.isdigit() and tail and not tail.strip("0") else text
