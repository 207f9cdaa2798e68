"""Documents on disk and the verdicts of a whole-corpus step on them, for this folder's tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from jobs.engines.duckdb_shuffle import DuckdbShuffle
from shards.step import CorpusStep, Shuffle
from shards.store import tables


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """removed: {id: (kept_id, similarity)}; survivors: {id: (copies, first_seen)}; rows: the removals as stored."""

    removed: dict[str, tuple[str, float]]
    survivors: dict[str, tuple[int, datetime | None]]
    rows: list[dict[str, Any]]


def content_ids(texts: Sequence[str]) -> list[str]:
    return [xxhash.xxh3_128_hexdigest(f"{number} {text}".encode()) for number, text in enumerate(texts)]


def decide(
    step: CorpusStep,
    texts: Sequence[str],
    folder: Path,
    *,
    ids: Sequence[str] | None = None,
    shards: int = 3,
    shuffle: Shuffle | None = None,
    **columns: pa.Array,
) -> Outcome:
    """Deal the documents over shards, decide, and read the verdicts back by id."""
    ids = content_ids(texts) if ids is None else ids
    table = pa.table({"id": pa.array(ids, pa.string()), "text": pa.array(texts, pa.large_string()), **columns})
    folder.mkdir(parents=True, exist_ok=True)
    paths = [str(folder / f"part-{shard:05d}.parquet") for shard in range(shards)]
    for shard, path in enumerate(paths):
        pq.write_table(table.take(pa.array(range(shard, len(texts), shards), pa.int64())), path)
    shuffle = shuffle or DuckdbShuffle(workers=1, memory_bytes=1 << 28)
    verdicts = step.decide(paths, shuffle, str(folder / "work"))
    rows = [row for path in tables(verdicts.removed) for row in pq.read_table(path).to_pylist()]
    kept = [row for path in tables(verdicts.survivors) for row in pq.read_table(path).to_pylist()]
    for told in (rows, kept):
        assert told == sorted(told, key=lambda row: (row["shard"], row["row"]))

    def name(row: dict[str, Any]) -> str:
        return ids[row["row"] * shards + row["shard"]]

    assert len({name(row) for row in rows}) == len(rows) or len(set(ids)) < len(ids)
    return Outcome(
        removed={name(row): (row["kept_id"], row["similarity"]) for row in rows},
        survivors={name(row): (row["copies"], row["first_seen"]) for row in kept},
        rows=rows,
    )


@pytest.fixture
def verdict(tmp_path: Path) -> Callable[..., Outcome]:
    """verdict(step, texts, ids=None, shards=3, shuffle=None, **columns) -> Outcome."""
    calls: list[int] = []

    def call(step: CorpusStep, texts: Sequence[str], **told: Any) -> Outcome:
        calls.append(1)
        return decide(step, texts, tmp_path / str(len(calls)), **told)

    return call
