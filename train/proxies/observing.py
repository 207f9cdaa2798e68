"""The table of observations: one row a run and metric, flat typed columns, the same bytes whenever the runs are the
same.

    run, mixture, size, seed, status (done, failed), error
    parameters (N, all of them), tokens (D, targets trained on), flops
    weight_DOMAIN          the mixture as asked; the weights of a row sum to 1
    unique_tokens_DOMAIN   tokens of the domain that the run could see
    tokens_DOMAIN          targets of the domain that it was trained on
    epochs_DOMAIN          tokens_DOMAIN / unique_tokens_DOMAIN
    metric, value          bits_per_byte, loss (nats a token), of all held-out text; /DOMAIN; /language/NAME; train_loss

A run that failed is one row with its error and no metric.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv, parquet

from shards.store import filesystem, join, read_json, write_bytes
from train.proxies.settings import ProxyError

RUNS, RESULT, FAILED = "runs", "result.json", "failed.json"
TABLE: Final = "observations"
BY_DOMAIN: Final = (
    ("weight", pa.float64()),
    ("unique_tokens", pa.int64()),
    ("tokens", pa.int64()),
    ("epochs", pa.float64()),
)


def observations(out: str) -> pa.Table:
    """The table of all runs that OUT holds, by name of run. Raises ProxyError where it holds none."""
    told = list(_told(out))
    if not told:
        raise ProxyError(f"{out}: holds no run of proxies that has ended")
    domains = sorted({domain for one in told for domain in one["run"]["weights"]})
    rows = [row for one in told for row in _rows(one, domains)]
    return pa.Table.from_pylist(rows, schema=schema(domains))


def schema(domains: Iterable[str]) -> pa.Schema:
    told = list(domains)
    return pa.schema(
        [
            ("run", pa.string()),
            ("mixture", pa.string()),
            ("size", pa.string()),
            ("seed", pa.int64()),
            ("status", pa.string()),
            ("error", pa.string()),
            ("parameters", pa.int64()),
            ("tokens", pa.int64()),
            ("flops", pa.float64()),
            *((f"{name}_{domain}", kind) for name, kind in BY_DOMAIN for domain in told),
            ("metric", pa.string()),
            ("value", pa.float64()),
        ]
    )


def write_observations(out: str) -> pa.Table:
    """Write OUT/observations.parquet and .csv, and return them."""
    table = observations(out)
    held = io.BytesIO()
    parquet.write_table(table, held, compression="zstd")
    write_bytes(join(out, f"{TABLE}.parquet"), held.getvalue())
    held = io.BytesIO()
    csv.write_csv(table, held)
    write_bytes(join(out, f"{TABLE}.csv"), held.getvalue())
    return table


def _told(out: str) -> Iterable[dict[str, Any]]:
    files, path = filesystem(join(out, RUNS))
    if not files.exists(path):
        return
    for name in sorted(found.rstrip("/").rsplit("/", 1)[-1] for found in files.ls(path, detail=False)):
        folder = join(out, RUNS, name)
        result = read_json(join(folder, RESULT)) or read_json(join(folder, FAILED))
        if result is not None:
            yield result


def _rows(told: dict[str, Any], domains: list[str]) -> Iterable[dict[str, Any]]:
    run = told["run"]
    unique, trained = run["unique_tokens"], told.get("tokens_by_domain")
    row = {
        "run": run["name"],
        "mixture": run["mixture"],
        "size": run["size_name"],
        "seed": run["seed"],
        "status": "failed" if "error" in told else "done",
        "error": told.get("error"),
        "parameters": told.get("parameters"),
        "tokens": told.get("tokens"),
        "flops": told.get("flops"),
    }
    for domain in domains:
        row[f"weight_{domain}"] = run["weights"].get(domain, 0.0)
        row[f"unique_tokens_{domain}"] = unique.get(domain, 0)
        if trained is not None:
            row[f"tokens_{domain}"] = trained.get(domain, 0)
            row[f"epochs_{domain}"] = trained.get(domain, 0) / unique[domain] if unique.get(domain) else 0.0
    if "error" in told:
        yield {**row, "metric": None, "value": None}
        return
    for metric, value in sorted(told["metrics"].items()):
        yield {**row, "metric": metric, "value": value}
