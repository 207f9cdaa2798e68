"""Token shards to read: streams, refusals, verification."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import fsspec
import numpy as np
import pytest
import xxhash

from shards.store import join, read_json, write_json
from tests.train.feed.made import make_tokens
from train.feed import shard_files
from train.feed.cache import FileCache
from train.feed.token_shards import TokenShards, TokenShardsError


def refusal(*folders: str, **settings: object) -> str:
    with pytest.raises(TokenShardsError) as caught:
        TokenShards.open(list(folders), **settings)  # type: ignore[arg-type]
    return str(caught.value)


def test_streams_by_domain_leave_empty_shards_out_and_ends_are_stored(tmp_path: Path) -> None:
    folder = make_tokens(tmp_path / "t", {"b": [[3, 4], [], [0, 0], [5, 0, 1]], "a": [[7]]})
    shards = TokenShards.open(folder)
    assert [domain.name for domain in shards.domains] == ["a", "b"]
    first, second = shards.domains
    assert (first.shards.tolist(), first.offsets.tolist(), first.documents.tolist()) == ([0], [0, 7], [0, 1])
    assert (second.shards.tolist(), second.offsets.tolist()) == ([1, 4], [0, 7, 13])
    assert second.documents.tolist() == [0, 2, 5]
    assert (shards.shards, second.tokens, shards.dtype) == (5, 13, np.uint16)
    assert shards.ends(4).tolist() == [5, 5, 6]
    assert [len(shards.tokens(shard)) for shard in range(5)] == [7, 7, 0, 0, 6]
    assert [len(shards.ends(shard)) for shard in range(5)] == [1, 2, 0, 2, 3]
    shard, token = second.locate(np.array([0, 6, 7, 12]))
    assert (shard.tolist(), token.tolist()) == ([1, 1, 4, 4], [0, 6, 0, 5])


def test_a_token_is_found_in_its_document_over_documents_of_no_tokens(tmp_path: Path) -> None:
    shards = TokenShards.open(make_tokens(tmp_path / "t", {"a": [[2, 0, 3]]}))
    assert [shards.document_at(0, token) for token in (0, 1, 2, 4)] == [(0, 0, 2), (0, 0, 2), (2, 2, 5), (2, 2, 5)]
    assert shards.documents_at(0, np.arange(5)).tolist() == [0, 0, 2, 2, 2]


def test_arrays_are_read_only(tmp_path: Path) -> None:
    shards = TokenShards.open(make_tokens(tmp_path / "t", {"a": [[2, 3]]}))
    for array in (shards.tokens(0), shards.ends(0)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_run_is_read_as_its_tokens_step_and_a_domain_of_two_folders_is_one_stream(tmp_path: Path) -> None:
    one = make_tokens(tmp_path / "run" / "04-tokens", {"a": [[4]], "b": [[2]]})
    write_json(str(tmp_path / "run" / "run.json"), {"steps": [{"kind": "tokens", "folder": "04-tokens"}]})
    two = make_tokens(tmp_path / "two", {"a": [[3]], "c": [[1]]})
    shards = TokenShards.open([str(tmp_path / "run"), two])
    assert shards.folders == (one, two)
    assert [(d.name, d.shards.tolist(), d.offsets.tolist()) for d in shards.domains] == [
        ("a", [0, 2], [0, 4, 7]),
        ("b", [1], [0, 2]),
        ("c", [3], [0, 1]),
    ]
    assert shards.digest != TokenShards.open([two, one]).digest


def test_shards_of_all_domains_are_one_stream_named_all(tmp_path: Path) -> None:
    folder = make_tokens(tmp_path / "t", {"a": [[4]], "b": [[2]]})
    told = read_json(join(folder, "manifest.json"))
    assert told is not None
    write_json(join(folder, "manifest.json"), told | {"shards": [row | {"domain": None} for row in told["shards"]]})
    assert [(d.name, d.tokens) for d in TokenShards.open(folder).domains] == [("all", 6)]


def test_folders_that_differ_or_are_missing_are_refused_with_their_names(tmp_path: Path) -> None:
    one = make_tokens(tmp_path / "one", {"a": [[4]]})
    for change, word in (
        ({"tokenizer": {"digest": "f" * 32, "vocab_size": 9}}, "tokenizer"),
        ({"policy": {"append_eos": False, "eos_id": None, "bos_id": None}}, "policy"),
    ):
        two = make_tokens(tmp_path / word, {"a": [[4]]}, **change)
        told = refusal(one, two)
        assert f"{two}: {word}" in told
        assert one in told
    assert "dtype uint32 differs from uint16" in refusal(one, make_tokens(tmp_path / "w", {"a": [[4]]}, dtype="uint32"))
    assert "named twice" in refusal(one, one)
    assert "no folder is named" in refusal()
    assert refusal(str(tmp_path / "none")).startswith(f"{tmp_path / 'none'}: no token shards")
    assert "is wanted; tokenise again" in refusal(one, tokenizer_digest="0" * 32)
    TokenShards.open(one, tokenizer_digest=TokenShards.open(one).tokenizer_digest)


def test_a_manifest_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    folder = make_tokens(tmp_path / "t", {"a": [[4], [5]]})
    url = join(folder, "manifest.json")
    told = read_json(url)
    assert told is not None
    write_json(url, told | {"tokens": 8})
    assert refusal(folder) == f"{url}: 8 tokens in all, but its shards have 9; write the tokens again"
    rows = [told["shards"][0], told["shards"][1] | {"bytes": 9}]
    write_json(url, told | {"shards": rows})
    assert "gives 9 bytes to 5 tokens of 2 bytes" in refusal(folder)
    write_json(url, {key: value for key, value in told.items() if key != "policy"})
    assert "not a manifest of token shards (KeyError 'policy')" in refusal(folder)
    write_json(url, told | {"dtype": "uint8"})
    assert "dtype 'uint8' is unknown" in refusal(folder)
    Path(url).write_bytes(b'{"kind": "tok')
    assert "not JSON" in refusal(folder)


@pytest.mark.parametrize("kind", ["tokens", "ends"])
def test_a_changed_file_is_named_when_first_touched(tmp_path: Path, kind: str) -> None:
    folder = make_tokens(tmp_path / "t", {"a": [[4, 5], [3]]})
    shards = TokenShards.open(folder)
    path = Path(folder, {"tokens": "data", "ends": "ends"}[kind], "part-00000-of-00002.bin")
    data = bytearray(path.read_bytes())
    data[1] ^= 1
    path.write_bytes(bytes(data))
    read = getattr(shards, kind)
    read(1)
    with pytest.raises(TokenShardsError, match=rf"{path}: digest \w+, where the manifest has \w+"):
        read(0)
    getattr(TokenShards.open(folder, verify=False), kind)(0)
    path.write_bytes(bytes(data[:-2]))
    with pytest.raises(TokenShardsError, match=rf"{path}: {len(data) - 2} bytes, where the manifest has {len(data)}"):
        getattr(TokenShards.open(folder, verify=False), kind)(0)
    path.unlink()
    with pytest.raises(TokenShardsError, match=f"{path}: no such file"):
        getattr(TokenShards.open(folder), kind)(0)


def test_tables_of_documents_are_verified_too(tmp_path: Path) -> None:
    folder = make_tokens(tmp_path / "t", {"a": [[4, 0, 5], []]})
    shards = TokenShards.open(folder)
    assert shards.documents(0, ["id"]).column_names == ["id"]
    assert shards.documents(0).column("token_count").to_pylist() == [4, 0, 5]
    assert shards.documents(1).num_rows == 0
    os.replace(
        join(folder, "documents/part-00001-of-00002.parquet"), join(folder, "documents/part-00000-of-00002.parquet")
    )
    with pytest.raises(TokenShardsError, match=r"part-00000-of-00002.parquet: digest"):
        TokenShards.open(folder).documents(0)


def test_few_files_are_open_at_a_time_and_a_closed_one_stays_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_files, "OPEN_FILES", 3)
    shards = TokenShards.open(make_tokens(tmp_path / "t", {"a": [[4]] * 20}))
    before = len(os.listdir("/proc/self/fd"))
    first = shards.tokens(0)
    wanted = first.copy()
    for _ in range(2):
        for shard in range(20):
            shards.tokens(shard)
            shards.ends(shard)
    assert len(os.listdir("/proc/self/fd")) <= before + 3 + 1
    assert np.array_equal(first, wanted)


def test_it_pickles_small_and_notices_a_change(tmp_path: Path) -> None:
    folder = make_tokens(tmp_path / "t", {"a": [[4]] * 50})
    shards = TokenShards.open(folder)
    shards.tokens(0)
    data = pickle.dumps(shards)
    assert len(data) < 500
    assert np.array_equal(pickle.loads(data).tokens(3), shards.tokens(3))
    make_tokens(tmp_path / "t", {"a": [[5]] * 50})
    with pytest.raises(TokenShardsError, match="changed while they were in use"):
        pickle.loads(data)


def test_a_local_file_is_verified_once_for_all_who_share_a_cache_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, cache = make_tokens(tmp_path / "t", {"a": [[4]]}), str(tmp_path / "cache")
    TokenShards.open(folder, cache=cache).tokens(0)
    with monkeypatch.context() as patch:
        patch.setattr(shard_files, "_same", lambda *told: pytest.fail("hashed again"))
        TokenShards.open(folder, cache=cache).tokens(0)
    path = Path(folder, "data/part-00000-of-00001.bin")
    path.write_bytes(path.read_bytes()[::-1])
    with pytest.raises(TokenShardsError, match="digest"):
        TokenShards.open(folder, cache=cache).tokens(0)


def test_remote_shards_come_through_the_cache_and_a_changed_one_is_refused(tmp_path: Path) -> None:
    local = make_tokens(tmp_path / "t", {"a": [[4, 9], [], [3]]})
    remote = fsspec.filesystem("memory")
    remote.put(local, "/tokens-remote", recursive=True)
    shards = TokenShards.open("memory://tokens-remote", cache=str(tmp_path / "cache"))
    for shard in range(3):
        assert np.array_equal(shards.tokens(shard), TokenShards.open(local).tokens(shard))
        assert np.array_equal(shards.ends(shard), TokenShards.open(local).ends(shard))
    assert shards.documents(0).num_rows == 2
    remote.pipe("/tokens-remote/data/part-00002-of-00003.bin", b"\0" * 6)
    shards.tokens(2)
    fresh = TokenShards.open("memory://tokens-remote", cache=str(tmp_path / "other"))
    with pytest.raises(TokenShardsError, match=r"memory://tokens-remote/data/part-00002.*: 6 bytes of digest"):
        fresh.tokens(2)
    assert not list((tmp_path / "other").rglob("*.bin"))
    assert not list((tmp_path / "other").rglob("*.partial"))


def test_the_digest_of_the_cache_key_is_the_files(tmp_path: Path) -> None:
    fsspec.filesystem("memory").pipe("/one.bin", b"abc")
    digest = xxhash.xxh3_128_hexdigest(b"abc")
    with FileCache(str(tmp_path)).open("memory://one.bin", 3, digest) as held:
        assert held.read() == b"abc"
