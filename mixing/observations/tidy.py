"""Observations as one flat table, the layout of `train proxies`: a row a run and metric.

run, seed, parameters, tokens, flops
weight_DOMAIN, unique_tokens_DOMAIN, epochs_DOMAIN
metric, value          value is null where the metric was not measured
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa

from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError
from shards.store import StoreError, write_bytes

WEIGHT, UNIQUE, EPOCHS, TRAINED = "weight_", "unique_tokens_", "epochs_", "tokens_"


def table(observations: Observations) -> pa.Table:
    """The tidy table, as the module's docstring has it; rows by run, then metric, as they stand."""
    k, points = len(observations.metrics), observations.points
    columns: dict[str, Any] = {
        "run": pa.array(np.repeat(np.asarray(observations.runs, object), k), pa.string()),
        "seed": pa.array(np.repeat(observations.seeds, k), pa.int64(), mask=np.repeat(observations.seeds < 0, k)),
        "parameters": _repeated(points.parameters, k),
        "tokens": _repeated(points.tokens, k),
        "flops": _repeated(observations.flops, k),
    }
    for prefix, values in ((WEIGHT, points.weights), (UNIQUE, points.unique_tokens), (EPOCHS, points.epochs)):
        columns |= {f"{prefix}{name}": _repeated(values[:, at], k) for at, name in enumerate(points.domains)}
    columns["metric"] = pa.array(list(observations.metrics) * len(observations), pa.string())
    columns["value"] = _repeated(observations.values.reshape(-1), 1)
    return pa.table(columns)


def write(observations: Observations, url: str) -> pa.Table:
    """Write the tidy table to a path or URL that ends in .parquet or .csv, whole or not at all, and return it."""
    told, held = table(observations), io.BytesIO()
    if url.endswith(".parquet"):
        from pyarrow import parquet

        parquet.write_table(told, held, compression="zstd")
    elif url.endswith(".csv"):
        from pyarrow import csv

        csv.write_csv(told, held)
    else:
        raise MixingError(f"{url}: ends in neither .parquet nor .csv; name one of them")
    try:
        write_bytes(url, held.getvalue())
    except (StoreError, OSError) as error:
        raise MixingError(f"{url}: cannot be written: {str(error).splitlines()[0]}") from None
    return told


def _repeated(values: Floats, times: int) -> pa.Array:
    told = np.repeat(values, times)
    return pa.array(told, pa.float64(), mask=np.isnan(told))
