"""The sequential decision inside components, against a plain one in Python, whatever the batches."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from dedup.greedy import EDGE, FATES, Greedy

Row = tuple[int, int, int, int, int, float]


def plain(rows: list[Row]) -> dict[int, tuple[int, float]]:
    fates: dict[int, tuple[int, float]] = {}
    for b in dict.fromkeys(row[1] for row in rows):
        kept = [(-row[5], row[3], row[4], row[2]) for row in rows if row[1] == b and row[2] not in fates]
        if kept:
            similarity, *_, a = min(kept)
            fates[b] = (a, -similarity)
    return fates


def edges(seed: int, components: int, size: int) -> list[Row]:
    draw = random.Random(seed)
    rows: list[Row] = []
    for component in range(components):
        first = component * size
        for b in range(first + 1, first + size):
            for a in draw.sample(range(first, b), min(b - first, draw.randrange(1, 4))):
                rows.append((component, b, a, -a % 5, a % 3, draw.choice([0.8, 0.85, 0.9])))
    return rows


@pytest.mark.parametrize(("seed", "components", "size"), [(0, 1, 2), (1, 40, 5), (2, 2, 700), (3, 5, 100)])
@pytest.mark.parametrize("batch", [1, 7, 100_000])
def test_it_decides_as_the_plain_form_does(seed: int, components: int, size: int, batch: int) -> None:
    rows = edges(seed, components, size)
    table = pa.table(dict(zip(EDGE, zip(*rows, strict=True), strict=True)))
    out = pa.Table.from_batches(Greedy()(iter(table.to_batches(max_chunksize=batch))), FATES)
    found = {row["doc"]: (row["kept"], row["similarity"]) for row in out.to_pylist()}
    assert len(found) == out.num_rows
    assert found == plain(rows)


def test_no_edges_no_removals() -> None:
    assert sum(batch.num_rows for batch in Greedy()(iter(()))) == 0
