"""Rows of every kind of file become items; what is wrong with one is told with file and line, never with its text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.errors import SynthError
from synth.items import Item
from synth.running import Rows
from synth.running.rows import Unreadable, _item, read_items
from synth.running.works import validated

TURN = {"role": "user", "content": "x"}
ROW = {"id": "a", "prompt": "p", "gold": 3, "options": {"percent": "equal"}, "messages": [TURN]}
ITEM = Item(id="a", prompt="p", gold=3, options={"percent": "equal"}, messages=(TURN,), licence="MIT")


def written(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    path, lines = folder / name, "".join(json.dumps(row) + "\n" for row in rows)
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(lines.encode()))
    else:
        path.write_text(lines)
    return path


def items(*paths: Path, **more: Any) -> list[Item | Unreadable]:
    rows: Rows = validated(Rows, {"files": [str(path) for path in paths], **more}, "")
    return [item for _, item in read_items(rows)]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz", "rows.ndjson", "rows.parquet"])
def test_each_kind_of_file_gives_the_same_items(name: str, tmp_path: Path) -> None:
    assert items(written(tmp_path, name, [ROW]), values={"licence": "MIT"}) == [ITEM]
    assert items(tmp_path, values={"licence": "MIT"}) == [ITEM]


def test_csv_has_a_header_empty_cells_are_no_values_and_options_are_json(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('id,prompt,gold,options,licence\na,"one\ntwo",3,"{""percent"": ""equal""}",\n')
    assert items(path) == [Item(id="a", prompt="one\ntwo", gold="3", options={"percent": "equal"})]


def test_columns_are_mapped_and_limits_kept(tmp_path: Path) -> None:
    path = written(tmp_path, "rows.jsonl", [{"nr": at, "question": f"q{at}", "prompt": "not this"} for at in range(5)])
    assert items(path, columns={"id": "nr", "prompt": "question"}, limit=2) == [
        Item(id="0", prompt="q0"), Item(id="1", prompt="q1"),
    ]  # fmt: skip


def test_a_row_without_an_id_is_named_by_its_content(tmp_path: Path) -> None:
    told = items(written(tmp_path, "rows.jsonl", [{"prompt": "p"}, {"prompt": "q"}, {"prompt": "p", "other": 1}]))
    names = [item.id for item in told if isinstance(item, Item)]
    assert names[0] == names[2] != names[1]


def test_the_output_of_a_run_gives_the_rows_of_its_last_kept_step(tmp_path: Path) -> None:
    for step in ("0-a", "1-b"):
        (tmp_path / step / "data").mkdir(parents=True)
        written(tmp_path / step / "data", "0.parquet", [{"id": step, "text": "a document"}])
    (tmp_path / "run.json").write_text(json.dumps({"steps": [{"folder": "0-a"}, {"folder": "1-b"}]}))
    assert items(tmp_path) == [Item(id="1-b", text="a document")]


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("{torn", "no JSON"),
        ("[1]", "no JSON object"),
        ("[" * 100_000, "no JSON"),
        ('{"q": "secret"}', "no column 'prompt', which `columns` names"),
        ('{"prompt": 5}', "prompt is no text"),
        ('{"prompt": ""}', "neither prompt, text nor messages in it"),
        ('{"prompt": "secret", "id": ""}', "id is no text of 1 to 512 printable characters"),
        ('{"prompt": "secret", "id": "a\\nb"}', "id is no text of 1 to 512 printable characters"),
        ('{"prompt": "secret", "id": true}', "id is no text of 1 to 512 printable characters"),
        ('{"prompt": "secret", "options": "{"}', "options is no JSON"),
        ('{"prompt": "secret", "options": []}', "options is no object"),
        (
            '{"prompt": "secret", "messages": [{"content": "secret"}]}',
            "messages is no list of messages with a role each",
        ),
        ('{"prompt": "secret", "gold": NaN}', "nested too deeply, or of values that JSON has not"),
    ],
)
def test_what_is_wrong_with_a_row_is_told_with_file_and_line(line: str, wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": "first", "prompt": "p"}\n\n' + line + "\n" + '{"id": "last", "prompt": "p"}\n')
    with pytest.raises(SynthError) as raised:
        items(path, columns={"prompt": "prompt"})
    assert str(raised.value) == f"{path}:3: {wrong}; mend the row, or set `unreadable: reject`"
    told = items(path, columns={"prompt": "prompt"}, unreadable="reject")
    assert [type(item) for item in told] == [Item, Unreadable, Item]
    assert "secret" not in str(told)


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        (b"id,prompt\na,b,c\nd,e\n", "another number of cells than the header"),
        (b"id,prompt\na,\xff\nd,e\n", "no UTF-8"),
    ],
)
def test_a_wrong_row_of_csv_leaves_those_behind_it_alone(rows: bytes, wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(rows)
    assert items(path, unreadable="reject") == [Unreadable(place=f"{path}:2", wrong=wrong), Item(id="d", prompt="e")]


@pytest.mark.parametrize(
    ("name", "content", "wrong"),
    [
        ("rows.parquet", b"no parquet", "cannot be read (ArrowInvalid)"),
        ("rows.jsonl.gz", b"no gzip", "cannot be read (OSError)"),
        ("rows.txt", b"", "no rows here"),
    ],
)
def test_files_that_cannot_be_read_are_named(name: str, content: bytes, wrong: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SynthError) as raised:
        items(tmp_path / name)
    assert wrong in str(raised.value)
    assert str(tmp_path / name) in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"columns": {"question": "q"}}, "question is no field of an item"),
        ({"columns": {"gold": "a"}, "values": {"gold": 1}}, "gold stands in both"),
        ({"values": {"id": "a"}}, "id is another in each row"),
        ({"limit": 0}, "limit: Input should be greater than or equal to 1"),
        ({"colums": {}}, "colums: unknown; the settings of Rows are files, columns"),
    ],
)
def test_wrong_settings_are_told_in_a_line(settings: dict[str, Any], wrong: str) -> None:
    with pytest.raises(SynthError, match=wrong):
        validated(Rows, {"files": ["rows.jsonl"], **settings}, "")


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JSON = st.recursive(LEAVES, lambda of: st.lists(of) | st.dictionaries(st.text(), of))


@given(st.dictionaries(st.sampled_from(["id", "prompt", "text", "messages", "gold", "options", "domain"]), JSON))
def test_any_row_is_an_item_or_unreadable(values: dict[str, Any]) -> None:
    made = _item("rows.jsonl:1", values, Rows(files=("rows.jsonl",)))
    assert isinstance(made, Item | Unreadable)
