"""Connected components by rounds of SQL, against a union-find."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dedup.components import components
from jobs.engines.duckdb_shuffle import DuckdbShuffle
from shards.store import tables


def labels(edges: list[tuple[int, int]], folder: Path) -> dict[int, int]:
    (folder / "edges").mkdir()
    a, b = zip(*edges, strict=True) if edges else ((), ())
    pq.write_table(
        pa.table({"a": pa.array(a, pa.int64()), "b": pa.array(b, pa.int64())}), folder / "edges" / "p.parquet"
    )
    shuffle = DuckdbShuffle(workers=1, memory_bytes=1 << 28)
    found = components(shuffle, str(folder / "edges"), str(folder / "work"))
    rows = [row for path in tables(found) for row in pq.read_table(path).to_pylist()]
    assert len({row["doc"] for row in rows}) == len(rows)
    return {row["doc"]: row["component"] for row in rows}


def expected(edges: list[tuple[int, int]]) -> dict[int, int]:
    parent: dict[int, int] = {}

    def root(x: int) -> int:
        parent.setdefault(x, x)
        while parent[x] != x:
            x = parent[x]
        return x

    for a, b in edges:
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    return {x: root(x) for x in parent}


GRAPHS = {
    "none": [],
    "one edge": [(5, 2)],
    "both directions and twice": [(1, 2), (2, 1), (1, 2)],
    "a path of 500": [(i, i + 1) for i in range(500)],
    "a path in a hard order": [(i * 7919 % 997, (i + 1) * 7919 % 997) for i in range(900)],
    "a star around its largest": [(1000, i) for i in range(300)],
    "random": [(random.Random(i).randrange(400), random.Random(-i).randrange(400)) for i in range(1, 260)],
}


@pytest.mark.parametrize("name", GRAPHS)
def test_each_component_bears_its_smallest_number(name: str, tmp_path: Path) -> None:
    edges = [(a, b) for a, b in GRAPHS[name] if a != b]
    assert labels(edges, tmp_path) == expected(edges)
