"""Observations of runs: mixtures, scales and measured metrics, from tables and published layouts.

Observations, Points, MixingError     what was measured, where; domains by name
read_observations(source, losses)     CSV, Parquet (path, URL) or Arrow: `train proxies`' or a published one
write(observations, url)              one tidy table, .parquet or .csv, whole or not at all; table(observations)
pool(*observations)                   several swarms over the union of their domains and metrics
split, merge, rename, add             domains changed without losing a run
replicates, noise, uneven_noise       pure error of repeated mixtures
effective_tokens(...)                 what repeated tokens are worth: mixing.observations.repetition
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mixing.observations.observations import Observations
from mixing.observations.points import MixingError, Points

if TYPE_CHECKING:
    from mixing.observations.domains import add, merge, rename, split
    from mixing.observations.merging import pool
    from mixing.observations.repetition import effective_tokens, effective_weights
    from mixing.observations.replication import noise, replicates, uneven_noise
    from mixing.observations.tables import read_observations
    from mixing.observations.tidy import table, write

__all__ = [
    "MixingError",
    "Observations",
    "Points",
    "add",
    "effective_tokens",
    "effective_weights",
    "merge",
    "noise",
    "pool",
    "read_observations",
    "rename",
    "replicates",
    "split",
    "table",
    "uneven_noise",
    "write",
]

_HOMES = {
    "add": "domains",
    "effective_tokens": "repetition",
    "effective_weights": "repetition",
    "merge": "domains",
    "noise": "replication",
    "pool": "merging",
    "read_observations": "tables",
    "rename": "domains",
    "replicates": "replication",
    "split": "domains",
    "table": "tidy",
    "uneven_noise": "replication",
    "write": "tidy",
}


def __getattr__(name: str) -> Any:
    # Arrow takes a while to import, and laws need none of it.
    if name not in _HOMES:
        raise AttributeError(f"module 'mixing.observations' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"mixing.observations.{_HOMES[name]}"), name)
