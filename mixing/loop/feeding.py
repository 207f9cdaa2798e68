"""Results of later evaluations, fed back: the next run fits them too, and finds the mixture anew.

OUT/observed/DIGEST.parquet    what `observe` was given, as a tidy table; the same twice is one file
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from mixing.loop.mixture_file import read_mixture
from mixing.observations import Observations, Points, pool, read_observations, table, write
from mixing.observations.points import MixingError
from mixing.observations.sheets import read_sheet
from shards import digest as digests
from shards.store import exists, join, tables

OBSERVED: Final = "observed"
OBSERVATIONS, MIXTURE = "observations.parquet", "mixture.json"
TARGET: Final = "target"
"""What a table without weights calls the run that was trained on OUT/mixture.json."""


def observe(out: str, source: str | pa.Table) -> Observations:
    """Keep what was measured later under OUT/observed, and return it: a row a run that was measured.

    source: a path, URL or Arrow table as mixing.observations.read_observations takes it. A table without weights has a
    column `run`: runs that OUT knows, which then have further metrics, or `target`, which was trained on
    OUT/mixture.json. Raises MixingError where OUT has no loop, a run is unknown, no row
    trains on its domains alone, or a value contradicts what is there.
    """
    if not exists(join(out, OBSERVATIONS)):
        raise MixingError(f"{out}: holds no observations yet; run the mix step there first")
    name = source if isinstance(source, str) else "table"
    known = read_observations(join(out, OBSERVATIONS))
    sheet = read_sheet(source)
    if any(column.startswith("weight_") for column in sheet.columns):
        told = read_observations(source)
    else:
        joined = read_observations(table(_with_target(out, known)), source)
        measured = set(sheet.texts("run")) if "run" in sheet.columns else set(joined.runs)
        told = joined.rows([run in measured for run in joined.runs])
    foreign = [at for at, domain in enumerate(told.domains) if domain not in known.domains]
    if (told.weights[:, foreign].sum(axis=1) > 0).all():
        others = ", ".join(told.domains[at] for at in foreign)
        raise MixingError(f"{name}: all of it trains on {others}; the domains here are {', '.join(known.domains)}")
    before = tables(join(out, OBSERVED))
    called = [join(out, OBSERVATIONS), *before, name]
    pool(known, *map(read_observations, before), told, called=called)  # what contradicts is refused, and not kept
    write(told, join(out, OBSERVED, f"{digest(told)}.parquet"))
    return told


def observed(out: str) -> list[Observations]:
    """What was fed back so far, in an order that does not depend on when."""
    return [read_observations(url) for url in tables(join(out, OBSERVED))]


def digest(*observations: Observations) -> str:
    """Of all rows, in any order."""
    return digests.to_hex(sum(digests.digest(table(one).combine_chunks().to_batches()) for one in observations))


def _with_target(out: str, known: Observations) -> Observations:
    if TARGET in known.runs or not exists(join(out, MIXTURE)):
        return known
    mixture = read_mixture(join(out, MIXTURE))
    told: dict[str, Any] = {"tokens": np.nan if mixture.tokens is None else mixture.tokens}
    weights = [mixture.weights.get(domain, 0.0) for domain in known.domains]
    points = Points.of(known.domains, weights, unique_tokens=mixture.unique_tokens or np.nan, **told)
    target = Observations.of(points, known.metrics, np.full((1, len(known.metrics)), np.nan), runs=[TARGET])
    return pool(known, target)
