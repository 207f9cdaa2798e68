"""A token shard appears whole or not at all, however its parts come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from train.tokenise.write import WriteKernel

STREAM = pa.schema(
    [
        ("shard", pa.int32()),
        ("id", pa.large_string()),
        ("part", pa.int32()),
        ("source", pa.string()),
        ("domain", pa.string()),
        ("token_count", pa.int32()),
        ("language", pa.string()),
        ("text_bytes", pa.int64()),
        ("tokens", pa.binary()),
    ]
)
# Shard 0: a document of two parts and an empty one; shard 2: one document. Ids are counted up from 0 in each.
PARTS = [(0, "a", 0, 5, [0, 1, 2]), (0, "a", 1, 5, [3, 4]), (0, "b", 0, 0, []), (2, "c", 0, 2, [0, 1])]


def batches(rows: list[tuple[int, str, int, int, list[int]]], size: int) -> Iterator[pa.RecordBatch]:
    table = [
        (shard, name, part, "s", "d", count, "eng_Latn", 9 * count, np.array(ids, "<u2").tobytes())
        for shard, name, part, count, ids in rows
    ]
    for start in range(0, len(table), size):
        columns = [list(column) for column in zip(*table[start : start + size], strict=True)]
        yield pa.RecordBatch.from_arrays(
            [pa.array(c, f.type) for c, f in zip(columns, STREAM, strict=True)], schema=STREAM
        )


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_batches_change_nothing(size: int, tmp_path: Path) -> None:
    told = [
        row
        for batch in WriteKernel(out=str(tmp_path), shards=3, width=2)(batches(PARTS, size))
        for row in batch.to_pylist()
    ]
    assert [(row["shard"], row["documents"], row["tokens"], row["bytes"]) for row in told] == [
        (0, 2, 5, 10),
        (2, 1, 2, 4),
    ]
    assert np.fromfile(tmp_path / "data/part-00000-of-00003.bin", "<u2").tolist() == [0, 1, 2, 3, 4]
    assert np.fromfile(tmp_path / "ends/part-00000-of-00003.bin", "<u8").tolist() == [5, 5]
    rows = pq.read_table(tmp_path / "documents/part-00000-of-00003.parquet").to_pylist()
    assert [(row["id"], row["start"], row["token_count"]) for row in rows] == [("a", 0, 5), ("b", 5, 0)]
    assert [(row["language"], row["text_bytes"]) for row in rows] == [("eng_Latn", 45), ("eng_Latn", 0)]
    assert told == [
        row
        for batch in WriteKernel(out=str(tmp_path / "again"), shards=3, width=2)(batches(PARTS, 99))
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("size", [1, 9])
def test_a_missing_part_is_noticed_and_leaves_no_shard(size: int, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"^token shard 0: 6 bytes where its documents have 10$"):
        list(WriteKernel(out=str(tmp_path), shards=3, width=2)(batches([PARTS[0], *PARTS[2:]], size)))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_stream_that_breaks_leaves_the_shards_before_it(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from batches(PARTS, 1)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        list(WriteKernel(out=str(tmp_path), shards=3, width=2)(broken()))
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "part-00000-of-00003.bin",
        "part-00000-of-00003.bin",
        "part-00000-of-00003.parquet",
    ]
