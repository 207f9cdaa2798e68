"""All that teachers and verifiers ever said, and what became of each row, in one SQLite file: kill -9 loses nothing.

Store.open(folder)               context manager; one writer at a time, readers beside it (read_only=True)
    .answers                     requests, replies and failures by Request.key, verdicts by Check.key
    .items                       tasks, their items with outcome and reason, samples, allocations
    .runs                        settings, seconds, counts and cost of each run
to_parquet(store, folder)        samples, items, requests with replies as Parquet shards
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth.store.parquet import to_parquet
    from synth.store.store import Store

__all__ = ["Store", "to_parquet"]

_HOMES = {"Store": "synth.store.store", "to_parquet": "synth.store.parquet"}


def __getattr__(name: str) -> Any:
    # pyarrow takes a while to import, and a reader of settings needs neither.
    if name not in _HOMES:
        raise AttributeError(f"module 'synth.store' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
