"""`gristmill train proxies SETTINGS`: small models on many mixtures, and the table of what they measured."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence

import pyarrow.compute as pc

from jobs import children, settings_file
from jobs.fingerprint import plain
from jobs.running import PARTIAL
from jobs.steps import load_target

PLACES = {"output": "path", "shards": "paths"}


def run(settings: str, *, retry_failed: bool = False, sets: Sequence[str] = (), json: bool = False) -> int:
    """Train the proxies of a settings file (output, shards, settings) that are not done yet. Failed runs are rows of
    the table, and exit code 3."""
    made, places = settings_file.load(settings, load_target("train:Proxies"), PLACES, sets)
    out = places["output"]
    told = {"settings": plain(made), "tokens": places["shards"], "out": out, "retry_failed": retry_failed}
    try:
        children.run("train.proxies", told)
    except children.ChildFailedError as error:
        raise children.failed(error, f"runs that are done stay in {out}; the same command goes on") from None
    from train.proxies import observations

    table = observations(out)
    if json:
        print(json_format.dumps(table.to_pylist()))
    failed = len(set(table.filter(pc.equal(table.column("status"), "failed")).column("run").to_pylist()))
    runs = len(set(table.column("run").to_pylist()))
    print(f"{out}/observations.parquet: {runs} runs, {failed} of them failed", file=sys.stderr)
    return PARTIAL if failed else 0
