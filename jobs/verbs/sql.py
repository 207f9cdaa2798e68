"""`gristmill sql`: ask DuckDB about an output. It reads the output's files and nothing else, and it writes nothing.

Three things hold that: only SELECT, DESCRIBE, SHOW, SUMMARIZE and EXPLAIN run; DuckDB may open files of the output and
no others (no extension, no network, no other file); and a query cannot change that, since the settings are locked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jobs.errors import UserError
from jobs.report.database import Output, broken, opened
from jobs.verbs.paper import dump, table, terminal_width
from shards.store import filesystem, is_local
from shards.views import literal, quote

if TYPE_CHECKING:
    import duckdb

MOST_ROWS = 1000
READING = ("SELECT", "EXPLAIN", "RELATION")
HELP = ".tables  the views   .columns VIEW  its columns   .quit  leave   anything else is SQL and ends with ;"


def run(out: str, query: str | None = None, json: bool = False) -> int:
    """Answer one query; without one, a prompt on a terminal, else the query that stdin holds."""
    with opened(out) as found:
        lock(found)
        if query is None and sys.stdin.isatty():
            prompt(found)
            return 0
        answer(found, sys.stdin.read() if query in (None, "-") else str(query), json)
    return 0


def lock(found: Output) -> None:
    """Let the connection read the output's files and nothing else, for good."""
    connection = found.connection
    folder = filesystem(found.out)[1] if is_local(found.out) else found.out
    given = found.out.removeprefix("file://")
    # The views name their files with wildcards made plain; that spelling must be allowed too, and opens no others.
    spelt = dict.fromkeys((folder, given, literal(folder), literal(given)))
    folders = ", ".join(quote(f"{path.rstrip('/')}/") for path in spelt)
    connection.execute(f"SET allowed_directories = [{folders}]")
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def answer(found: Output, query: str, json: bool) -> None:
    """Print the answer to one query. Raises UserError for what does not parse, is not found, or would write."""
    import duckdb

    try:
        names, batches = ask(found.connection, query)
        if json:
            dump([dict(zip(names, row, strict=True)) for batch in batches for row in batch])
            return
        rows = next(batches, [])
        _print(names, rows[:MOST_ROWS])
        if len(rows) > MOST_ROWS:
            print(f"the first {MOST_ROWS:,} rows; ask with LIMIT, or --json for all", file=sys.stderr)
    except duckdb.Error as error:
        raise UserError(broken(found.out, found.run, error) or f"sql: {first_line(error)}", exit_code=1) from None


def ask(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[list[str], Iterator[list[tuple[Any, ...]]]]:
    """Column names, and the rows in batches. Raises UserError where the query is not one that only reads."""
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise UserError(f"sql: one query at a time; there {'are ' + str(len(statements)) if statements else 'is none'}")
    kind = str(statements[0].type).rsplit(".", 1)[-1].upper()
    if kind not in READING or (kind == "EXPLAIN" and "analyze" in query.casefold()):
        raise UserError(
            f"sql: this would not only read ({kind}); write a SELECT. To keep an answer: gristmill sql OUT QUERY "
            "--json > FILE"
        )
    cursor = connection.execute(statements[0])
    names = [column[0] for column in cursor.description or ()]

    def batches() -> Iterator[list[tuple[Any, ...]]]:
        while rows := cursor.fetchmany(MOST_ROWS + 1):
            yield rows

    return names, batches()


def _print(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    if names[:2] == ["explain_key", "explain_value"]:
        print("\n".join(str(row[1]) for row in rows))
        return
    most = max(12, (terminal_width() - 2 * len(names)) // max(len(names), 1)) if sys.stdout.isatty() else 200
    print("\n".join(table(rows, names, most=most)) if rows else f"{'  '.join(names)}\n(no rows)")


def prompt(found: Output) -> None:
    """Read queries until the end of input; a mistake is told and the prompt stays."""
    with suppress(ImportError):
        import readline  # noqa: F401 - gives the prompt its history and editing, where it is there
    views = [
        row["view_name"] for row in found.rows("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1")
    ]
    print(f"views: {', '.join(views)}\n{HELP}", file=sys.stderr)
    for said in _said():
        try:
            if said == ".tables":
                print("\n".join(views))
            elif said.startswith(".columns"):
                answer(found, f"DESCRIBE {said.removeprefix('.columns').strip()}", False)
            elif said.startswith("."):
                print(HELP, file=sys.stderr)
            else:
                answer(found, said, False)
        except UserError as error:
            print(error, file=sys.stderr)


def _said() -> Iterator[str]:
    """What is typed: a dot command, or lines up to one that ends with a semicolon."""
    lines: list[str] = []
    while True:
        try:
            typed = input("...> " if lines else "sql> ").strip()
        except EOFError:
            print(file=sys.stderr)
            return
        except KeyboardInterrupt:
            lines = []
            print(file=sys.stderr)
            continue
        if not lines and typed in (".quit", ".exit", "quit", "exit"):
            return
        if typed:
            lines.append(typed)
        if lines and (lines[0].startswith(".") or typed.endswith(";")):
            yield " ".join(lines)
            lines = []


def first_line(error: Exception) -> str:
    """DuckDB's message without its drawing of the query, and with its hint."""
    lines = [part.strip() for part in str(error).split("\n") if part.strip()]
    hint = next((part for part in lines[1:] if part.startswith(("Did you mean", "Candidate bindings"))), "")
    return " ".join([lines[0] if lines else type(error).__name__, hint]).strip()
