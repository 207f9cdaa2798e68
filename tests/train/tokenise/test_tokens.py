"""Token shards: each document whole, once, where the table says, and the same bytes whatever did the work."""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from pydantic import ValidationError

from jobs.engines.duckdb_shuffle import DuckdbShuffle
from jobs.engines.local import LocalEngine
from train import Tokenizer, Tokens, load_tokenizer, train_tokenizer
from train.tokenise.encode import PART_TOKENS, SAMPLE_TEXT_CHARS
from train.tokenise.tokenizer import TokenizerError

END = "<|endoftext|>"
SCHEMA = pa.schema([("id", pa.string()), ("source", pa.string()), ("domain", pa.string()), ("text", pa.large_string())])
Row = tuple[str, str, str | None, str | None]


def corpus(n: int = 120) -> list[Row]:
    rng = random.Random(3)
    rows: list[Row] = []
    for i in range(n):
        domain = ("web", "code", None)[i % 3]
        text = " ".join(
            rng.choices(["alpha", "beta", "gamma,", "delta.\n", "42", "\u4e2d\u6587", END], k=rng.randrange(1, 80))
        )
        rows.append((f"{i:032x}", "book" if domain is None else "crawl", domain, text))
    rows.append(("empty", "crawl", "web", ""))
    rows.append(("null", "crawl", "web", None))
    rows.append(("long", "crawl", "code", "word " * (2 * PART_TOKENS + 10)))
    rows.append(("twin", "crawl", "code", "twin " * (PART_TOKENS + 10)))
    rows.append(("twin", "crawl", "code", "twin " * (PART_TOKENS + 10)))
    return rows


def write(rows: Sequence[Row], folder: Path, shards: int) -> list[str]:
    folder.mkdir(parents=True)
    paths = []
    for number in range(shards):
        table = pa.Table.from_pylist(
            [dict(zip(SCHEMA.names, row, strict=True)) for row in rows[number::shards]], SCHEMA
        )
        paths.append(str(folder / f"part-{number:05d}-of-{shards:05d}.parquet"))
        pq.write_table(table, paths[-1])
    return paths


def run(step: Tokens, rows: Sequence[Row], folder: Path, *, shards: int = 3, shuffle: Any = None) -> dict[str, Any]:
    paths = write(rows, folder / "in", shards)
    return step.run(paths, shuffle or DuckdbShuffle(), str(folder / "work"), str(folder / "out"), seed=17)


def read(folder: Path, told: dict[str, Any]) -> list[dict[str, Any]]:
    """The documents in shard order, with their ids: what a reader makes of the manifest, the table and the bytes."""
    documents = []
    for number, shard in enumerate(told["shards"]):
        data = (folder / "out" / shard["name"]).read_bytes()
        assert xxhash.xxh3_128_hexdigest(data) == shard["digest"]
        ids = np.frombuffer(data, np.dtype(told["dtype"]).newbyteorder("<"))
        rows = pq.read_table(folder / "out" / shard["documents_name"]).to_pylist()
        ends = [*(row["start"] for row in rows[1:]), len(ids)][: len(rows)]
        for row, end in zip(rows, ends, strict=True):
            assert row["shard"] == number
            assert row["start"] + row["token_count"] == end
            assert shard["domain"] in (row["domain"], None)
            documents.append({**row, "ids": ids[row["start"] : end]})
        assert (len(rows), len(ids), len(data)) == (shard["documents"], shard["tokens"], shard["bytes"])
    return documents


SMALL = Tokens(vocab_size=400, shard_tokens=10_000)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("made")
    return folder, run(SMALL, corpus(), folder)


def test_each_document_is_there_once_and_decodes_to_its_text(made: tuple[Path, dict[str, Any]]) -> None:
    folder, told = made
    tokenizer = load_tokenizer(str(folder / "out" / "tokenizer.json"))
    assert tokenizer.digest == told["tokenizer"]["digest"]
    eos = tokenizer.id_of(END)
    found = []
    for row in read(folder, told):
        *ids, last = row["ids"].tolist()
        assert last == eos
        assert eos not in ids
        found.append((row["id"], row["source"], row["domain"], tokenizer.decode(ids)))
    wanted = [(name, source, domain or source, text or "") for name, source, domain, text in corpus()]
    assert sorted(found) == sorted(wanted)


