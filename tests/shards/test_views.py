"""The views read an output's own files whatever its path looks like, and name a file that is broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.engines.duckdb_shuffle import DuckdbShuffle
from shards.store import tables
from shards.views import DamagedError, connect, literal, run_of
from tests.jobs.made_output import make

LOOKALIKES = [("br[a]ck", "brack"), ("x[!a]", "xb"), ("st*r?", "starx"), ("a{b,c}d", "abd"), ("**", "other")]


@pytest.mark.parametrize(("name", "match"), LOOKALIKES)
def test_an_output_is_read_alone_beside_one_that_its_name_would_match(tmp_path: Path, name: str, match: str) -> None:
    make(tmp_path / match, rows=60)
    mine = make(tmp_path / name, rows=30)
    there = sum(pq.read_table(path).num_rows for path in mine.glob("*/dropped/*.parquet"))
    with connect(str(mine)) as views:
        assert views.sql("SELECT count(*) FROM dropped").fetchall() == [(there,)]


@pytest.mark.parametrize(("name", "match"), LOOKALIKES)
def test_a_shuffle_reads_and_writes_alone(tmp_path: Path, name: str, match: str) -> None:
    for number, folder in enumerate((match, name)):
        (tmp_path / folder / "in").mkdir(parents=True)
        pq.write_table(pa.table({"n": [number]}), tmp_path / folder / "in" / "part-00000.parquet")
    shuffle = DuckdbShuffle()
    inputs = str(tmp_path / name / "in")
    out = shuffle.query("SELECT n FROM t", str(tmp_path / name / "out"), t=inputs)
    assert [pq.ParquetFile(path).read().to_pylist() for path in tables(out)] == [[{"n": 1}]]
    assert shuffle.scalar("SELECT sum(n) FROM t", t=inputs) == 1
    assert not (tmp_path / match / "out").exists()


def test_a_path_that_looks_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    plain, odd = make(tmp_path / "plain", rows=30), make(tmp_path / "date=2024-01-01", rows=30)
    with connect(str(plain)) as one, connect(str(odd)) as two:
        assert one.sql("DESCRIBE dropped").fetchall() == two.sql("DESCRIBE dropped").fetchall()
        assert one.sql("FROM documents ORDER BY id").fetchall() == two.sql("FROM documents ORDER BY id").fetchall()


def test_only_wildcards_are_spelt_otherwise() -> None:
    assert literal("out/a=b{c}/part-00000.parquet") == "out/a=b{c}/part-00000.parquet"
    assert literal("a[b]*?") == "a[[]b][*][?]"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", "null", "3", '{"steps": 3}', '{"steps": []}', '{"steps": [{"step": "read"}]}']
)
def test_a_broken_run_json_is_named(tmp_path: Path, content: str) -> None:
    out = make(tmp_path / "out", rows=30)
    (out / "run.json").write_text(content, encoding="utf-8")
    with pytest.raises(DamagedError, match=r"out/run\.json: .*gristmill run") as caught:
        connect(str(out))
    assert "\n" not in str(caught.value)


def test_no_run_json_is_another_matter(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_of(str(tmp_path))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("kind", ["data", "dropped", "signals", "documents"])
@pytest.mark.parametrize("spoil", [_cut, _empty])
def test_a_damaged_table_is_named(tmp_path: Path, kind: str, spoil: Callable[[Path], None]) -> None:
    out = make(tmp_path / "out", rows=60)
    path = sorted(out.glob(f"*/{kind}/*.parquet"))[-1]
    spoil(path)
    with pytest.raises(DamagedError) as caught:
        connect(str(out))
    assert str(caught.value).startswith(f"{path}: is damaged or gone; run the recipe again")
