from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shards.digest import digest
from shards.store import (
    ParquetWriter,
    atomic,
    exists,
    join,
    names,
    read_batches,
    read_json,
    remove,
    tables,
    write_bytes,
    write_json,
)

SCHEMA = pa.schema([("id", pa.string()), ("text", pa.large_string())])


def batch(first: int, rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{"id": str(n), "text": f"text {n}"} for n in range(first, first + rows)], schema=SCHEMA
    )


def interrupted(url: str, half: bytes) -> None:
    """Begin to write, and stop as Ctrl-C does."""
    try:
        with atomic(url) as out:
            out.write(half)
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        return


def test_a_file_has_its_name_only_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "a" / "part.bin"
    interrupted(str(target), b"half")
    assert not target.exists()
    assert os.listdir(tmp_path / "a") == []
    with atomic(str(target)) as out:
        out.write(b"whole")
    assert target.read_bytes() == b"whole"


def test_an_interrupted_rewrite_leaves_the_old_file(tmp_path: Path) -> None:
    target = str(tmp_path / "value.json")
    write_json(target, {"value": 1})
    interrupted(target, b"{")
    assert read_json(target) == {"value": 1}


def test_partial_files_of_a_killed_process_are_not_listed(tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet.0123abcd.partial").write_bytes(b"x")
    write_bytes(str(tmp_path / "part-1.parquet"), b"x")
    assert names(str(tmp_path)) == ["part-1.parquet"]
    assert tables(str(tmp_path)) == [str(tmp_path / "part-1.parquet")]


def test_an_empty_shard_has_its_schema_and_transient_columns_are_not_written(tmp_path: Path) -> None:
    path = str(tmp_path / "part.parquet")
    with ParquetWriter(path, SCHEMA.append(pa.field("_row", pa.int64()))):
        pass
    assert pq.read_schema(path) == SCHEMA
    assert list(read_batches(path)) == []


def test_rows_come_back_in_order_with_their_digest(tmp_path: Path) -> None:
    path = str(tmp_path / "part.parquet")
    with ParquetWriter(path, SCHEMA, row_group_bytes=1000) as writer:
        for first in range(0, 100, 10):
            writer.write(batch(first, 10))
    rows = [row for part in read_batches(path, batch_rows=7) for row in part.to_pylist()]
    assert [row["id"] for row in rows] == [str(n) for n in range(100)]
    assert writer.rows == 100
    assert writer.digest == digest([batch(0, 100)])
    assert pq.ParquetFile(path).metadata.num_row_groups > 1


def test_a_missing_column_is_null_and_a_wrong_type_is_a_bug(tmp_path: Path) -> None:
    with ParquetWriter(str(tmp_path / "a.parquet"), SCHEMA) as writer:
        writer.write(batch(0, 1).select(["id"]))
    assert next(read_batches(str(tmp_path / "a.parquet"))).to_pylist() == [{"id": "0", "text": None}]
    numbers = pa.schema([("id", pa.int32())])
    wrong = pa.RecordBatch.from_pydict({"id": ["x"]})
    with (
        ParquetWriter(str(tmp_path / "b.parquet"), numbers) as writer,
        pytest.raises(TypeError, match="column 'id' is string, declared as int32"),
    ):
        writer.write(wrong)


def test_the_same_code_writes_to_any_fsspec_url() -> None:
    folder = "memory://gristmill-store-test"
    with ParquetWriter(join(folder, "data", "part.parquet"), SCHEMA) as writer:
        writer.write(batch(0, 3))
    assert names(join(folder, "data")) == ["part.parquet"]
    assert sum(part.num_rows for part in read_batches(join(folder, "data", "part.parquet"))) == 3
    write_json(join(folder, "a.json"), {"a": 1})
    assert read_json(join(folder, "a.json")) == {"a": 1}
    for torn in (b"", b"{", b"[]", b"\xff"):
        write_bytes(join(folder, "torn.json"), torn)
        assert read_json(join(folder, "torn.json")) is None
    interrupted(join(folder, "half.bin"), b"half")
    assert not exists(join(folder, "half.bin"))
    remove(folder)
    assert not exists(join(folder, "a.json"))
    assert read_json(join(folder, "a.json")) is None
