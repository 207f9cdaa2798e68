"""DuckDB over an output, for the report and the reading verbs: bounded memory, spilling to a folder of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobs.errors import UserError
from shards.store import join
from shards.views import MANIFEST, MEND, DamagedError, account_of, connect, damaged, run_of

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
        self.manifests: dict[str, Row] = Accounts(out, self.steps)

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


class Accounts(dict[str, Row]):
    """The manifest of each step by its name. One that is not there is missed only by whoever asks for it."""

    def __init__(self, out: str, steps: Sequence[Row]) -> None:
        found = {step["step"]: account_of(out, step["folder"]) for step in steps}
        super().__init__({step: account for step, account in found.items() if account is not None})
        self._paths = {step["step"]: join(out, step["folder"], MANIFEST) for step in steps}

    def __missing__(self, step: str) -> Row:
        raise UserError(f"{self._paths[step]}: is not there, so its step has not ended; {MEND}", exit_code=1)


def name(text: str) -> str:
    """A quoted SQL identifier."""
    return '"' + text.replace('"', '""') + '"'


@contextmanager
def opened(out: str) -> Iterator[Output]:
    """The output, for reading. Raises UserError where nothing has finished there, or where a file of it is broken."""
    import duckdb

    try:
        run, connection = run_of(out), connect(out)
    except FileNotFoundError:
        raise UserError(
            f"{out}: no run has finished a step there; give the output folder of a run: gristmill run RECIPE"
        ) from None
    except DamagedError as error:
        raise UserError(str(error), exit_code=1) from None
    spill = tempfile.mkdtemp(prefix="gristmill-")
    try:
        connection.execute(f"SET memory_limit = '{MEMORY}'")
        connection.execute(f"SET temp_directory = '{spill}'")
        connection.execute("SET TimeZone = 'UTC'")
        yield Output(out, connection, run)
    except DamagedError as error:
        raise UserError(str(error), exit_code=1) from None
    except duckdb.Error as error:
        said = broken(out, run, error)
        if said is None:
            raise
        raise UserError(said, exit_code=1) from error
    finally:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)


def broken(out: str, run: Row, error: Exception) -> str | None:
    """What of the output, its disk or the memory made a query fail, in one line; None where it was the query."""
    import duckdb

    kinds = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException, duckdb.InternalException)
    if isinstance(error, kinds) or type(error) is duckdb.Error:
        said = damaged(out, run)
        if said is not None:
            return said
    if isinstance(error, duckdb.IOException | duckdb.OutOfMemoryException):
        return f"{out}: {str(error).splitlines()[0]}; free some space for temporary files, then repeat the command"
    return None
