"""A tokenizer reads text as text, trains the same whatever the order, and encodes as the library does, only faster."""

from __future__ import annotations

import gzip
import json
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from text import buffers_of
from train import Tokenizer, load_tokenizer, train_tokenizer
from train.tokenise.pieces import PIECE_BYTES, PieceEncoder
from train.tokenise.tokenizer import TokenizerError

END = "<|endoftext|>"
SENTENCE = "The quick brown fox (who was 42) jumps over it's lazy dog, isn't it?\n\n    return x+=1;\tif (a<b) {\r\n"
WORDS = SENTENCE.split(" ")
# What the cuts of train.tokenise.pieces decide by: kinds of ASCII, white space outside ASCII, letters, marks, others.
TRICKY = [*"aZ7(.'s|<>\"", " ", "  ", "\t", "\n", "\r\n", "\x00", "\x0b", "\x1c", "\x7f", "'s", "'LL", END]
TRICKY += ["\x85", "\xa0", "\u1680", "\u180e", "\u2003", "\u2028", "\u202f", "\u205f", "\u3000", "\u200b", "\ufeff"]
TRICKY += [
    "\xe9",
    "\xd7",
    "\xf7",
    "\u0130",
    "\u017f",
    "\u0301",
    "\u0416",
    "\u4e2d",
    "\u3002",
    "\u0663",
    "\xb2",
    "\u0e01",
]
TRICKY += ["\u201c", "\u2019", "\U0001f600", "\U0010ffff", "x" * 65, " " * 65, "=" * 66, "\n" * 9, "7" * 5]


def sample() -> list[str]:
    rng = random.Random(5)
    return [" ".join(rng.choices(WORDS, k=30)) + "".join(rng.choices(TRICKY, k=10)) for _ in range(300)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([sample()], vocab_size=600, special_tokens=(END,))


def split(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    ids, offsets = tokenizer.encode(texts)
    return [ids[a:b].tolist() for a, b in zip(offsets[:-1], offsets[1:], strict=True)]


def test_a_special_name_in_a_text_stays_text(tokenizer: Tokenizer) -> None:
    text = f"say {END}{END} twice"
    ids = split(tokenizer, [text])[0]
    assert tokenizer.id_of(END) not in ids
    assert tokenizer.decode(ids) == text


def test_a_special_name_that_is_also_an_ordinary_word_stays_text() -> None:
    made = train_tokenizer([["hello " * 50]], vocab_size=400, special_tokens=("hello",))
    assert made.library.encode("hello hello", add_special_tokens=False).ids[0] == 0  # what the library would do
    ids = split(made, ["hello hello"])[0]
    assert made.decode(ids) == "hello hello"
    assert 0 not in ids


def test_a_token_that_cannot_be_cut_is_an_error() -> None:
    made = train_tokenizer([["a b"]], vocab_size=300, special_tokens=("a",))
    with pytest.raises(
        TokenizerError, match="the tokenizer makes control tokens of ordinary text, so it cannot be used"
    ):
        made.encode(["a"])


def test_training_does_not_depend_on_order_or_batches(tokenizer: Tokenizer) -> None:
    texts = sample()
    random.Random(1).shuffle(texts)
    again = train_tokenizer(([text] for text in texts), vocab_size=600, special_tokens=(END,))
    assert again.json == tokenizer.json


def test_training_on_nothing_gives_the_bytes() -> None:
    made = train_tokenizer([], vocab_size=1000, special_tokens=(END,))
    assert made.vocab_size == 257
    assert made.decode(split(made, ["h\u00e9"])[0]) == "h\u00e9"


def test_the_digest_is_of_the_content_not_of_the_layout(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(json.loads(tokenizer.json)))
    assert load_tokenizer(str(path)).digest == tokenizer.digest
    other = json.loads(tokenizer.json)
    other["added_tokens"][0]["lstrip"] = True
    assert Tokenizer(json.dumps(other)).digest != tokenizer.digest


def test_loading_switches_off_what_would_change_documents(tokenizer: Tokenizer, tmp_path: Path) -> None:
    library: Any = train_tokenizer([sample()], vocab_size=600, special_tokens=(END,)).library
    library.enable_truncation(3)
    library.enable_padding(length=5000)
    library.model.dropout = 0.9
    library.save(str(tmp_path / "t.json"))
    loaded = load_tokenizer(str(tmp_path / "t.json"))
    text = sample()[0]
    assert split(loaded, [text]) == split(tokenizer, [text])
    assert loaded.digest == tokenizer.digest


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"version": "1.0"}'])
def test_what_is_no_tokenizer_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(TokenizerError, match=f"^{path}: not a tokenizer.json"):
        load_tokenizer(str(path))


def test_a_missing_special_token_names_those_there_are(tokenizer: Tokenizer) -> None:
    with pytest.raises(
        TokenizerError,
        match=r"^tokens: the tokenizer has no token '</s>'; set .*\(special tokens: <\|endoftext\|>\), or ",
    ):
        tokenizer.id_of("</s>")


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.one_of(st.text(max_size=30), st.lists(st.sampled_from(TRICKY), max_size=12).map("".join)), max_size=4)
)
def test_any_text_comes_back_and_is_encoded_as_the_library_does(texts: list[str]) -> None:
    made = ANY
    ids, offsets = made.encode(texts)
    wanted, wanted_offsets = made.encode_strings(texts)
    assert ids.tolist() == wanted.tolist()
    assert offsets.tolist() == wanted_offsets.tolist()
    assert [made.decode(ids[a:b]) for a, b in zip(offsets[:-1], offsets[1:], strict=True)] == texts


