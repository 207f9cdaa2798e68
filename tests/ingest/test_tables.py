"""Table files: good rows arrive, faulty ones are lost alone and located; cuts neither lose nor repeat a line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest import Lost, Source, list_inputs, plan_units, read


def rows_and_lost(
    source: Source, unit_bytes: int = 64 << 20, **settings: int
) -> tuple[list[dict[str, Any]], list[Lost]]:
    rows: list[dict[str, Any]] = []
    lost: list[Lost] = []
    for unit in plan_units(source, list_inputs(source), unit_bytes):
        for records in read(unit, **settings):
            records.batch.validate(full=True)
            rows += records.kept.to_pylist()
            lost += records.lost
    return rows, lost


def jsonl(path: Path, **settings: Any) -> Source:
    return Source(name="t", format="jsonl", paths=(str(path),), **settings)


def write_lines(path: Path, lines: Iterable[bytes]) -> Path:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def numbered(count: int) -> list[bytes]:
    return [json.dumps({"text": f"text number {i} \u00e9", "id": f"d{i}", "n": i}).encode() for i in range(count)]


def test_one_bad_byte_in_20_000_rows_costs_one_row(tmp_path: Path) -> None:
    lines = numbered(20_000)
    lines[10_000] = lines[10_000].replace(b"text number", b"text \xff number")
    path = write_lines(tmp_path / "a.jsonl", lines)
    rows, lost = rows_and_lost(jsonl(path))
    assert len(rows) == 19_999
    assert [(fault.location, fault.error) for fault in lost] == [(f"{path}:10001", "encoding")]
    assert sum(row["_bytes"] for row in rows) + lost[0].bytes == path.stat().st_size


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"[1, 2]", "not_an_object"),
        (b'{"text": 12}', "bad_type"),
        (b'{"text": null}', "missing_text"),
        (b'{"id": "x"}', "missing_text"),
        (b'{"text": "a"', "bad_json"),
        (b'{"text": "a"} {"text": "b"}', "bad_json"),
        (b'{"text": "\\ud800"}', "encoding"),
        (b'{"text": "a", "n": "7"}', "bad_type"),
        (b'{"text": "a", "n": 1.5}', "bad_type"),
        (b'{"text": "a", "n": 99999999999999999999}', "bad_type"),
        (b'{"text": "a", "url": ["u"]}', "bad_type"),
        (b"[" * 100_000, "bad_json"),
    ],
)
def test_a_faulty_line_is_lost_alone(tmp_path: Path, line: bytes, error: str) -> None:
    path = write_lines(tmp_path / "a.jsonl", [*numbered(3), line, *numbered(2)])
    rows, lost = rows_and_lost(jsonl(path, columns={"n": "int64"}))
    assert len(rows) == 5
    assert [(fault.location, fault.error, fault.bytes) for fault in lost] == [(f"{path}:4", error, len(line) + 1)]


def test_messages_of_faults_never_hold_text(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "a.jsonl", [b'{"text": "SECRET" oops}', b'{"text": "SECRET\xff"}', b'{"text": {"a": "SECRET"}}']
    )
    _, lost = rows_and_lost(jsonl(path))
    assert len(lost) == 3
    assert not any("SECRET" in fault.message or "\n" in fault.message for fault in lost)


def test_metadata_may_be_missing_null_and_then_a_string(tmp_path: Path) -> None:
    lines = [b'{"text": "a"}'] * 1500 + [
        b'{"text": "b", "x": null}',
        b'{"text": "c", "x": "s", "date": "2020-01-02"}',
        b'{"text": "d", "x": 5}',
    ]
    rows, lost = rows_and_lost(jsonl(write_lines(tmp_path / "a.jsonl", lines), columns={"x": "string"}))
    assert not lost
    assert [row["x"] for row in rows[-4:]] == [None, None, "s", "5"]
    assert rows[-2]["date"].isoformat() == "2020-01-02T00:00:00+00:00"


def test_ids_may_be_numbers(tmp_path: Path) -> None:
    rows, _ = rows_and_lost(
        jsonl(write_lines(tmp_path / "a.jsonl", [b'{"text": "a", "id": 7}', b'{"text": "b", "id": 8}']))
    )
    assert [row["source_id"] for row in rows] == ["7", "8"]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [b"", b"\n"])
def test_line_ends_blank_lines_and_byte_order_mark(tmp_path: Path, ending: bytes, last: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + ending.join([b'{"text": "a"}', b"", b'{"text": "b"}']) + last)
    rows, lost = rows_and_lost(jsonl(path))
    assert [row["text"] for row in rows] == ["a", "b"]
    assert not lost


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("unit_bytes", [100, 999, 5000, 1 << 20])
def test_cuts_neither_lose_nor_repeat_a_line(
    tmp_path: Path, packed: bool, unit_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.lines.STRIPE", 700)
    lines = numbered(500)
    lines[77] = b"oops" * 20
    lines[400] = b'{"text": "' + b"x" * 3000 + b'"}'
    path = write_lines(tmp_path / "a.jsonl", lines)
    if packed:
        path = tmp_path / "a.jsonl.gz"
        path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in lines)))
    whole = rows_and_lost(jsonl(path), 1 << 30)
    cut = rows_and_lost(jsonl(path), unit_bytes)
    assert sorted(row["id"] for row in cut[0]) == sorted(row["id"] for row in whole[0])
    assert len(whole[0]) == 499
    assert cut[1] == whole[1]
    assert cut[1][0].location == f"{path}:78"


def test_batches_are_bounded(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", numbered(100))
    (unit,) = plan_units(jsonl(path), list_inputs(jsonl(path)))
    assert {records.batch.num_rows for records in read(unit, batch_rows=30)} == {30, 10}
    sizes = [records.batch.num_rows for records in read(unit, batch_bytes=200)]
    assert max(sizes) <= 4
    assert sum(sizes) == 100


@pytest.mark.parametrize("pack", ["gz", "zst"])
def test_a_file_cut_in_half_gives_its_first_half(tmp_path: Path, pack: str) -> None:
    lines = [json.dumps({"text": f"{i * 7919 % 104729:x} " * 40, "id": str(i)}).encode() for i in range(5000)]
    data = b"".join(line + b"\n" for line in lines)
    packed = gzip.compress(data) if pack == "gz" else pa.Codec("zstd").compress(data, asbytes=True)
    path = tmp_path / f"a.jsonl.{pack}"
    path.write_bytes(packed[: len(packed) // 2])
    rows, lost = rows_and_lost(jsonl(path))
    assert [row["source_id"] for row in rows] == [str(i) for i in range(len(rows))]
    assert 1000 < len(rows) < 4000
    assert [fault.error for fault in lost] == ["truncated"]
    assert lost[0].location.endswith(f"-{len(packed) // 2}")


def test_a_line_above_the_limit_is_passed_over(tmp_path: Path) -> None:
    lines = [*numbered(2), b'{"text": "' + b"y" * (9 << 20) + b'"}', *numbered(3)]
    path = write_lines(tmp_path / "a.jsonl", lines)
    rows, lost = rows_and_lost(jsonl(path, max_record_bytes=1 << 20))
    assert len(rows) == 5
    assert [(fault.location, fault.error, fault.bytes) for fault in lost] == [
        (f"{path}:3", "too_large", len(lines[2]) + 1)
    ]


def test_empty_file(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl.gz"):
        (tmp_path / name).write_bytes(b"" if name == "a.jsonl" else gzip.compress(b""))
        assert rows_and_lost(jsonl(tmp_path / name)) == ([], [])


CHAT = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello\n"}]}


def test_messages_are_rendered(tmp_path: Path) -> None:
    bad = [{"messages": []}, {"messages": [{"role": 1}]}, {"messages": "x"}, {"text": "x"}]
    path = write_lines(tmp_path / "a.jsonl", [json.dumps(row).encode() for row in [CHAT, *bad]])
    rows, lost = rows_and_lost(Source(name="t", format="messages", paths=(str(path),)))
    assert [row["text"] for row in rows] == ["user: Hi\n\nassistant: Hello\n"]
    assert rows[0]["messages"] == CHAT["messages"]
    assert len(lost) == 4
    table = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([CHAT]), table)
    assert rows_and_lost(Source(name="t", format="messages", paths=(str(table),)))[0][0]["messages"] == CHAT["messages"]


def parquet(path: Path, **settings: Any) -> Source:
    return Source(name="t", format="parquet", paths=(str(path),), **settings)


def test_parquet_rows_by_row_group(tmp_path: Path) -> None:
    table = pa.table(
        {"text": [f"text {i}" for i in range(100)], "id": list(range(100)), "n": pa.array(range(100), pa.int32())}
    )
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=10)
    for unit_bytes in (1 << 30, 500):
        rows, lost = rows_and_lost(parquet(path, columns={"n": "int64"}), unit_bytes)
        assert sorted((row["source_id"], row["n"]) for row in rows) == sorted((str(i), i) for i in range(100))
        assert not lost


def test_parquet_faults(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a", None, "c"]}), path)
    rows, lost = rows_and_lost(parquet(path))
    assert [row["text"] for row in rows] == ["a", "c"]
    assert [(fault.location, fault.error) for fault in lost] == [(f"{path}:row group 0 row 1", "missing_text")]
    path.write_bytes(path.read_bytes()[:-20])
    rows, lost = rows_and_lost(parquet(path))
    assert not rows
    assert [fault.error for fault in lost] == ["bad_parquet"]


def test_parquet_damaged_page(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"text": [f"{i * 7919 % 104729:x}" * 20 for i in range(4000)]})
    pq.write_table(table, path, row_group_size=1000, compression="zstd", use_dictionary=False)
    data = bytearray(path.read_bytes())
    at = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset + 200
    data[at : at + 50] = b"\0" * 50
    path.write_bytes(data)
    rows, lost = rows_and_lost(parquet(path))
    assert len(rows) >= 3000
    assert [fault.error for fault in lost] == ["bad_parquet"]


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(
        b'\xef\xbb\xbfid,text,n\r\n1,"two\nlines, ""quoted""",5\r\n2,short\r\n3,plain,x\r\n4,\xff,1\r\n5,last,\r\n'
    )
    rows, lost = rows_and_lost(Source(name="t", format="csv", paths=(str(path),), columns={"n": "int64"}))
    assert [(row["source_id"], row["text"], row["n"]) for row in rows] == [
        ("1", 'two\nlines, "quoted"', 5),
        ("5", "last", None),
    ]
    assert [(fault.location, fault.error) for fault in lost] == [
        (f"{path}:4", "bad_csv"),
        (f"{path}:5", "bad_type"),
        (f"{path}:6", "encoding"),
    ]
