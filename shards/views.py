"""DuckDB views over a dataset: the same names for each output, whatever steps its recipe had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shards.schema import DOCUMENT, DROPPED, QUARANTINE
from shards.store import is_local, join, read_json, tables

if TYPE_CHECKING:
    import duckdb

RUN = "run.json"
TOKENS = pa.schema(
    [("id", pa.string()), ("source", pa.string()), ("domain", pa.string()), ("shard", pa.int32()),
     ("start", pa.int64()), ("token_count", pa.int32())]
)  # fmt: skip


def connect(out: str) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with the views documents, dropped, quarantine, ledger, steps, duplicates, contamination,
    signals (and signals_<step>), tokens over the output `out`.

    Raises FileNotFoundError when there is no run.json: nothing has finished there.
    """
    import duckdb

    run = read_json(join(out, RUN))
    if run is None:
        raise FileNotFoundError(f"{out}: no {RUN} there, so no run has finished a step")
    connection = duckdb.connect()
    if not is_local(out):
        from shards.store import filesystem

        connection.register_filesystem(filesystem(out)[0])
    create(connection, out, run)
    return connection


def create(connection: duckdb.DuckDBPyConnection, out: str, run: dict[str, Any]) -> None:
    """Create all views on a connection."""
    steps = run["steps"]
    _steps(connection, out, steps)
    data = [step for step in steps if step["data"]]
    last = tables(join(out, data[-1]["folder"], "data")) if data else []
    tokens = [path for step in steps for path in tables(join(out, step["folder"], "documents"))]
    _view(connection, "tokens", tokens, TOKENS)
    _view(connection, "documents_stored", last, DOCUMENT)
    counted = "SELECT id, any_value(token_count) AS token_count FROM tokens GROUP BY id"
    connection.execute(
        "CREATE VIEW documents AS SELECT d.*, t.token_count FROM documents_stored d "
        f"LEFT JOIN ({counted}) t ON d.id = t.id"
        if tokens
        else "CREATE VIEW documents AS SELECT *, NULL::INTEGER AS token_count FROM documents_stored"
    )
    _view(connection, "dropped", _parts(out, steps, "dropped"), DROPPED)
    _view(connection, "quarantine", _parts(out, steps, "quarantine"), QUARANTINE)
    _signals(connection, out, steps)
    _derived(connection, steps)


def _parts(out: str, steps: Sequence[dict[str, Any]], kind: str) -> list[str]:
    return [path for step in steps for path in tables(join(out, step["folder"], kind))]


def _view(connection: duckdb.DuckDBPyConnection, name: str, paths: Sequence[str], schema: pa.Schema) -> None:
    """A view over Parquet files, or an empty one of the same columns."""
    if paths:
        told = ", ".join(quote(path) for path in paths)
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{told}], union_by_name=true)")
        return
    connection.register(f"_{name}_empty", schema.empty_table())
    connection.execute(f"CREATE VIEW {name} AS SELECT * FROM _{name}_empty")


def _steps(connection: duckdb.DuckDBPyConnection, out: str, steps: Sequence[dict[str, Any]]) -> None:
    rows = []
    for number, step in enumerate(steps):
        account = read_json(join(out, step["folder"], "manifest.json")) or {}
        rows.append(
            {
                "number": number, "step": step["step"], "kind": step["kind"], "folder": step["folder"],
                **{f"rows_{key}": value for key, value in account.get("rows", {}).items()},
                **{f"bytes_{key}": value for key, value in account.get("bytes", {}).items()},
                "seconds": account.get("seconds"), "cpu_seconds": account.get("cpu_seconds"),
                "peak_bytes": account.get("peak_bytes"), "digest": account.get("digest"),
            }
        )  # fmt: skip
    connection.register("_steps", pa.Table.from_pylist(rows))
    connection.execute("CREATE VIEW steps AS SELECT * FROM _steps")


def _signals(connection: duckdb.DuckDBPyConnection, out: str, steps: Sequence[dict[str, Any]]) -> None:
    parts: list[str] = []
    for step in steps:
        found = tables(join(out, step["folder"], "signals"))
        if found:
            _view(connection, f'"signals_{step["step"]}"', found, pa.schema([("id", pa.string())]))
            parts.append(f"SELECT '{step['step']}' AS step, * FROM \"signals_{step['step']}\"")
    connection.execute(
        "CREATE VIEW signals AS "
        + (" UNION ALL BY NAME ".join(parts) or "SELECT NULL::VARCHAR AS step, NULL::VARCHAR AS id WHERE false")
    )


def _derived(connection: duckdb.DuckDBPyConnection, steps: Sequence[dict[str, Any]]) -> None:
    corpus = ", ".join(quote(step["step"]) for step in steps if step["kind"] in ("exact", "minhash")) or "NULL"
    benchmarks = ", ".join(quote(step["step"]) for step in steps if step["kind"] == "decontaminate") or "NULL"
    has_copies = "copies" in [row[0] for row in connection.execute("DESCRIBE documents").fetchall()]
    copies = "copies" if has_copies else "1::INTEGER AS copies"
    connection.execute(
        "CREATE VIEW duplicates AS SELECT id, evidence AS kept_id, value AS similarity, step AS method "
        f"FROM dropped WHERE step IN ({corpus})"
    )
    connection.execute(
        "CREATE VIEW contamination AS SELECT id, step, evidence, value AS score, threshold "
        f"FROM dropped WHERE step IN ({benchmarks})"
    )
    connection.execute(
        f"CREATE VIEW ledger AS SELECT id, source, 'kept' AS outcome, NULL AS step, NULL AS rule, {copies} "
        "FROM documents "
        "UNION ALL SELECT id, source, 'dropped', step, rule, copies FROM dropped "
        "UNION ALL SELECT coalesce(id, location), source, 'quarantined', step, error, 1 FROM quarantine"
    )


def quote(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
