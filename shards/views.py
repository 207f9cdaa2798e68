"""DuckDB views over a dataset: the same names for each output, whatever steps its recipe had."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from shards.schema import DOCUMENT, DROPPED, QUARANTINE, SAMPLES
from shards.store import exists, filesystem, is_local, join, read_json, tables

if TYPE_CHECKING:
    import duckdb

RUN = "run.json"
MANIFEST = "manifest.json"
MEND = "run the recipe again, it mends this: gristmill run RECIPE"
TABLES = ("data", "dropped", "signals", "quarantine", "documents", "samples")
_STEP = {"step": str, "kind": str, "folder": str, "data": bool}
_ACCOUNT = {
    "rows": dict, "bytes": dict, "rules": dict, "domains": dict, "histograms": dict, "settings": dict, "code": dict,
    "inputs": list, "shards": list,
}  # fmt: skip
TOKENS = pa.schema(
    [("id", pa.string()), ("source", pa.string()), ("domain", pa.string()), ("shard", pa.int32()),
     ("start", pa.int64()), ("token_count", pa.int32()), ("language", pa.string()), ("text_bytes", pa.int64())]
)  # fmt: skip


class DamagedError(ValueError):
    """A file of an output that cannot be read: one line that names the file and the mend."""


def run_of(out: str) -> dict[str, Any]:
    """What run.json tells of the output `out`.

    Raises FileNotFoundError where there is none, DamagedError where it is not what a run writes.
    """
    url = join(out, RUN)
    run = _object(url)
    if run is None:
        raise FileNotFoundError(f"{out}: no {RUN} there, so no run has finished a step")
    steps = run.get("steps")
    if not isinstance(steps, list) or not steps or not all(_has(step, _STEP, needed=_STEP) for step in steps):
        raise DamagedError(f"{url}: tells of no steps; {MEND}")
    if not isinstance(run.get("recipe", {}), dict):
        raise DamagedError(f"{url}: holds no recipe; {MEND}")
    return run


def account_of(out: str, folder: str) -> dict[str, Any] | None:
    """The manifest of a step's folder; None where there is none, as while a run does the step again.

    Raises DamagedError where it is not what a run writes.
    """
    url = join(out, folder, MANIFEST)
    account = _object(url)
    if account is not None and not _has(account, _ACCOUNT, needed=("rows", "bytes")):
        raise DamagedError(f"{url}: is no account of a step; {MEND}")
    return account


def _object(url: str) -> dict[str, Any] | None:
    """The JSON object that a file holds, None where there is no file."""
    try:
        found = read_json(url)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    if found is None and not exists(url):
        return None
    raise DamagedError(f"{url}: is empty, torn or no JSON object; {MEND}")


def _has(value: Any, types: Mapping[str, type], *, needed: Collection[str]) -> bool:
    """Whether a value is an object in which what is there of `types` has its type, and `needed` is there."""
    return (
        isinstance(value, dict)
        and all(isinstance(value[key], kind) for key, kind in types.items() if key in value)
        and all(key in value for key in needed)
    )


def damaged(out: str, run: Mapping[str, Any]) -> str | None:
    """What is wrong with the first Parquet file of an output that cannot be read, in one line; None where all can.

    It reads every file through, in bounded memory: ask only when a query has failed.
    """
    for step in run["steps"]:
        for kind in TABLES:
            for path in tables(join(out, step["folder"], kind)):
                if not _is_whole(path):
                    return f"{path}: is damaged or gone; {MEND}"
    return None


def _is_whole(path: str) -> bool:
    files, inner = filesystem(path)
    try:
        with files.open(inner, "rb") as source, pq.ParquetFile(source) as parquet:
            for _ in parquet.iter_batches(batch_size=1024, use_threads=False):
                pass
    except (OSError, pa.ArrowException):
        return False
    return True


def connect(out: str) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with the views documents, dropped, quarantine, ledger, steps, duplicates, contamination,
    signals (and signals_<step>), tokens, samples over the output `out`.

    Raises FileNotFoundError when there is no run.json: nothing has finished there. Raises DamagedError for a file of
    the output that cannot be read.
    """
    import duckdb

    run = run_of(out)
    connection = duckdb.connect()
    if not is_local(out):
        connection.register_filesystem(filesystem(out)[0])
    try:
        create(connection, out, run)
    except duckdb.Error as error:
        connection.close()
        said = damaged(out, run)
        if said is None:
            raise
        raise DamagedError(said) from error
    except BaseException:
        connection.close()
        raise
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
    _view(connection, "samples", _parts(out, steps, "samples"), SAMPLES)
    _signals(connection, out, steps)
    _derived(connection, steps)


def _parts(out: str, steps: Sequence[dict[str, Any]], kind: str) -> list[str]:
    return [path for step in steps for path in tables(join(out, step["folder"], kind))]


def _view(connection: duckdb.DuckDBPyConnection, name: str, paths: Sequence[str], schema: pa.Schema) -> None:
    """A view over Parquet files, or an empty one of the same columns."""
    if paths:
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {parquet(paths, 'union_by_name = true')}")
        return
    connection.register(f"_{name}_empty", schema.empty_table())
    connection.execute(f"CREATE VIEW {name} AS SELECT * FROM _{name}_empty")


def _steps(connection: duckdb.DuckDBPyConnection, out: str, steps: Sequence[dict[str, Any]]) -> None:
    rows = []
    for number, step in enumerate(steps):
        account = account_of(out, step["folder"]) or {}
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


def parquet(paths: Sequence[str], *options: str) -> str:
    """The table function that reads exactly these files: no character of a path is a wildcard, no `key=value` in it a
    column."""
    told = ", ".join(quote(literal(path)) for path in paths)
    return f"read_parquet({', '.join([f'[{told}]', 'hive_partitioning = false', *options])})"


def literal(path: str) -> str:
    """A path as DuckDB's file names want it, which are patterns: what would be a wildcard stands for itself.

    `*`, `?` and `[` begin one (duckdb 2.0.1; braces are plain). Both DuckDB and fsspec take a class of one character.
    """
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def quote(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