ANY = train_tokenizer([sample()], vocab_size=900, special_tokens=(END,))


def test_many_random_mixtures_are_encoded_as_the_library_does() -> None:
    rng = random.Random(11)
    texts = ["".join(rng.choices(TRICKY, k=rng.randrange(200))) for _ in range(4000)]
    ids, offsets = ANY.encode(texts)
    wanted, wanted_offsets = ANY.encode_strings(texts)
    assert np.array_equal(ids, wanted)
    assert np.array_equal(offsets, wanted_offsets)


def test_arrow_slices_and_nulls_are_read_in_place(tokenizer: Tokenizer) -> None:
    texts = pa.array(["no", "one two", None, "", "three"], pa.large_string()).slice(1)
    assert split(tokenizer, texts) == [*split(tokenizer, ["one two", "", "", "three"])]


@pytest.mark.parametrize(
    "room", [{"entries": 16}, {"stored_bytes": 3 * PIECE_BYTES}, {"scan_pieces": 7}, {"entries": 5, "scan_pieces": 3}]
)
def test_a_full_memory_is_emptied_and_changes_nothing(tokenizer: Tokenizer, room: dict[str, int]) -> None:
    small = PieceEncoder(tokenizer.encode_strings, **room)
    texts = [*sample()[:40], "y" * 1000, "", "z" * 200] * 2
    for _ in range(2):
        ids, offsets = small(*buffers_of(texts))
        wanted, wanted_offsets = tokenizer.encode_strings(texts)
        assert ids.tolist() == wanted.tolist()
        assert offsets.tolist() == wanted_offsets.tolist()


@pytest.mark.parametrize(
    "unit", ["a", " ", "\n", " \n", "=", "7", "aB3x", "\u4e00", "\u0301", "\u3000", "\U0001f600", "it "]
)
def test_long_runs_are_linear_and_encoded_as_a_whole(tokenizer: Tokenizer, unit: str) -> None:
    seconds = []
    for length in (100_000, 400_000):
        text = unit * (length // len(unit))
        started = time.process_time()
        ids = split(tokenizer, [text])[0]
        seconds.append(time.process_time() - started)
        assert tokenizer.decode(ids) == text
    whole = tokenizer.library.encode_batch_fast([text], add_special_tokens=False)[0].ids  # longer than a window
    assert ids == whole
    assert seconds[1] < 20 * seconds[0] + 0.5


@pytest.mark.heavy
@pytest.mark.parametrize("unit", ["a", " ", "\n", "=", "7"])
def test_sixteen_million_of_one_character_are_a_matter_of_seconds(tokenizer: Tokenizer, unit: str) -> None:
    text = unit * (16 << 20)
    started = time.process_time()
    ids, offsets = tokenizer.encode(pa.array([text], pa.large_string()))
    assert time.process_time() - started < 30
    assert offsets.tolist() == [0, len(ids)]
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("texts", [["fine", "\ud800"], ["fine", 3], "fine"])
def test_what_is_no_text_is_named(tokenizer: Tokenizer, texts: Any, cut: bool) -> None:
    made = tokenizer if cut else uncut(tokenizer)
    with pytest.raises(TokenizerError, match=r"^texts: "):
        made.encode(texts)


@pytest.mark.parametrize("cut", [True, False])
def test_bytes_that_are_no_utf_8_are_named(tokenizer: Tokenizer, cut: bool) -> None:
    made = tokenizer if cut else uncut(tokenizer)
    with pytest.raises(TokenizerError, match=r"^texts: .* no UTF-8; "):
        made.encode(broken_texts())


def uncut(tokenizer: Tokenizer) -> Tokenizer:
    told = json.loads(tokenizer.json)
    told["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    return Tokenizer(json.dumps(told))


def broken_texts() -> pa.Array:
    """ "ok" and what a lone surrogate would be in UTF-8, as a careless writer leaves it in Parquet."""
    offsets = pa.py_buffer(np.array([0, 2, 7], np.int64))
    return pa.Array.from_buffers(pa.large_string(), 2, [None, offsets, pa.py_buffer(b"ok\xed\xa0\x80xy")])


@pytest.mark.parametrize("name", ["code_python", "techdoc_multilingual", "math_en"])
def test_shared_texts_are_encoded_as_the_library_does(shared: Path, name: str) -> None:
    with gzip.open(shared / "text" / f"{name}.jsonl.gz") as lines:
        texts = [json.loads(line)["text"] for line in lines][::4]
    made = train_tokenizer([texts[::5]], vocab_size=4000, special_tokens=(END,))
    ids, offsets = made.encode(pa.array(texts, pa.large_string()))
    wanted, wanted_offsets = made.encode_strings(texts)
    assert np.array_equal(ids, wanted)
    assert np.array_equal(offsets, wanted_offsets)


@pytest.mark.parametrize(
    ("name", "told"), [("", "is a folder; name the file in it"), ("x.json", "no such file; name a ")]
)
def test_what_is_no_file_is_told_with_what_would_be_one(tmp_path, name, told):
    with pytest.raises(TokenizerError, match=told):
        load_tokenizer(str(tmp_path / name))
