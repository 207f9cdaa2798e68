"""The target libraries themselves read each export: the same tokens, and the same documents where they keep them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shards.schema import MESSAGE
from tests.train.exports.made import make_run, make_tokens
from train.exports import export
from train.exports.folder import safe_name
from train.feed.token_shards import TokenShards

pytestmark = pytest.mark.heavy
Read = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module", params=["real", "uint16", "uint32"])
def tokens(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "real":
        found: Path = request.getfixturevalue("real")
        return found
    rng = np.random.default_rng(5)
    top = 60_000 if request.param == "uint16" else 120_000

    def documents(count: int) -> list[list[int]]:
        sizes = rng.choice([0, 1, 2, 30, 31, 32, 255, 256, 700, 66_000], count, p=[0.1] * 9 + [0.1])
        return [rng.integers(2, top, size).tolist() for size in sizes]

    folder = tmp_path_factory.mktemp(request.param)
    shards = [("one", documents(40)), ("one", []), ("one", documents(9)), ("two", [[]]), ("a b%/c", documents(20))]
    make_tokens(folder, [*shards, ("last", [[7]])], dtype=request.param, vocab_size=top)
    return folder


@pytest.fixture(scope="module")
def sequence(tokens: Path) -> int:
    """Tokens a sequence: few of the made ones, so that what readers drop at a file's end is little."""
    return 511 if tokens.name == "tokens" else 31


def whole(folder: Path) -> Iterator[tuple[str, Any, Any]]:
    """Each domain's tokens, and where its documents end, from the shards."""
    shards = TokenShards.open(str(folder))
    for domain in shards.domains:
        ids = np.concatenate([shards.tokens(shard) for shard in domain.shards.tolist()]).astype(np.int64)
        sizes = [np.diff(shards.ends(shard), prepend=0) for shard in domain.shards.tolist()]
        lengths = np.concatenate(sizes)
        yield domain.name, ids, np.cumsum(lengths[lengths > 0])


def folders(out: Path, marker: str) -> list[Path]:
    """The exports' folders in the order of their domains' names, which %-encoding keeps here."""
    return sorted({path.parent for path in out.rglob(marker)})


def assert_same(told: dict[str, Any], wanted: list[tuple[str, Any, Any]], *, ends: bool = True) -> None:
    assert len({key for key in told if key.startswith("tokens")}) == len(wanted)
    for number, (_, ids, where) in enumerate(wanted):
        np.testing.assert_array_equal(told[f"tokens{number}"], ids)
        if ends:
            np.testing.assert_array_equal(told[f"ends{number}"], where)


def test_megatron_core_reads_the_same_documents(tokens: Path, oracle: Read, tmp_path: Path) -> None:
    export(str(tokens), "megatron", str(tmp_path / "out"))
    prefixes = sorted(path.with_suffix("") for path in (tmp_path / "out").glob("*.idx"))
    assert_same(oracle("megatron", *prefixes), list(whole(tokens)))


def test_mosaicml_streaming_reads_the_same_documents(tokens: Path, oracle: Read, tmp_path: Path) -> None:
    export(str(tokens), "mds", str(tmp_path / "out"), shard_bytes=100_000)
    assert_same(oracle("mds", *folders(tmp_path / "out", "index.json")), list(whole(tokens)))