def test_the_sums_add_up(made: tuple[Path, dict[str, Any]]) -> None:
    folder, told = made
    documents = read(folder, told)
    for name, counts in told["domains"].items():
        rows = [row for row in documents if row["domain"] == name]
        assert counts["documents"] == len(rows)
        assert counts["tokens"] == sum(row["token_count"] for row in rows)
    assert sum(told["domains"][name]["text_bytes"] for name in told["domains"]) == told["text_bytes"]
    assert told["text_bytes"] == sum(len((text or "").encode()) for *_, text in corpus())
    assert told["tokens"] == sum(shard["tokens"] for shard in told["shards"])
    assert set(told["sources"]) == {"book", "crawl"}
    assert len(told["shards"]) > 4


def test_documents_stand_in_the_order_of_their_hash_within_a_domain(made: tuple[Path, dict[str, Any]]) -> None:
    keys = [(row["domain"], xxhash.xxh3_64_intdigest(row["id"].encode(), seed=17), row["id"]) for row in read(*made)]
    assert keys == sorted(keys)


def test_without_domains_all_documents_stand_in_one_order(tmp_path: Path) -> None:
    told = run(Tokens(vocab_size=400, shard_tokens=10_000, by_domain=False), corpus(), tmp_path)
    keys = [(xxhash.xxh3_64_intdigest(row["id"].encode(), seed=17), row["id"]) for row in read(tmp_path, told)]
    assert keys == sorted(keys)
    assert {shard["domain"] for shard in told["shards"]} == {None}


