"""What a comparison of tokenizers says is what counting by hand says, of a sample that depends on no order."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any
from xml.dom import minidom

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from text import tokenize
from train import Tokenizer, train_tokenizer
from train.tokenise.comparing import COMPARED, as_json, compare, named
from train.tokenise.drawing import draw_comparison
from train.tokenise.encode import SAMPLE_TEXT_CHARS
from train.tokenise.sampling import MOST_GROUPS, sampled
from train.tokenise.tokenizer import TokenizerError

WORDS = ["alpha", "beta", "gamma,", "delta.\n", "42", "\u4e2d\u6587", "caf\xe9", "\U0001f600"]
ENGLISH, FRENCH = "eng_Latn", "fra_Latn"


def corpus(count: int = 90) -> pa.Table:
    rng = random.Random(5)
    rows = []
    for i in range(count):
        text = " ".join(rng.choices(WORDS, k=rng.randrange(1, 60)))
        rows.append(
            {
                "id": f"{i:032x}",
                "domain": ("web", "code", None)[i % 3],
                "language": (ENGLISH, None)[i % 2],
                "text": text,
            }
        )
    rows.append({"id": "null", "domain": "web", "language": ENGLISH, "text": None})
    return pa.Table.from_pylist(rows)


@pytest.fixture(scope="module")
def made() -> dict[str, Tokenizer]:
    texts = [text or "" for text in corpus().column("text").to_pylist()]
    return {
        "small": train_tokenizer([texts], vocab_size=270),
        "large": train_tokenizer([texts], vocab_size=400, special_tokens=("<|endoftext|>",)),
    }


def row(table: pa.Table, tokenizer: str, domain: str | None, language: str | None) -> dict[str, Any]:
    key = (tokenizer, domain, language)
    (found,) = [one for one in table.to_pylist() if (one["tokenizer"], one["domain"], one["language"]) == key]
    return dict(found)


def test_each_row_is_what_counting_by_hand_gives(made: dict[str, Tokenizer]) -> None:
    table = compare(made, corpus(), sample_bytes=1 << 20)
    assert table.schema == COMPARED
    views = {(one["domain"] or "", one["language"] or "und") for one in corpus().to_pylist()}
    assert table.num_rows == 2 * (len(views) + 3 + 2 + 1)
    for name, tokenizer in made.items():
        for view in [*views, ("web", None), (None, "und"), (None, None)]:
            rows = [one for one in corpus().to_pylist() if fits(one, *view)]
            texts = [one["text"] or "" for one in rows]
            ids = [number for text in texts for number in tokenizer.library.encode(text).ids]
            told = row(table, name, *view)
            words = tokenize(texts).words_only()[1][-1]
            size = sum(len(text.encode()) for text in texts)
            counts = (len(texts), size, sum(map(len, texts)), words, len(ids))
            assert tuple(told[key] for key in ("documents", "bytes", "characters", "words", "tokens")) == counts
            assert told["bytes_per_token"] == size / len(ids)
            assert told["tokens_per_byte"] == len(ids) / size
            assert told["characters_per_token"] == sum(map(len, texts)) / len(ids)
            assert told["fertility"] == len(ids) / words
            assert told["vocabulary"] == tokenizer.library.get_vocab_size()
            assert told["vocabulary_used"] == len(set(ids)) / told["vocabulary"]
            assert (told["unknown_tokens"], told["parity"]) == (0, None)
            single = sum(tokenizer.decode([number]) == "\ufffd" and is_byte(tokenizer, number) for number in ids)
            assert told["fallback_share"] == single / len(ids)
    whole = row(table, "small", None, None)
    assert row(table, "large", None, None)["fallback_share"] < whole["fallback_share"]


def fits(one: dict[str, Any], domain: str | None, language: str | None) -> bool:
    return domain in (None, one["domain"] or "") and language in (None, one["language"] or "und")


def is_byte(tokenizer: Tokenizer, number: int) -> bool:
    return len(tokenizer.library.id_to_token(number)) == 1


def test_unknown_tokens_and_bytes_by_name_are_counted() -> None:
    from tokenizers import Tokenizer as Library
    from tokenizers import models

    unknown = Library(models.BPE({"<unk>": 0, "a": 1}, [], unk_token="<unk>"))
    names = {f"<0x{byte:02X}>": byte + 2 for byte in range(256)}
    by_name = Library(models.BPE({"<unk>": 0, "a": 1, **names}, [], unk_token="<unk>", byte_fallback=True))
    table = compare(
        {"unknown": Tokenizer(unknown.to_str()), "names": Tokenizer(by_name.to_str())},
        pa.table({"text": ["ab\xe9a", "a"]}),
    )
    assert row(table, "unknown", "", "und")["unknown_tokens"] == 2
    assert row(table, "unknown", "", "und")["fallback_share"] == 0
    told = row(table, "names", "", "und")
    assert (told["unknown_tokens"], told["tokens"], told["fallback_share"]) == (0, 6, 0.5)


def test_order_and_batches_of_the_texts_change_nothing(made: dict[str, Tokenizer]) -> None:
    table = corpus()
    wanted = compare(made, table, sample_bytes=2000, seed=3)
    order = list(range(table.num_rows))
    random.Random(1).shuffle(order)
    shuffled = table.take(order)
    assert compare(made, shuffled, sample_bytes=2000, seed=3) == wanted
    assert compare(made, iter(shuffled.to_batches(max_chunksize=7)), sample_bytes=2000, seed=3) == wanted
    assert compare(made, table, sample_bytes=2000, seed=4) != wanted
    assert (
        row(wanted, "small", "web", ENGLISH)["documents"]
        < row(compare(made, table), "small", "web", ENGLISH)["documents"]
    )


@pytest.mark.parametrize("size", [1, 999, 1000, 1001, 1 << 20])
def test_a_sample_is_the_first_texts_that_hold_as_many_bytes(size: int) -> None:
    texts = [f"{i:099d}." for i in range(500)]
    batches = pa.table({"id": [f"{i}" for i in range(500)], "text": texts}).to_batches(max_chunksize=9)
    (found,) = sampled(batches, sample_bytes=size, seed=1).values()
    assert len(found.texts) == min(-(-size // 100), 500)
    (whole,) = sampled(batches, sample_bytes=1 << 30, seed=1).values()
    assert found.texts == whole.texts[: len(found.texts)]


def test_a_long_text_gives_its_start() -> None:
    table = pa.table({"text": ["x" * (SAMPLE_TEXT_CHARS + 5)]})
    (found,) = sampled(table.to_batches(), sample_bytes=10, seed=1).values()
    assert len(found.texts[0].as_py()) == SAMPLE_TEXT_CHARS


def test_parity_is_of_texts_that_both_languages_have(made: dict[str, Tokenizer]) -> None:
    rows = [
        {"pair": "1", "language": ENGLISH, "text": "alpha beta"},
        {"pair": "2", "language": ENGLISH, "text": "gamma"},
        {"pair": "3", "language": ENGLISH, "text": "never translated " * 9},
        {"pair": "2", "language": FRENCH, "text": "gamma gamma gamma"},
        {"pair": "1", "language": FRENCH, "text": "caf\xe9 caf\xe9 beta"},
        {"pair": "4", "language": FRENCH, "text": "seulement en fran\xe7ais"},
    ]
    table = compare(made, pa.Table.from_pylist(rows), reference_language=ENGLISH, parallel="pair")
    for name, tokenizer in made.items():
        sizes = [len(tokenizer.library.encode(one["text"]).ids) for one in rows]
        assert row(table, name, "", FRENCH)["parity"] == (sizes[3] + sizes[4]) / (sizes[0] + sizes[1])
        assert row(table, name, "", ENGLISH)["parity"] == 1.0


def test_nothing_gives_no_rows_and_no_ratio(made: dict[str, Tokenizer], tmp_path: Path) -> None:
    nothing = pa.table({"text": pa.array([], pa.string())})
    assert compare(made, nothing).num_rows == 0
    draw_comparison(compare(made, nothing), str(tmp_path / "nothing.svg"))
    told = row(compare(made, pa.table({"text": [""]})), "small", "", "und")
    assert (told["tokens"], told["bytes_per_token"], told["fertility"], told["fallback_share"]) == (0, None, None, None)


@pytest.mark.parametrize(
    ("table", "settings", "said"),
    [
        ({"body": ["a"]}, {}, "texts: no column 'text'; there are body"),
        ({"text": ["a"]}, {"reference_language": "x", "parallel": "pair"}, "texts: no column 'pair'; there are text"),
        ({"text": ["a"]}, {"reference_language": "x"}, "parity needs both; give both or neither"),
        (
            {"text": ["a"] * (MOST_GROUPS + 1), "domain": [str(i) for i in range(MOST_GROUPS + 1)]},
            {}, "texts: more than 5000 pairs of domain and language",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_named(table: dict[str, Any], settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        compare({}, pa.table(table), **settings)


def test_a_run_is_compared_with_the_tokenizer_that_it_made(made: dict[str, Tokenizer], tmp_path: Path) -> None:
    out = tmp_path / "out"
    for folder in ("01-read/data", "02-tokens"):
        (out / folder).mkdir(parents=True)
    pq.write_table(
        corpus().append_column("source", pa.array(["s"] * 91)), out / "01-read/data/part-00000-of-00001.parquet"
    )
    (out / "02-tokens/tokenizer.json").write_text(made["small"].json)
    steps = [
        {"step": "read", "kind": "read", "folder": "01-read", "data": True},
        {"step": "tokens", "kind": "tokens", "folder": "02-tokens", "data": False},
    ]
    (out / "run.json").write_text(json.dumps({"steps": steps}))
    other = tmp_path / "large.json"
    other.write_text(made["large"].json)
    names = named([str(other)], str(out))
    assert names == {"02-tokens": str(out / "02-tokens/tokenizer.json"), "large": str(other)}
    table = compare(names, str(out))
    in_memory = corpus().set_column(1, "domain", corpus().column("domain").fill_null("s"))
    assert table.drop_columns("tokenizer") == compare(made, in_memory).drop_columns("tokenizer")
    with pytest.raises(FileNotFoundError, match=r"no run\.json"):
        named([], str(tmp_path))


def test_files_of_one_name_are_told_apart_by_their_folders() -> None:
    assert named(["x/a.json", "y/a.json", "y/b.model"]) == {"x/a": "x/a.json", "y/a": "y/a.json", "y/b": "y/b.model"}
    assert named(["p/a.json", "q/b.tiktoken", "r/c.v1"]) == {"a": "p/a.json", "b": "q/b.tiktoken", "c.v1": "r/c.v1"}
    assert named(["a.json", "a.model"]) == {"a": "a.json", "a.model": "a.model"}


def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    with pytest.raises(TokenizerError, match=f"^{path}: not a tokenizer.json"):
        compare(named([str(path)]), pa.table({"text": ["a"]}))


def test_a_picture_is_the_same_bytes_and_holds_any_name(made: dict[str, Tokenizer], tmp_path: Path) -> None:
    domains = ["$x_1$", "a & <b>", "\x00\n", "\u4e2d\u6587", "x" * 99, *map(str, range(45))]
    table = pa.table({"text": ["alpha beta"] * len(domains), "domain": domains})
    drawn = []
    for name in ("one.svg", "two.svg"):
        draw_comparison(compare({**made, "<&>": made["small"]}, table), str(tmp_path / name))
        drawn.append((tmp_path / name).read_bytes())
    assert drawn[0] == drawn[1]
    minidom.parseString(drawn[0])
    assert b"the largest 40 of 50" in drawn[0]
    assert b"\\x00\\n" in drawn[0]


def test_the_table_is_told_as_json(made: dict[str, Tokenizer]) -> None:
    table = compare(made, corpus())
    again = json.loads(json.dumps(as_json(table)))
    assert pa.Table.from_pylist(again["rows"], COMPARED) == table