def test_mosaicml_streaming_reads_the_same_sequences(tokens: Path, sequence: int, oracle: Read, tmp_path: Path) -> None:
    export(str(tokens), "mds", str(tmp_path / "out"), shard_bytes=100_000, sequence_tokens=sequence)
    wanted = [
        (name, ids[:count], np.arange(sequence, count + 1, sequence))
        for name, ids, _ in whole(tokens)
        if (count := len(ids) // sequence * sequence)
    ]
    found = [folder for folder in folders(tmp_path / "out", "index.json") if list(folder.glob("*.mds"))]
    assert_same(oracle("mds", *found), wanted)


def test_litdata_reads_the_same_blocks_but_for_the_last_tokens_of_a_domain(
    tokens: Path, sequence: int, oracle: Read, tmp_path: Path
) -> None:
    export(str(tokens), "litdata", str(tmp_path / "out"), block_tokens=sequence, chunk_bytes=100_000)
    wanted = [(name, ids[: len(ids) // sequence * sequence], ends) for name, ids, ends in whole(tokens)]
    assert_same(oracle("litdata", sequence, *folders(tmp_path / "out", "index.json")), wanted, ends=False)


def test_datatrove_reads_the_same_tokens_and_places(tokens: Path, sequence: int, oracle: Read, tmp_path: Path) -> None:
    export(str(tokens), "datatrove", str(tmp_path / "out"), file_tokens=200_000)
    width = TokenShards.open(str(tokens)).dtype.itemsize
    wanted = [(ids, ends) for _, ids, ends in whole(tokens) if len(ids) >= sequence + 1]
    found = [folder for folder in folders(tmp_path / "out", "*.ds") if _windows(folder, width, sequence)]
    told = oracle("datatrove", sequence, width, *found)
    assert len(found) == len(wanted)
    for number, (folder, (ids, ends)) in enumerate(zip(found, wanted, strict=True)):
        starts = np.concatenate([[0], ends[:-1]])
        places = np.arange(len(ids)) - np.repeat(starts, np.diff(ends, prepend=0))
        edges = np.cumsum([0, *(path.stat().st_size // width for path in sorted(folder.glob("*.ds")))])
        assert edges[-1] == len(ids)
        rows, positions = [], []
        for first, last in pairwise(edges.tolist()):
            for start in range(first, last - sequence, sequence + 1):
                rows.append(ids[start : start + sequence + 1])
                positions.append(np.minimum(places[start : start + sequence + 1], np.arange(sequence + 1)))
        np.testing.assert_array_equal(told[f"tokens{number}"], rows)
        np.testing.assert_array_equal(told[f"positions{number}"], positions)


def _windows(folder: Path, width: int, sequence: int) -> int:
    return sum(path.stat().st_size // width // (sequence + 1) for path in folder.glob("*.ds"))


def test_datasets_reads_the_same_documents_of_tokens(tokens: Path, oracle: Read, tmp_path: Path) -> None:
    export(str(tokens), "huggingface", str(tmp_path / "out"), content="tokens", file_tokens=150_000)
    told = oracle("huggingface", "tokens", tmp_path / "out")
    wanted = list(whole(tokens))
    assert sorted(key for key in told if key.startswith("tokens/")) == sorted(
        ["tokens/default", *(f"tokens/{safe_name(name)}" for name, _, _ in wanted)]
    )
    for name, ids, ends in wanted:
        np.testing.assert_array_equal(told[f"tokens/{safe_name(name)}"], ids)
        np.testing.assert_array_equal(told[f"ends/{safe_name(name)}"], ends)
    np.testing.assert_array_equal(
        np.sort(told["ids/default"]), np.sort(np.concatenate([told[f"ids/{safe_name(name)}"] for name, _, _ in wanted]))
    )
    assert len(told["tokens/default"]) == sum(len(ids) for _, ids, _ in wanted)


def test_trl_packs_the_same_tokens(tokens: Path, oracle: Read, tmp_path: Path) -> None:
    export(str(tokens), "trl", str(tmp_path / "out"), content="tokens", file_tokens=150_000)
    told = oracle("trl", "tokens", tmp_path / "out", "")
    wanted = list(whole(tokens))
    np.testing.assert_array_equal(told["tokens"], np.concatenate([ids for _, ids, _ in wanted]))
    np.testing.assert_array_equal(
        np.diff(told["ends"], prepend=0), np.concatenate([np.diff(e, prepend=0) for *_, e in wanted])
    )
    np.testing.assert_array_equal(told["packed"], told["tokens"])


def test_datasets_reads_the_same_documents(oracle: Read, tmp_path: Path) -> None:
    texts = ["one", "tw\u00f6\n\u4e2d\u6587", "", "three"]

    def part(first: int, last: int) -> pa.Table:
        rows = range(first, last)
        return pa.table(
            {
                "id": pa.array([f"{row:032x}" for row in rows], pa.string()),
                "domain": pa.array(["a"] * len(rows), pa.string()),
                "text": pa.array([texts[row] for row in rows], pa.large_string()),
                "date": pa.array([None] * len(rows), pa.timestamp("us", tz="UTC")),
                "messages": pa.array([[{"role": "user", "content": "x"}]] * len(rows), pa.list_(MESSAGE)),
            }
        )

    out = make_run(tmp_path / "run", [part(0, 3), part(3, 3), part(3, 4)])
    export(str(out), "huggingface", str(tmp_path / "out"))
    told = oracle("huggingface", "documents", tmp_path / "out")
    assert list(told) == ["rows/default"]
    assert json.loads(str(told["rows/default"])) == [
        {"id": f"{row:032x}", "domain": "a", "text": text} for row, text in enumerate(texts)
    ]


def test_trl_renders_the_same_messages(real: Path, oracle: Read, tmp_path: Path) -> None:
    chats = [[("system", "s"), ("user", "hi\n"), ("assistant", "\u00f6")], [("user", "x"), ("assistant", "y")]]
    told = [[{"role": role, "content": text} for role, text in chat] for chat in chats]
    out = make_run(tmp_path / "run", [pa.table({"messages": pa.array([row], pa.list_(MESSAGE))}) for row in told])
    export(str(out), "trl", str(tmp_path / "out"))
    found = oracle("trl", "rows", tmp_path / "out", real / "tokenizer.json")
    assert json.loads(str(found["texts"])) == ["".join(f"<{role}>{text}" for role, text in chat) for chat in chats]