def test_shards_order_and_workers_change_nothing(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    rows = corpus()
    random.Random(9).shuffle(rows)
    engine = LocalEngine(workers=2, memory_bytes=1 << 28)
    assert run(SMALL, rows, tmp_path, shards=5, shuffle=engine.shuffle()) == made[1]


def languages_of(i: int) -> str | None:
    return ("eng_Latn", "zho_Hans", None)[i % 3]


def write_with_languages(rows: Sequence[Row], folder: Path) -> list[str]:
    """Three shards: languages as text, as a dictionary, and one without the column."""
    kinds: list[pa.DataType] = [pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
    paths = write(rows, folder, 3)
    for path, kind in zip(paths, kinds, strict=False):
        table = pq.read_table(path)
        told = [languages_of(int(name, 16) if len(name) == 32 else 0) for name in table.column("id").to_pylist()]
        pq.write_table(table.append_column("language", pa.array(told, pa.string()).cast(kind)), path)
    return paths


def check_languages(folder: Path, told: dict[str, Any], rows: Sequence[Row]) -> None:
    texts = {name: text or "" for name, _, _, text in rows}
    without = {name for name, *_ in rows[2::3]}
    found = read(folder, told)
    for row in found:
        known = languages_of(int(row["id"], 16) if len(row["id"]) == 32 else 0)
        assert row["language"] == (None if row["id"] in without else known)
        assert row["text_bytes"] == len(texts[row["id"]].encode())
    assert list(told["languages"]) == ["eng_Latn", "und", "zho_Hans"]
    for name, counts in told["languages"].items():
        own = [row for row in found if (row["language"] or "und") == name]
        assert counts["documents"] == len(own) > 0
        assert counts["tokens"] == sum(row["token_count"] for row in own)
        assert counts["text_bytes"] == sum(row["text_bytes"] for row in own)


def test_documents_keep_their_language_and_their_bytes_where_a_shard_knows_them(tmp_path: Path) -> None:
    rows = [row for row in corpus() if row[0] != "twin"]
    paths = write_with_languages(rows, tmp_path / "in")
    told = SMALL.run(paths, DuckdbShuffle(), str(tmp_path / "work"), str(tmp_path / "out"), seed=17)
    check_languages(tmp_path, told, rows)


@pytest.mark.parametrize("column", [pa.array([1, 2]), pa.array([["a"], ["b"]])])
def test_a_language_column_that_holds_no_names_tells_no_language(column: pa.Array, tmp_path: Path) -> None:
    (path,) = write(corpus(2)[:2], tmp_path / "in", 1)
    pq.write_table(pq.read_table(path).append_column("language", column), path)
    told = SMALL.run([path], DuckdbShuffle(), str(tmp_path / "work"), str(tmp_path / "out"), seed=17)
    assert list(told["languages"]) == ["und"]


@pytest.mark.heavy
def test_spark_changes_nothing(tmp_path: Path) -> None:
    from jobs.engines.spark import SparkEngine

    engine = SparkEngine(workers=2, memory_bytes=1 << 29)
    try:
        for number, step in enumerate((SMALL, Tokens(vocab_size=400, sample_bytes=3000, by_domain=False))):
            rows = corpus()
            wanted = run(step, rows, tmp_path / f"local{number}")
            random.Random(number).shuffle(rows)
            assert run(step, rows, tmp_path / f"spark{number}", shards=4, shuffle=engine.shuffle()) == wanted
        rows = [row for row in corpus() if row[0] != "twin"]
        paths = write_with_languages(rows, tmp_path / "in")
        told = SMALL.run(paths, engine.shuffle(), str(tmp_path / "work"), str(tmp_path / "out"), seed=17)
        check_languages(tmp_path, told, rows)
    finally:
        engine.close()


ODD = ["", "\x00nul", "\n", " a", "a ", "A", "a", "a'b\"; DROP TABLE x", "x/../y", "*?[a]", "k=v", "\xe9", "e\u0301"]
ODD += ["\u65e5\u672c\u202e", "null", "NaN", "x" * 5000, "\U0001f600"]


def test_domains_of_any_name_have_their_shards(tmp_path: Path) -> None:
    rows: list[Row] = [(f"{i}", "s\x00", name, f"text {i} \x00") for i, name in enumerate(ODD)]
    told = run(SMALL, rows, tmp_path)
    assert [shard["domain"] for shard in told["shards"]] == sorted(ODD)
    found = read(tmp_path, told)
    assert sorted((row["id"], row["domain"]) for row in found) == sorted((row[0], row[2]) for row in rows)
    assert json.loads(json.dumps(told)) == told


def test_a_text_that_is_no_utf_8_is_named(tmp_path: Path) -> None:
    (path,) = write(corpus(2)[:2], tmp_path / "in", 1)
    offsets = pa.py_buffer(np.array([0, 2, 7], np.int64))
    broken = pa.Array.from_buffers(pa.large_string(), 2, [None, offsets, pa.py_buffer(b"ok\xed\xa0\x80xy")])
    pq.write_table(pq.read_table(path).set_column(3, "text", broken), path)
    for step in (SMALL, Tokens(tokenizer=path_of_a_tokenizer(tmp_path))):
        with pytest.raises(ValueError, match=f"^{path}: the text of row 1 is no UTF-8; "):
            step.run([path], DuckdbShuffle(), str(tmp_path / "work"), str(tmp_path / "out"), seed=17)


def path_of_a_tokenizer(folder: Path) -> str:
    path = folder / "own.json"
    path.write_text(train_tokenizer([["a b"]], vocab_size=300, special_tokens=(END,)).json)
    return str(path)


@pytest.mark.heavy
@pytest.mark.parametrize("unit", ["the mill turns, and 42 stones (or so) grind\n", "a", " ", "\u7684"])
def test_a_document_of_a_hundred_megabytes_is_one_document(unit: str, tmp_path: Path) -> None:
    text = unit * (100_000_000 // len(unit.encode()))
    told = run(Tokens(vocab_size=1000), [("big", "s", "d", text), ("small", "s", "d", "a")], tmp_path, shards=1)
    tokenizer = load_tokenizer(str(tmp_path / "out" / "tokenizer.json"))
    found = {row["id"]: row for row in read(tmp_path, told)}
    assert tokenizer.decode(found["big"]["ids"][:-1]) == text
    assert found["big"]["text_bytes"] == len(text.encode())
    assert found["small"]["token_count"] == 2


@pytest.mark.parametrize(("largest", "dtype"), [(65_535, "uint16"), (65_536, "uint32")])
def test_the_width_is_that_of_the_largest_id(largest: int, dtype: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(wide(train_tokenizer([["a b"]], vocab_size=300, special_tokens=(END,)), largest))
    assert run(Tokens(tokenizer=str(path)), corpus(3), tmp_path / "auto")["dtype"] == dtype
    if dtype == "uint16":
        assert run(Tokens(tokenizer=str(path), dtype="uint16"), corpus(3), tmp_path / "asked")["dtype"] == dtype
    else:
        with pytest.raises(TokenizerError, match=r"^dtype: uint16 cannot hold id 65536; set dtype: auto or uint32$"):
            run(Tokens(tokenizer=str(path), dtype="uint16"), corpus(3), tmp_path / "asked")


def test_a_second_run_makes_the_same_and_leaves_no_part_of_another(tmp_path: Path) -> None:
    rows = corpus()
    first = run(SMALL, rows, tmp_path)
    again = Tokens(vocab_size=400, shard_tokens=10**9).run(
        [str(path) for path in sorted((tmp_path / "in").iterdir())],
        DuckdbShuffle(), str(tmp_path / "work2"), str(tmp_path / "out"), seed=17,
    )  # fmt: skip
    assert len(again["shards"]) == 3
    assert sorted(path.name for path in (tmp_path / "out" / "data").iterdir()) == [
        f"part-0000{i}-of-00003.bin" for i in range(3)
    ]
    assert len(list((tmp_path / "out" / "documents").iterdir())) == 3
    assert again["tokens"] == first["tokens"]
    assert again["ordered_digest"] != first["ordered_digest"]


def test_another_seed_is_another_order_of_the_same_documents(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    paths = write(corpus(), tmp_path / "in", 2)
    told = SMALL.run(paths, DuckdbShuffle(), str(tmp_path / "work"), str(tmp_path / "out"), seed=18)
    assert told["domains"] == made[1]["domains"]
    assert told["ordered_digest"] != made[1]["ordered_digest"]


def test_no_documents_are_one_empty_shard(tmp_path: Path) -> None:
    for shards in (0, 2):
        told = run(Tokens(), [], tmp_path / str(shards), shards=shards)
        assert (told["documents"], told["tokens"], len(told["shards"])) == (0, 0, 1)
        assert told["tokenizer"]["vocab_size"] == 257
        assert read(tmp_path / str(shards), told) == []


def test_more_shards_than_hashes_fill_leaves_empty_ones(tmp_path: Path) -> None:
    told = run(Tokens(vocab_size=300, shard_tokens=1), corpus(6), tmp_path)
    assert len(told["shards"]) == 11
    assert any(shard["documents"] == 0 for shard in told["shards"])
    assert len(read(tmp_path, told)) == 11


@pytest.mark.parametrize(("bos", "eos"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_policy_is_what_stands_around_a_document(bos: bool, eos: bool, tmp_path: Path) -> None:
    step = Tokens(vocab_size=400, prepend_bos=bos, append_eos=eos, special_tokens=("<|user|>",))
    told = run(step, corpus(9), tmp_path)
    policy = told["policy"]
    tokenizer = load_tokenizer(str(tmp_path / "out" / "tokenizer.json"))
    assert tokenizer.id_of("<|user|>") >= 0
    for row in read(tmp_path, told):
        ids = row["ids"].tolist()
        assert [ids.pop(0)] * bos == [policy["bos_id"]] * bos if bos else True
        assert [ids.pop()] * eos == [policy["eos_id"]] * eos if eos else True
        assert not {policy["bos_id"], policy["eos_id"]} & set(ids)
    counts = {row["id"]: row["token_count"] for row in read(tmp_path, told)}
    assert counts["empty"] == counts["null"] == bos + eos
    assert (policy["bos_id"] is None, policy["eos_id"] is None) == (not bos, not eos)


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_a_loaded_tokenizer_and_either_width_give_the_same_ids(
    dtype: Any, made: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, told = made
    step = Tokens(tokenizer=str(folder / "out" / "tokenizer.json"), dtype=dtype, shard_tokens=10_000)
    again = run(step, corpus(), tmp_path)
    assert (again["dtype"], again["tokenizer"]["trained"]) == (dtype, False)
    assert again["tokenizer"]["digest"] == told["tokenizer"]["digest"]
    for one, other in zip(read(folder, told), read(tmp_path, again), strict=True):
        assert np.array_equal(one["ids"], other["ids"])


def test_a_tiktoken_file_makes_shards_that_decode_with_the_stored_tokenizer(tmp_path: Path) -> None:
    ranks = b"".join(base64.b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256))
    path = tmp_path / "own.tiktoken"
    path.write_bytes(ranks + base64.b64encode(b"al") + b" 256\n")
    step = Tokens(tokenizer=str(path), pattern=r"\s?\p{L}++|\s++$|[\s\S]", special_tokens=(END, "<|user|>"))
    told = run(step, corpus(), tmp_path)
    stored = load_tokenizer(str(tmp_path / "out" / "tokenizer.json"))
    assert (stored.id_of(END), stored.id_of("<|user|>"), told["policy"]["eos_id"]) == (257, 258, 257)
    found = {row["id"]: stored.decode(row["ids"][:-1]) for row in read(tmp_path, told)}
    assert found == {name: text or "" for name, _, _, text in corpus()}
    with pytest.raises(TokenizerError, match=r"no token '<\|endoftext\|>'; .*special tokens: none"):
        run(Tokens(tokenizer=str(path), pattern=r"[\s\S]"), corpus(3), tmp_path / "without")


def wide(tokenizer: Tokenizer, number: int) -> str:
    """The tokenizer with one more special token, of this id."""
    told = json.loads(tokenizer.json)
    told["added_tokens"].append({**told["added_tokens"][0], "id": number, "content": "<|far|>"})
    told["model"]["vocab"]["<|far|>"] = number
    return json.dumps(told)


def test_ids_past_16_bits_are_stored_wide_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide.json"
    path.write_text(wide(train_tokenizer([["a b"]], vocab_size=300, special_tokens=(END,)), 70_000))
    told = run(Tokens(tokenizer=str(path)), corpus(3), tmp_path / "auto")
    assert (told["dtype"], told["tokenizer"]["vocab_size"]) == ("uint32", 70_001)
    assert len(read(tmp_path / "auto", told)) == 8
    with pytest.raises(TokenizerError, match=r"^dtype: uint16 cannot hold id 70000; set dtype: auto or uint32$"):
        run(Tokens(tokenizer=str(path), dtype="uint16"), corpus(3), tmp_path / "narrow")


def test_a_tokenizer_without_the_eos_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(train_tokenizer([["a b"]], vocab_size=300, special_tokens=("</s>",)).json)
    with pytest.raises(TokenizerError, match=r"no token '<\|endoftext\|>'; .*special tokens: </s>"):
        run(Tokens(tokenizer=str(path)), corpus(3), tmp_path / "x")
    assert run(Tokens(tokenizer=str(path), eos_token="</s>"), corpus(3), tmp_path / "y")["policy"]["eos_id"] == 0


def test_the_sample_is_the_first_documents_by_hash_and_does_not_depend_on_shards(tmp_path: Path) -> None:
    rows: list[Row] = [(f"{i:032x}", "s", None, f"only{i} " * 50) for i in range(200)]
    rows.append(("big", "s", None, "q" * (SAMPLE_TEXT_CHARS + 9)))
    step = Tokens(vocab_size=2000, sample_bytes=5000, append_eos=False)
    digests = {run(step, rows, tmp_path / str(n), shards=n)["tokenizer"]["digest"] for n in (1, 4)}
    assert len(digests) == 1
    order = sorted(rows, key=lambda row: xxhash.xxh3_64_intdigest(row[0].encode(), seed=17))
    taken: list[str] = []
    size = 0
    while size < 5000:
        row = order[len(taken)]
        taken.append((row[3] or "")[:SAMPLE_TEXT_CHARS])
        size += len(taken[-1])
    assert train_tokenizer([taken], vocab_size=2000).digest in digests


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tokenizer": "t.json", "vocab_size": 999}, "are for training; leave them or tokenizer out"),
        ({"pattern": "x"}, "pattern is of a tiktoken file; name it as tokenizer, or leave pattern out"),
        ({"vocab_size": 257, "special_tokens": ("<|a|>",)}, "257 has no room for 256 bytes and the special tokens"),
        ({"vocab_size": 256}, "greater than or equal to 257"),
        ({"sample_bytes": (1 << 30) + 1}, "less than or equal to 1073741824"),
        ({"shard_tokens": 0}, "greater than or equal to 1"),
        ({"dtype": "int8"}, "'auto', 'uint16' or 'uint32'"),
        ({"eos_token": ""}, "at least 1 character"),
        ({"vocab": 1}, "[Uu]nexpected keyword argument"),
    ],
)  # fmt: skip
def test_wrong_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Tokens(**settings)


def test_shared_texts_come_back(shared: Path, tmp_path: Path) -> None:
    rows: list[Row] = []
    for name in ("code_python", "techdoc_multilingual"):
        with gzip.open(shared / "text" / f"{name}.jsonl.gz") as lines:
            texts = [json.loads(line)["text"] for line in lines]
        rows += [(f"{name}{i}", name, None, text) for i, text in enumerate(texts[::6])]
    told = run(Tokens(vocab_size=4000, shard_tokens=200_000), rows, tmp_path)
    tokenizer = load_tokenizer(str(tmp_path / "out" / "tokenizer.json"))
    found = {row["id"]: tokenizer.decode(row["ids"][:-1]) for row in read(tmp_path, told)}
    assert found == {name: text for name, _, _, text in rows}
