"""An export is whole or not there: what is missing, damaged, wrong or in the way is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shards.schema import MESSAGE
from tests.train.exports.made import make_run, make_tokens
from train.exports import FORMATS, ExportError, export
from train.exports.folder import Written
from train.feed.token_shards import TokenShardsError

SHARDS: list[Any] = [("a", [[5, 6], [7], []]), ("b", [[8] * 40, [9]])]


def rows(domain: str, texts: list[str], **columns: Any) -> pa.Table:
    ids = [f"{domain}{number}" for number in range(len(texts))]
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "domain": pa.array([domain] * len(texts), pa.string()),
            "text": pa.array(texts, pa.large_string()),
            **columns,
        }
    )


def chat(*conversations: list[tuple[str, str | None]] | None) -> pa.Array:
    told = [None if c is None else [{"role": role, "content": text} for role, text in c] for c in conversations]
    return pa.array(told, pa.list_(MESSAGE))


TOKEN_FORMATS = {name: {"content": "tokens"} if name in ("huggingface", "trl") else {} for name in FORMATS}


@pytest.mark.parametrize("to", list(TOKEN_FORMATS))
def test_equal_tokens_give_equal_bytes(to: str, tmp_path: Path) -> None:
    make_tokens(tmp_path / "tokens", SHARDS)
    told = [export(str(tmp_path / "tokens"), to, str(tmp_path / name), **TOKEN_FORMATS[to]) for name in ("one", "two")]
    assert told[0].digest == told[1].digest
    for name in [*told[0].files, "export.json"]:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


@pytest.mark.parametrize("to", list(TOKEN_FORMATS))
def test_a_changed_shard_is_refused_and_nothing_is_left(to: str, tmp_path: Path) -> None:
    make_tokens(tmp_path / "tokens", SHARDS)
    path = tmp_path / "tokens/data/part-00001-of-00002.bin"
    data = bytearray(path.read_bytes())
    data[6] ^= 1
    path.write_bytes(data)
    with pytest.raises(TokenShardsError, match=r"part-00001-of-00002\.bin: digest "):
        export(str(tmp_path / "tokens"), to, str(tmp_path / "out"), **TOKEN_FORMATS[to])
    assert sorted(found.name for found in tmp_path.iterdir()) == ["tokens"]


def test_a_missing_manifest_is_refused(tmp_path: Path) -> None:
    make_tokens(tmp_path / "tokens", SHARDS)
    (tmp_path / "tokens/manifest.json").unlink()
    with pytest.raises(TokenShardsError, match="no token shards; it would be"):
        export(str(tmp_path / "tokens"), "megatron", str(tmp_path / "out"))
    with pytest.raises(ExportError, match="no documents; it would be"):
        export(str(tmp_path / "tokens"), "trl", str(tmp_path / "out"))


def test_a_destination_that_holds_anything_is_refused_and_an_empty_one_is_not(tmp_path: Path) -> None:
    make_tokens(tmp_path / "tokens", SHARDS)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").touch()
    (tmp_path / "empty").mkdir()
    for name in ("full", "full/mine"):
        with pytest.raises(ExportError, match=r"is there already; name a folder that is empty or new$"):
            export(str(tmp_path / "tokens"), "megatron", str(tmp_path / name))
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]
    export(str(tmp_path / "tokens"), "megatron", str(tmp_path / "empty/"))
    assert (tmp_path / "empty/a.idx").exists()


@pytest.mark.parametrize("to", list(TOKEN_FORMATS))
def test_a_full_disk_leaves_nothing(to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tokens(tmp_path / "tokens", SHARDS)
    write = Written.write
    calls = [0]

    def full(self: Written, data: Any) -> int:
        calls[0] += 1
        if self.name == "tokenizer.json":  # by then all of the export's own files are there
            raise OSError(28, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(Written, "write", full)
    with pytest.raises(OSError, match="No space left"):
        export(str(tmp_path / "tokens"), to, str(tmp_path / "out"), **TOKEN_FORMATS[to])
    assert calls[0] > 1 or to == "huggingface"
    assert sorted(found.name for found in tmp_path.iterdir()) == ["tokens"]


def test_what_a_killed_export_left_is_no_export_and_does_not_stand_in_the_way(tmp_path: Path) -> None:
    make_tokens(tmp_path / "tokens", SHARDS)
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial/stale.bin").write_bytes(b"half")
    export(str(tmp_path / "tokens"), "megatron", str(tmp_path / "out"))
    assert not (tmp_path / "out.partial").exists()
    assert not (tmp_path / "out/stale.bin").exists()


def test_a_remote_destination_gets_the_account_last_and_is_cleared_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tokens(tmp_path / "tokens", SHARDS)
    local = export(str(tmp_path / "tokens"), "mds", str(tmp_path / "out"))
    remote = export(str(tmp_path / "tokens"), "mds", "memory://exports/mds")
    assert remote.digest == local.digest
    files = fsspec.filesystem("memory")
    assert json.loads(files.cat_file("/exports/mds/export.json"))["digest"] == local.digest
    monkeypatch.setattr("train.exports.account.Account.check", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export(str(tmp_path / "tokens"), "mds", "memory://exports/broken")
    assert not files.exists("/exports/broken") or files.find("/exports/broken") == []


@pytest.mark.parametrize(
    ("to", "options", "told"),
    [
        ("arrow", {}, "arrow: not a format; there are megatron, datatrove, mds,"),
        (
            "mds",
            {"shard_bytes": 1},
            "mds: shard_bytes: Input should be greater than or equal to 1024; its settings are",
        ),
        (
            "mds",
            {"shards": 1},
            "mds: shards: Unexpected keyword argument; its settings are: sequence_tokens, shard_byt",
        ),
        ("megatron", {"x": 1}, "megatron: x: Unexpected keyword argument; its settings are: none"),
        ("llmc", {"split": "a/b"}, "llmc: split: String should match pattern"),
        ("megatron", {"domains": ["a", "c"]}, "domains: no domain 'c'; there are a, b"),
        ("megatron", {"domains": []}, "domains: no domain is named; there are a, b"),
    ],
)
def test_wrong_words_are_told_with_the_right_ones(to: str, options: Any, told: str, tmp_path: Path) -> None:
    make_tokens(tmp_path / "tokens", SHARDS)
    with pytest.raises(ExportError) as caught:
        export(str(tmp_path / "tokens"), to, str(tmp_path / "out"), **options)
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("out*"))


def test_llmc_refuses_tokens_that_lack_the_mark_their_policy_promises(tmp_path: Path) -> None:
    make_tokens(tmp_path / "tokens", [("a", [[5, 6], [7]])], append_eos=False)
    manifest = json.loads((tmp_path / "tokens/manifest.json").read_text())
    manifest["policy"].update(append_eos=True, eos_id=0)
    (tmp_path / "tokens/manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ExportError, match="shard 0, document 0: no id 0 at its end, which the tokens' policy promises"):
        export(str(tmp_path / "tokens"), "llmc", str(tmp_path / "out"))


def test_an_account_that_does_not_add_up_is_no_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tokens(tmp_path / "tokens", SHARDS)
    monkeypatch.setattr("train.exports.streams.Stream.documents", lambda self: 1)
    with pytest.raises(RuntimeError, match="export: 5 documents went in, but 4 came out and 3 were left out"):
        export(str(tmp_path / "tokens"), "megatron", str(tmp_path / "out"))
    assert not list(tmp_path.glob("out*"))


def test_documents_of_a_run_keep_all_their_columns(tmp_path: Path) -> None:
    parts = [rows("a", ["one", "two"]), rows("a", []), rows("b", ["three"])]
    out = make_run(tmp_path / "run", parts)
    told = export(str(out), "huggingface", str(tmp_path / "out"))
    assert (told.documents, told.tokens) == (3, 0)
    found = [pq.read_table(path) for path in sorted((tmp_path / "out/data").iterdir())]
    assert [table.to_pylist() for table in found] == [table.to_pylist() for table in parts]
    card = (tmp_path / "out/README.md").read_text()
    assert '"path": "data/*.parquet"' in card
    assert '"num_examples": 3' in card


def test_documents_of_chosen_domains_and_how_many_others(tmp_path: Path) -> None:
    out = make_run(tmp_path / "run", [rows("a", ["one", "two"]), rows("b", ["three"])])
    for to in ("huggingface", "trl"):
        told = export(str(out / "02-exact"), to, str(tmp_path / to), domains=["b"])
        assert told.documents == 1
        account = json.loads((tmp_path / to / "export.json").read_text())
        assert account["documents"] == {"in": 3, "out": 1}
        assert account["left_out"] == {"rows of other domains": {"documents": 2, "tokens": 0}}


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        ({}, [{"text": "one"}, {"text": "tw\u00f6\n"}]),
        (
            {"messages": chat([("user", "hi"), ("assistant", None)], None)},
            [{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None}]}],
        ),
        ({"messages": chat([], [("user", "x")])}, [{"messages": [{"role": "user", "content": "x"}]}]),
        (
            {"prompt": pa.array(["p", "q"]), "completion": pa.array(["c", None])},
            [{"prompt": "p", "completion": "c"}],
        ),
        (
            {"prompt": pa.array(["p", "q"]), "chosen": pa.array(["c", "d"]), "rejected": pa.array(["r", "s"])},
            [{"prompt": "p", "chosen": "c", "rejected": "r"}, {"prompt": "q", "chosen": "d", "rejected": "s"}],
        ),
    ],
)
def test_trl_lines_are_of_the_first_kind_that_rows_have(columns: Any, lines: list[Any], tmp_path: Path) -> None:
    out = make_run(tmp_path / "run", [rows("a", ["one", "tw\u00f6\n"], **columns)])
    told = export(str(out), "trl", str(tmp_path / "out"))
    found = [json.loads(line) for line in (tmp_path / "out/train-00000-of-00001.jsonl").read_text().splitlines()]
    assert found == lines
    left = json.loads((tmp_path / "out/export.json").read_text())["left_out"]
    assert sum(counts["documents"] for counts in left.values()) == 2 - told.documents


def test_trl_messages_keep_what_they_have_and_their_tools(tmp_path: Path) -> None:
    fields = [("role", pa.string()), ("content", pa.string()), ("name", pa.string())]
    kind = pa.list_(pa.struct(fields))
    prompts = [[{"role": "user", "content": text, "name": None}] for text in "ab"]
    answers = [[{"role": "tool", "content": None, "name": "f"}], [{"role": "x", "content": "y", "name": None}]]
    columns = {"prompt": pa.array(prompts, kind), "completion": pa.array(answers, kind)}
    out = make_run(tmp_path / "run", [pa.table({**columns, "tools": pa.array([["f"], None], pa.list_(pa.string()))})])
    export(str(out), "trl", str(tmp_path / "out"))
    found = [json.loads(line) for line in (tmp_path / "out/train-00000-of-00001.jsonl").read_text().splitlines()]
    assert found == [
        {
            "prompt": [{"role": "user", "content": "a"}],
            "completion": [{"role": "tool", "content": None, "name": "f"}],
            "tools": ["f"],
        },
        {"prompt": [{"role": "user", "content": "b"}], "completion": [{"role": "x", "content": "y"}]},
    ]


def test_rows_of_no_kind_are_refused(tmp_path: Path) -> None:
    out = make_run(tmp_path / "run", [pa.table({"id": pa.array(["a"])})])
    with pytest.raises(
        ExportError, match="rows without messages, prompt and completion, or text; trl takes one of them"
    ):
        export(str(out), "trl", str(tmp_path / "out"))
    with pytest.raises(ExportError, match="its rows have no domain; leave domains out"):
        export(str(out), "huggingface", str(tmp_path / "out"), domains=["a"])


@pytest.mark.parametrize("to", ["huggingface", "trl"])
@pytest.mark.parametrize("damage", ["other rows", "torn", "missing"])
def test_changed_documents_are_refused_and_nothing_is_left(to: str, damage: str, tmp_path: Path) -> None:
    out = make_run(tmp_path / "run", [rows("a", ["zero"]), rows("a", ["one", "two"])])
    path = out / "02-exact/data/part-00001-of-00002.parquet"
    if damage == "other rows":
        pq.write_table(rows("a", ["one", "TWO"]), path)
    elif damage == "torn":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        path.unlink()
    told = "its rows are not those that its manifest tells of" if damage == "other rows" else "cannot be read"
    with pytest.raises(ExportError, match=rf"part-00001-of-00002\.parquet: {told}"):
        export(str(out), to, str(tmp_path / "out"))
    assert not list(tmp_path.glob("out*"))


def test_documents_come_from_one_run(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="huggingface: the documents of one run at a time; name one folder"):
        export([str(tmp_path)], "huggingface", str(tmp_path / "out"))


def test_the_front_door_is_light_and_tells_each_format() -> None:
    import subprocess
    import sys

    code = "import sys, train.exports; assert not {'numpy', 'pyarrow', 'pydantic'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert list(FORMATS) == ["megatron", "datatrove", "mds", "litdata", "olmo", "llmc", "huggingface", "trl"]


@pytest.mark.parametrize("name", ["tokenizer.json", "export.json", "x" * 300, "\u00fc" * 300, "..", "a/b", ".hidden"])
@pytest.mark.parametrize("to", ["megatron", "mds"])
def test_a_domain_may_have_any_name(to: str, name: str, tmp_path: Path) -> None:
    make_tokens(tmp_path / "tokens", [(name, [[5, 6]]), (f"{name}y", [[7]])])
    told = export(str(tmp_path / "tokens"), to, str(tmp_path / "out"))
    assert (told.documents, told.tokens) == (2, 5)
    assert all((tmp_path / "out" / file).is_file() for file in told.files)


def test_a_tokenizer_that_is_missing_or_another_is_refused(tmp_path: Path) -> None:
    make_tokens(tmp_path / "tokens", SHARDS)
    path = tmp_path / "tokens/tokenizer.json"
    for data, told in (('{"a": 1}', "not the tokenizer that made"), ("{", "no JSON"), (None, "no such file")):
        path.unlink() if data is None else path.write_text(data)
        with pytest.raises(ExportError, match=told):
            export(str(tmp_path / "tokens"), "megatron", str(tmp_path / "out"))
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", ["trl", "huggingface"])
def test_a_domain_that_no_document_has_is_refused(to: str, tmp_path: Path) -> None:
    out = make_run(tmp_path / "run", [rows("a", ["one"]), rows("b", ["two"])])
    with pytest.raises(ExportError, match="domains: no domain 'c'; there are a, b"):
        export(str(out), to, str(tmp_path / "out"), domains=["a", "c"])
    assert not (tmp_path / "out").exists()
    assert export(str(out), to, str(tmp_path / "out"), domains=["b"]).documents == 1


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    make_tokens(tmp_path / "tokens", SHARDS)
    told = export(str(tmp_path / "tokens"), "mds", str(tmp_path / "out"), sequence_tokens=1000)
    assert told.tokens == 0
    assert sum(counts["tokens"] for counts in told.left_out.values()) == 48
