"""Tables with odd content: what is odd is lost alone and located, and the rest is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest import Records, Source, list_inputs, plan_units, read
from ingest.dates import instants
from tests.ingest.test_tables import jsonl, parquet, rows_and_lost, write_lines

FAR = [2**62, 5, -(2**62), None]


def csv(path: Path, **settings: Any) -> Source:
    return Source(name="t", format="csv", paths=(str(path),), **settings)


def strings(*values: bytes, kind: pa.DataType | None = None) -> pa.Array:
    """A string column of any bytes."""
    wide = kind == pa.large_string()
    offsets = np.concatenate([[0], np.cumsum([len(value) for value in values])]).astype(np.int64 if wide else np.int32)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(kind or pa.string(), len(values), buffers)


def write(path: Path, columns: dict[str, pa.Array], **settings: Any) -> Path:
    pq.write_table(pa.table(columns), path, **settings)
    return path


def told(lost: list[Any]) -> list[tuple[str, str]]:
    return [(fault.location.rsplit("/", 1)[-1], fault.error) for fault in lost]


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    names = ["text", "text", "n", "n"]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 4, names=names), path)
    rows, lost = rows_and_lost(parquet(path))
    assert (rows, told(lost)) == ([], [(f"a.parquet@0-{path.stat().st_size}", "bad_parquet")])
    assert lost[0].message == "2 columns of the name 'text'"
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 3, names=names[1:]), path)
    assert [row["text"] for row in rows_and_lost(parquet(path))[0]] == ["a"]
    assert told(rows_and_lost(parquet(path, columns={"n": "string"}))[1])[0][1] == "bad_parquet"


@pytest.mark.parametrize(
    "kind", [pa.timestamp(u, z) for u in ("s", "ms", "us") for z in (None, "UTC", "+05:00", "No/Zone")]
)
def test_dates_out_of_range_are_no_dates(tmp_path: Path, kind: pa.DataType) -> None:
    dates = pa.array(FAR, pa.int64()).cast(kind)
    # Parquet has no seconds: they would overflow while they are written.
    dates = dates if kind.unit != "s" else pa.array([10**14, 5, -(10**14), None], pa.int64()).cast(kind)
    path = write(tmp_path / "a.parquet", {"text": pa.array(list("abcd")), "date": dates})
    rows, lost = rows_and_lost(parquet(path))
    moment = datetime.fromtimestamp(5 / {"s": 1, "ms": 1e3, "us": 1e6}[kind.unit], UTC)
    assert [row["date"] for row in rows] == [None, moment, None, None]
    assert not lost
    odd = write(tmp_path / "b.parquet", {"text": pa.array(["a", None, "c", "d"]), "date": dates, "t": dates})
    rows, lost = rows_and_lost(parquet(odd, columns={"t": "timestamp"}))
    assert [(row["text"], row["date"], row["t"]) for row in rows] == [("d", None, None)]
    assert told(lost) == [
        ("b.parquet:row group 0 row 0", "bad_type"),
        ("b.parquet:row group 0 row 1", "missing_text"),
        ("b.parquet:row group 0 row 2", "bad_type"),
    ]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_days_are_their_midnight(tmp_path: Path, kind: pa.DataType) -> None:
    day = 1 if kind == pa.date32() else 86_400_000
    dates = pa.array([18262 * day, 2**31 - 1 if day == 1 else 2**61, None], pa.int32() if day == 1 else pa.int64())
    columns = {"text": pa.array(["a", "b", "c"]), "date": dates.cast(kind), "t": dates.cast(kind)}
    path = write(tmp_path / "a.parquet", columns, store_schema=True)
    rows, lost = rows_and_lost(parquet(path))
    assert [row["date"] for row in rows] == [datetime(2020, 1, 1, tzinfo=UTC), None, None]
    assert not lost
    rows, lost = rows_and_lost(parquet(path, columns={"t": "timestamp"}))
    assert [row["t"] for row in rows] == [datetime(2020, 1, 1, tzinfo=UTC), None]
    assert told(lost) == [("a.parquet:row group 0 row 1", "bad_type")]


def test_instants_at_the_bounds() -> None:
    edges = {"s": [-62135596800, 253402300799], "us": [-62135596800_000000, 253402300799_999999]}
    for unit, (low, high) in edges.items():
        found = instants(pa.array([low - 1, low, high, high + 1], pa.timestamp(unit))).to_pylist()
        assert [value and value.year for value in found] == [None, 1, 9999, None]
    found = instants(pa.array([-1, 1999, 2**63 - 1, -(2**63)], pa.timestamp("ns")).slice(0, 3)).cast(pa.int64())
    assert found.to_pylist() == [-1, 1, (2**63 - 1) // 1000]
    assert instants(pa.array([-719163, -719162, 2932896, 2932897], pa.date32())).null_count == 2
    assert instants(pa.array([], pa.date64())).type == pa.timestamp("us", tz="UTC")


def test_nanoseconds_are_cut(tmp_path: Path) -> None:
    dates = pa.array([1_500, 2**62 + 1], pa.timestamp("ns", tz="UTC"))
    rows, lost = rows_and_lost(parquet(write(tmp_path / "a.parquet", {"text": pa.array(["a", "b"]), "date": dates})))
    assert [row["date"].microsecond for row in rows] == [1, (2**62 + 1) // 1000 % 1_000_000]
    assert not lost


def test_a_year_zero_is_no_date(tmp_path: Path) -> None:
    line = b'{"text": "a", "date": "0000-01-01T00:00:00Z", "t": "0000-01-01T00:00:00Z"}'
    path = write_lines(tmp_path / "a.jsonl", [line])
    assert [row["date"] for row in rows_and_lost(jsonl(path))[0]] == [None]
    assert told(rows_and_lost(jsonl(path, columns={"t": "timestamp"}))[1]) == [("a.jsonl:1", "bad_type")]
    table = write(tmp_path / "a.parquet", {"text": pa.array(["a"]), "date": pa.array(["0000-01-01T00:00:00Z"])})
    assert [row["date"] for row in rows_and_lost(parquet(table))[0]] == [None]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("field", ["text", "id", "url", "date", "x"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_strings_that_are_not_utf8_cost_their_row(
    tmp_path: Path, kind: pa.DataType, field: str, dictionary: bool
) -> None:
    bad = strings(b"a", b"\xff\xfe", "\u00e9".encode(), b"\xed\xa0\x80", kind=kind)
    bad = bad.dictionary_encode() if dictionary else bad
    columns = {name: pa.array(list("abcd")) for name in ("text", "id", "url", "x")} | {field: bad}
    path = write(tmp_path / "a.parquet", columns)
    rows, lost = rows_and_lost(parquet(path, columns={"x": "string"}))
    assert [row["text"] for row in rows] == ["a", "\u00e9" if field == "text" else "c"]
    assert told(lost) == [(f"a.parquet:row group 0 row {row}", "encoding") for row in (1, 3)]
    assert lost[0].message == f"field {field!r} is not UTF-8"


def test_nested_strings_that_are_not_utf8_cost_their_row(tmp_path: Path) -> None:
    tags = pa.ListArray.from_arrays([0, 1, 2], strings(b"a", b"\xff"))
    path = write(tmp_path / "a.parquet", {"text": pa.array(["a", "b"]), "tags": tags})
    rows, lost = rows_and_lost(parquet(path, columns={"tags": "list<string>"}))
    assert ([row["tags"] for row in rows], [fault.error for fault in lost]) == ([["a"]], ["encoding"])
    message = pa.StructArray.from_arrays([strings(b"user", b"user"), strings(b"Hi", b"\xff")], ["role", "content"])
    chats = write(tmp_path / "c.parquet", {"messages": pa.ListArray.from_arrays([0, 1, 2], message)})
    rows, lost = rows_and_lost(Source(name="t", format="messages", paths=(str(chats),)))
    assert ([row["text"] for row in rows], [fault.error for fault in lost]) == (["user: Hi"], ["encoding"])


ODD: list[pa.Array] = [
    pa.array([b"\xff", b"a"]),
    pa.array([1, None], pa.time64("ns")),
    pa.array([2**62, 1], pa.duration("us")),
    pa.array([1.5, float("nan")]),
    pa.array([2**64 - 1, 1], pa.uint64()),
    pa.array([{"a": 1}, None]),
    pa.array([[1], None], pa.list_(pa.int8())),
    pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    pa.array([True, None]),
    pa.nulls(2),
    pa.array([2**62, None], pa.timestamp("us")),
    pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([3, 4])], ["a", "a"]),
    pa.array(["a", "b"], pa.string_view()),
    pa.array([1, 2]).cast(pa.decimal128(30, 2)),
]


@pytest.mark.parametrize("odd", ODD, ids=lambda array: str(array.type))
@pytest.mark.parametrize("column", ["text", "id", "url", "date", "x", "messages"])
def test_any_type_in_any_column_gets_an_answer(tmp_path: Path, odd: pa.Array, column: str) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": pa.array(["a", "b"]), "odd": odd}), path)
    source = parquet(path)
    if column == "messages":
        source = Source(name="t", format="messages", paths=(str(path),), messages_field="odd")
    elif column != "x":
        source = parquet(path, **{f"{column}_field": "odd"})
    sources = [
        parquet(path, columns={"odd": kind}) for kind in ("string", "int32", "bool", "timestamp", "list<string>")
    ]
    for one in [source] if column != "x" else sources:
        rows, lost = rows_and_lost(one)
        assert len(rows) + len(lost) == 2
        assert not any("bug" in fault.message or fault.error == "unreadable" for fault in lost)


def test_a_batch_that_fails_is_lost_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet", {"text": pa.array(list("abcdef"))})

    def refuse(batch: pa.RecordBatch) -> Any:
        raise RuntimeError("SECRET")

    def look(_: Source, batch: pa.RecordBatch, __: Any) -> Any:
        if batch.column(0)[0].as_py() == "c":
            raise KeyError("SECRET")
        return {"text": batch.column(0), "_bytes": pa.array([1, 1])}

    monkeypatch.setattr("ingest.parquet.python_rows", refuse)
    monkeypatch.setattr("ingest.parquet._columns", look)
    rows, lost = rows_and_lost(parquet(path), batch_rows=2)
    assert [row["text"] for row in rows] == list("abef")
    assert told(lost) == [("a.parquet:row group 0 row 2", "bad_parquet")]
    assert "SECRET" not in lost[0].message


def test_a_file_that_makes_its_reader_fail_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        write_lines(tmp_path / name, [json.dumps({"text": name}).encode()])
    from ingest import tables

    whole = tables.read_table

    def fail(piece: Any, gatherer: Any) -> Iterator[Records]:
        if piece.name == "a.jsonl":
            raise KeyError("SECRET")
        return whole(piece, gatherer)

    monkeypatch.setattr(tables, "read_table", fail)
    rows, lost = rows_and_lost(jsonl(tmp_path))
    assert [row["text"] for row in rows] == ["b.jsonl"]
    assert told(lost) == [("a.jsonl@0-20", "unreadable")]
    assert lost[0].message == "cannot be read: KeyError"


def test_a_parquet_row_above_the_limit(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"text": pa.array(["a", "b" * 2000])})
    rows, lost = rows_and_lost(parquet(path, max_record_bytes=1024))
    assert len(rows) == 1
    assert told(lost) == [("a.parquet:row group 0 row 1", "too_large")]


def test_csv_without_the_text_column_loses_its_rows_and_not_the_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,body\n1,x\n2,y\n")
    rows, lost = rows_and_lost(csv(path))
    assert (rows, told(lost)) == ([], [("a.csv:2", "missing_text"), ("a.csv:3", "missing_text")])
    path.write_text("id,body\n")
    assert rows_and_lost(csv(path)) == ([], [])


def test_csv_with_two_columns_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,text,n,n\na,b,1,2\n")
    rows, lost = rows_and_lost(csv(path))
    assert (rows, told(lost)) == ([], [("a.csv@0-22", "bad_csv")])
    assert (lost[0].message, lost[0].bytes) == ("the header has 2 columns of the name 'text'", 22)
    path.write_text("text,n,n\na,1,2\n")
    assert [row["text"] for row in rows_and_lost(csv(path))[0]] == ["a"]


def test_csv_messages_nested_too_deeply(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("messages\n" + "[" * 100_000 + "\n")
    source = Source(name="t", format="messages", paths=(str(path),))
    assert told(rows_and_lost(source)[1]) == [("a.csv:2", "bad_type")]


def test_an_empty_chat_is_told_as_one(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [b'{"messages": []}'])
    _, lost = rows_and_lost(Source(name="t", format="messages", paths=(str(path),)))
    assert [(fault.error, fault.message) for fault in lost] == [
        ("missing_text", "field 'messages' is a list without messages")
    ]


@pytest.mark.parametrize("format_", ["jsonl", "parquet", "csv", "messages"])
def test_nuls_are_taken_out_of_names_and_carried_strings(tmp_path: Path, format_: str) -> None:
    chat = [{"role": "us\0er", "content": "H\0i"}]
    row = {"text": "t", "id": "i\0d", "url": "http://\0u", "x": "x\0\0y", "tags": ["\0a", "b"], "messages": chat}
    path = tmp_path / f"a.{'jsonl' if format_ == 'messages' else format_}"
    if format_ == "parquet":
        pq.write_table(pa.Table.from_pylist([row]), path)
    elif format_ == "csv":
        path.write_text('text,id,url,x,tags\nt,i\0d,http://\0u,x\0\0y,"[""\\u0000a"", ""b""]"\n')
    else:
        path.write_text(json.dumps(row) + "\n")
    columns = {"x": "string", "tags": "list<string>"}
    source = Source(name="t", format=format_, paths=(str(path),), columns=columns)  # type: ignore[arg-type]
    (found,), lost = rows_and_lost(source)
    assert not lost
    assert (found["source_id"], found["url"], found["x"], found["tags"]) == ("id", "http://u", "xy", ["a", "b"])
    assert found.get("messages") in (None, [{"role": "user", "content": "Hi"}])


@pytest.mark.parametrize("codec", ["undefined", "unicode_escape", "raw_unicode_escape", "utf-7", "punycode", "idna"])
def test_codecs_that_are_no_charsets_are_not_taken_from_a_file(tmp_path: Path, codec: str) -> None:
    content = f"# coding: {codec}\nx = '\\ud800 +2AA-'\n"
    (tmp_path / "a.py").write_text(content)
    (tmp_path / "b.py").write_text("y = 1\n")
    where = Source(name="s", format="code", paths=(str(tmp_path),))
    (records,) = (records for unit in plan_units(where, list_inputs(where)) for records in read(unit))
    assert records.kept.column("text").to_pylist() == [content, "y = 1\n"]


def test_a_row_that_arrow_refuses_is_lost_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / name).write_text(" " if name == "c.txt" else name)
    monkeypatch.setattr("ingest.files.decode_text", lambda data: data.decode().replace("a.", "\ud800"))
    where = Source(name="s", format="text", paths=(str(tmp_path),))
    (records,) = (records for unit in plan_units(where, list_inputs(where)) for records in read(unit))
    assert records.kept.column("text").to_pylist() == ["b.txt"]
    assert records.drops.column("row").to_pylist() == [1]
    assert told(list(records.lost)) == [("a.txt@0-5", "encoding")]
