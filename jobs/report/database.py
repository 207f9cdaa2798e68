"""DuckDB over an output, for the report and the reading verbs: bounded memory, spilling to a folder of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobs.errors import UserError
from shards.store import join, read_json
from shards.views import RUN, connect

if TYPE_CHECKING:
    import duckdb

MEMORY = "1GB"
Row = dict[str, Any]


class Output:
    """An output that is there: its run.json, the manifests of its steps, and questions to its views."""

    def __init__(self, out: str, connection: duckdb.DuckDBPyConnection, run: dict[str, Any]) -> None:
        self.out = out
        self.connection = connection
        self.run = run
        self._streams = 0
        self.steps: list[Row] = run["steps"]
        self.manifests: dict[str, Row] = {
            step["step"]: read_json(join(out, step["folder"], "manifest.json")) or {} for step in self.steps
        }

    def rows(self, sql: str, *parameters: Any) -> list[Row]:
        """The answer as plain rows; parameters stand as ? in the query."""
        found = self.connection.execute(sql, list(parameters))
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def row(self, sql: str, *parameters: Any) -> Row:
        """The one row of an aggregate."""
        return self.rows(sql, *parameters)[0]

    def stream(self, sql: str, parameters: Sequence[Any], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The answer in Arrow batches, while other queries may run. It is put aside first, on disk where it is
        large."""
        self._streams += 1
        table = f"_stream_{self._streams}"
        self.connection.execute(f"CREATE TABLE {table} AS {sql}", list(parameters))
        with self.connection.cursor() as cursor:
            yield from cursor.sql(f"FROM {table}").to_arrow_reader(batch_rows)
        self.connection.execute(f"DROP TABLE {table}")

    def insert(self, table: str, rows: pa.Table) -> None:
        """Add rows, whose columns are in the order of the table's."""
        self.connection.register("_rows", rows)
        self.connection.execute(f"INSERT INTO {table} SELECT * FROM _rows")
        self.connection.unregister("_rows")

    def columns(self, view: str) -> list[str]:
        """The columns of a view, none where there is no such view."""
        return [
            row["column_name"]
            for row in self.rows("SELECT column_name FROM duckdb_columns() WHERE table_name = ?", view)
        ]

    def signal_view(self, step: str) -> str | None:
        """The quoted name of a step's signals view, None where the step measured nothing."""
        return name(f"signals_{step}") if self.columns(f"signals_{step}") else None


def name(text: str) -> str:
    """A quoted SQL identifier."""
    return '"' + text.replace('"', '""') + '"'


@contextmanager
def opened(out: str) -> Iterator[Output]:
    """The output, for reading. Raises UserError where nothing has finished there."""
    try:
        connection = connect(out)
    except FileNotFoundError:
        raise UserError(
            f"{out}: no run has finished a step there; give the output folder of a run: gristmill run RECIPE"
        ) from None
    except ValueError as error:
        raise UserError(f"{join(out, RUN)}: cannot be read ({error}); run the recipe again") from None
    spill = tempfile.mkdtemp(prefix="gristmill-")
    try:
        connection.execute(f"SET memory_limit = '{MEMORY}'")
        connection.execute(f"SET temp_directory = '{spill}'")
        connection.execute("SET TimeZone = 'UTC'")
        yield Output(out, connection, read_json(join(out, RUN)))
    finally:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)
