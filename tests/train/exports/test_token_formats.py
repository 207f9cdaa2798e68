"""Each format of tokens, read by a reader of its own: every token and every document, in order, with an account."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.train.exports.layouts import (
    read_datatrove,
    read_litdata,
    read_llmc,
    read_mds,
    read_megatron,
    read_olmo,
)
from tests.train.exports.made import BOS, EOS, Documents, make_tokens, nonempty
from train.exports import ExportError, export

SHARDS: list[tuple[str | None, Documents]] = [
    ("code", [[5, 6, 7], [8], [], [9] * 300]),
    ("code", []),
    ("code", [[2, 3]]),
    ("web", [[], [], [4] * 70_000, [11, 12]]),
    ("none", [[], []]),
]


def read_rows(folder: Path, name: str) -> Documents:
    return [ids for path in sorted(folder.glob("*.parquet")) for ids in pq.read_table(path)[name].to_pylist()]


def read_lines(folder: Path) -> Documents:
    paths = sorted(folder.glob("*.jsonl"))
    return [json.loads(line)["input_ids"] for path in paths for line in path.read_text().splitlines()]


def pieces(documents: Documents, cuts: list[int]) -> Documents:
    """The documents with further cuts at these places of their concatenation."""
    ids = [token for ids in documents for token in ids]
    ends = sorted({*np.cumsum([len(ids) for ids in documents]).tolist(), *cuts})
    return [ids[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True) if end > start]


# How each format is asked for in files small enough that there are several, and read again, by domain.
FORMATS: dict[str, tuple[dict[str, Any], Callable[[Path, str, int], Documents]]] = {
    "megatron": ({}, lambda out, domain, width: read_megatron(out / domain)[1]),
    "datatrove": ({"file_tokens": 64}, lambda out, domain, width: read_datatrove(out / domain, width)),
    "mds": ({"shard_bytes": 1024}, lambda out, domain, width: read_mds(out / domain)),
    "olmo": ({"file_tokens": 64}, lambda out, domain, width: read_olmo(out / domain, "<u2")[0]),
    "llmc": (
        {"file_tokens": 64},
        lambda out, domain, width: [[*ids, EOS] for ids in read_llmc(sorted(out.glob(f"{domain}_train_*.bin")), EOS)],
    ),
    "huggingface": (
        {"content": "tokens", "file_tokens": 64},
        lambda out, domain, width: read_rows(out / "data" / domain, "input_ids"),
    ),
    "trl": ({"content": "tokens", "file_tokens": 64}, lambda out, domain, width: read_lines(out / domain)),
}


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("to", list(FORMATS))
def test_every_document_of_every_domain_comes_back_in_order(to: str, dtype: str, tmp_path: Path) -> None:
    made = make_tokens(tmp_path / "tokens", SHARDS, dtype=dtype)
    options, read = FORMATS[to]
    told = export(str(tmp_path / "tokens"), to, str(tmp_path / "out"), **options)
    for domain in ("code", "web"):
        assert read(tmp_path / "out", domain, 2 if dtype == "uint16" else 4) == nonempty(made[domain]), domain
    account = json.loads((tmp_path / "out/export.json").read_text())
    assert account["documents"] == {"in": 11, "out": told.documents} == {"in": 11, "out": 6}
    assert account["tokens"] == {"in": told.tokens, "out": told.tokens}
    assert account["left_out"] == {"documents without tokens": {"documents": 5, "tokens": 0}}
    assert account["streams"]["code"] == {"documents": 4, "tokens": 4 + 2 + 301 + 3}
    names = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert names == sorted([*told.files, "export.json"])
    assert "tokenizer.json" in told.files


DOCUMENT = st.lists(st.integers(2, 999), max_size=8)
SHARD = st.tuples(st.sampled_from(["a", "b"]), st.lists(DOCUMENT, max_size=6))


@settings(max_examples=25, deadline=None)
@given(shards=st.lists(SHARD, min_size=1, max_size=4), limit=st.integers(1, 30), data=st.data())
def test_any_shards_come_back(
    shards: list[tuple[str | None, Documents]], limit: int, data: st.DataObject, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("made")
    made = make_tokens(folder / "tokens", shards)
    to = data.draw(st.sampled_from(list(FORMATS)))
    options, read = FORMATS[to]
    options = {**options, **({"file_tokens": limit} if "file_tokens" in options else {})}
    export(str(folder / "tokens"), to, str(folder / "out"), **options)
    for domain, documents in made.items():
        if nonempty(documents):
            assert read(folder / "out", domain, 2) == nonempty(documents)


@settings(max_examples=25, deadline=None)
@given(
    shards=st.lists(st.tuples(st.just("a"), st.lists(DOCUMENT, max_size=6)), min_size=1, max_size=4),
    sequence=st.integers(1, 12),
)
def test_sequences_and_blocks_hold_each_token_but_the_last_few(
    shards: list[tuple[str | None, Documents]], sequence: int, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("made")
    documents = make_tokens(folder / "tokens", shards)["a"]
    ids = [token for document in documents for token in document]
    told = export(str(folder / "tokens"), "mds", str(folder / "mds"), sequence_tokens=sequence, shard_bytes=1024)
    whole = len(ids) // sequence * sequence
    assert told.tokens == whole
    if whole:
        assert read_mds(folder / "mds/a") == [ids[at : at + sequence] for at in range(0, whole, sequence)]
    export(str(folder / "tokens"), "litdata", str(folder / "litdata"), block_tokens=sequence, chunk_bytes=1024)
    if ids:
        chunk = max(1, 512 // sequence) * sequence
        dims, found = read_litdata(folder / "litdata/a")
        assert dims == [min(chunk, len(ids) - at) for at in range(0, len(ids), chunk)]
        assert found == pieces(nonempty(documents), list(range(chunk, len(ids), chunk)))


def test_sequences_tell_what_they_leave_out(tmp_path: Path) -> None:
    make_tokens(tmp_path / "tokens", [("a", [[5, 6, 7], [8], []]), ("a", [[9, 9]])])  # 4 + 2 + 3 tokens with EOS
    told = export(str(tmp_path / "tokens"), "mds", str(tmp_path / "out"), sequence_tokens=4)
    assert (told.documents, told.tokens) == (2, 8)
    account = json.loads((tmp_path / "out/export.json").read_text())
    assert account["left_out"] == {
        "documents without tokens": {"documents": 1, "tokens": 0},
        "the end of a domain, shorter than a sequence": {"documents": 1, "tokens": 1},
    }


def test_a_file_holds_whole_documents_up_to_its_limit(tmp_path: Path) -> None:
    make_tokens(tmp_path / "tokens", [("a", [[2] * 3, [2] * 3, [2] * 9, [2]]), ("a", [[2] * 2])])
    export(str(tmp_path / "tokens"), "datatrove", str(tmp_path / "out"), file_tokens=8)
    sizes = [path.stat().st_size // 2 for path in sorted((tmp_path / "out/a").glob("*.ds"))]
    assert sizes == [8, 10, 5]  # 4 + 4 | the long one by itself | 2 + 3, of two shards


@pytest.mark.parametrize(("size", "width"), [(255, 1), (256, 2), (65_535, 2), (65_536, 4)])
def test_mds_shapes_at_the_edges_of_their_width(size: int, width: int, tmp_path: Path) -> None:
    made = make_tokens(tmp_path / "tokens", [("a", [[7] * (size - 1), [3]])])
    export(str(tmp_path / "tokens"), "mds", str(tmp_path / "out"))
    assert read_mds(tmp_path / "out/a") == made["a"]


@pytest.mark.parametrize(("vocab_size", "dtype"), [(65_499, "<u2"), (65_500, "<i4")])
def test_megatron_takes_its_own_dtype_by_vocabulary(vocab_size: int, dtype: str, tmp_path: Path) -> None:
    made = make_tokens(tmp_path / "tokens", [("a", [[5, 65_000], [6]])], vocab_size=vocab_size)
    export(str(tmp_path / "tokens"), "megatron", str(tmp_path / "out"))
    assert read_megatron(tmp_path / "out/a") == (dtype, made["a"])


@pytest.mark.parametrize(
    ("vocab_size", "dtype"), [(256, "<u1"), (257, "<u2"), (65_536, "<u2"), (65_537, "<u4"), (1 << 20, "<u4")]
)
def test_olmo_takes_the_smallest_dtype_that_holds_the_vocabulary(vocab_size: int, dtype: str, tmp_path: Path) -> None:
    made = make_tokens(tmp_path / "tokens", [("a", [[5, 255], [], [6]])], dtype="uint32", vocab_size=vocab_size)
    export(str(tmp_path / "tokens"), "olmo", str(tmp_path / "out"))
    documents, told = read_olmo(tmp_path / "out/a", dtype)
    assert documents == nonempty(made["a"])
    assert told == [["00000000", "source, a", "0"], ["00000002", "source, a", "2"]]


@pytest.mark.parametrize("append_eos", [True, False])
def test_llmc_keeps_a_bos_where_it_is(append_eos: bool, tmp_path: Path) -> None:
    made = make_tokens(tmp_path / "tokens", [("a", [[5, 6], [7]])], prepend_bos=True, append_eos=append_eos)
    export(str(tmp_path / "tokens"), "llmc", str(tmp_path / "out"), split="val")
    assert [[BOS, *ids] for ids in read_llmc([tmp_path / "out/a_val_000000.bin"], BOS)] == made["a"]


@pytest.mark.parametrize("to", ["llmc", "olmo"])
def test_documents_without_a_mark_are_refused_where_the_format_needs_one(to: str, tmp_path: Path) -> None:
    make_tokens(tmp_path / "tokens", [("a", [[5, 6], [7]])], append_eos=False)
    with pytest.raises(ExportError, match=r"EOS.*; set tokens\.append_eos: true$"):
        export(str(tmp_path / "tokens"), to, str(tmp_path / "out"))
    assert not list(tmp_path.glob("out*"))


def test_domains_are_chosen_or_merged(tmp_path: Path) -> None:
    made = make_tokens(tmp_path / "tokens", SHARDS)
    export(str(tmp_path / "tokens"), "megatron", str(tmp_path / "one"), domains=["code"])
    assert sorted(path.name for path in (tmp_path / "one").glob("*.bin")) == ["code.bin"]
    export(str(tmp_path / "tokens"), "megatron", str(tmp_path / "both"), domains=["web", "code"], by_domain=False)
    assert read_megatron(tmp_path / "both/all")[1] == nonempty(made["code"] + made["web"])


def test_several_folders_are_one_stream_a_domain(tmp_path: Path) -> None:
    first = make_tokens(tmp_path / "one", [("a", [[5]]), ("b", [[6]])])
    second = make_tokens(tmp_path / "two", [("a", [[7], [8]])])
    export([str(tmp_path / "one"), str(tmp_path / "two")], "mds", str(tmp_path / "out"))
    assert read_mds(tmp_path / "out/a") == first["a"] + second["a"]


def test_shards_of_all_domains_together_are_one_stream(tmp_path: Path) -> None:
    made = make_tokens(tmp_path / "tokens", [(None, [[5], [6, 7]])])
    export(str(tmp_path / "tokens"), "megatron", str(tmp_path / "out"))
    assert read_megatron(tmp_path / "out/all")[1] == made["all"]


@pytest.mark.parametrize("name", ["a/b", "..", ".hidden", "sp ace", "a%2Fb", "\u4e2d", "default"])
def test_a_domain_of_any_name_stays_in_the_folder(name: str, tmp_path: Path) -> None:
    made = make_tokens(tmp_path / "tokens", [(name, [[5], [6, 7]]), ("plain", [[9]])])
    told = export(str(tmp_path / "tokens"), "mds", str(tmp_path / "out"))
    (folder,) = [path.parent for path in (tmp_path / "out").glob("*/index.json") if path.parent.name != "plain"]
    assert read_mds(folder) == made[name]
    assert not folder.name.startswith(".")
    assert len({path.split("/")[0] for path in told.files}) == 3


def test_tokens_without_a_single_document_give_an_account_of_nothing(tmp_path: Path) -> None:
    make_tokens(tmp_path / "tokens", [("a", []), ("b", [[]])])
    for to, (options, _) in FORMATS.items():
        told = export(str(tmp_path / "tokens"), to, str(tmp_path / to), **options)
        assert (told.documents, told.tokens) == (0, 0), to


LIMITS: dict[str, tuple[str, dict[str, Any], str]] = {
    "megatron": ("MAX_DOCUMENT_TOKENS", {}, "a: a document of 12 tokens; megatron holds fewer than 2^31, so split it"),
    "llmc": ("MAX_FILE_TOKENS", {"file_tokens": 5}, "a: a document of 12 tokens; llm.c holds fewer than 2^31"),
    "huggingface": ("MAX_DOCUMENT_TOKENS", {"content": "tokens"}, "a: a document of 12 tokens; Parquet holds fewer"),
    "trl": ("MAX_DOCUMENT_TOKENS", {"content": "tokens"}, "a: a document of 12 tokens; a line holds at most 2^27"),
    "mds": ("MAX_SHARD_BYTES", {}, "a: a shard of "),
    "litdata": ("MAX_CHUNK_BYTES", {}, "a: a chunk of "),
}


@pytest.mark.parametrize("to", list(LIMITS))
def test_what_a_format_has_no_bits_for_is_refused_and_one_less_is_not(
    to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constant, options, told = LIMITS[to]
    make_tokens(tmp_path / "tokens", [("a", [[2] * 11])])  # 12 with EOS
    most = 12
    if "BYTES" in constant:  # the size of the one file
        export(str(tmp_path / "tokens"), to, str(tmp_path / "free"), **options)
        most = max(path.stat().st_size for path in (tmp_path / "free/a").iterdir() if path.suffix != ".json")
    monkeypatch.setattr(f"train.exports.{to}.{constant}", most - 1)
    with pytest.raises(ExportError) as caught:
        export(str(tmp_path / "tokens"), to, str(tmp_path / "out"), **options)
    assert str(caught.value).startswith(told)
    monkeypatch.setattr(f"train.exports.{to}.{constant}", most)
    export(str(tmp_path / "tokens"), to, str(tmp_path / "out"), **options)
