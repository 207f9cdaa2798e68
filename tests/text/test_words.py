"""Words, lines and their hashes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import text

TEXTS = st.lists(st.text(), max_size=6)


@pytest.mark.parametrize(
    ("given_text", "words"),
    [
        ("", []),
        ("\n \t\n", []),
        ("Hello, world...", ["Hello", ",", "world", "..."]),
        ("don't", ["don", "'", "t"]),
        ("!?!! ##", ["!", "?", "!!", "##"]),
        ("snake_case x2 2x ___", ["snake_case", "x2", "2x", "___"]),
        ("日本語2024年", ["日", "本", "語", "2024", "年"]),
        ("สวัสดี", ["ส", "วั", "ส", "ดี"]),
        ("안녕 세계", ["안녕", "세계"]),
        ("soft\u00adhyphen zero\u200bwidth", ["soft\u00adhyphen", "zero", "width"]),
        ("\ufeffa\u00a0b\u2028c\x85d", ["a", "b", "c", "d"]),
        ("e\u0301te \u0301", ["e\u0301te", "\u0301"]),
    ],
)
def test_words_and_symbols(given_text: str, words: list[str]) -> None:
    assert text.tokenize([given_text]).words(0) == words


def test_flags_tell_letters_digits_and_symbols() -> None:
    tokens = text.tokenize(["ab 12 a1 , ___"])
    assert tokens.word_flags.tolist() == [1, 2, 3, 4, 4]
    assert tokens.word_characters.tolist() == [2, 2, 2, 1, 3]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("CAFÉ", "cafe"),
        ("ﬁx", "FIX"),
        ("Straße", "STRASSE"),
        ("e\u0301", "é"),
        ("\uff21\uff22\uff11", "ab1"),
        ("co\u00adop", "coop"),
        ("Ёж", "еж"),
    ],
)
def test_words_that_fold_together(one: str, other: str) -> None:
    hashes = text.tokenize([one, other]).word_hashes
    assert len(hashes) == 2
    assert hashes[0] == hashes[1]


def test_no_hash_is_shared_by_the_short_words() -> None:
    letters = "abcdefghij0123456789"
    words = [a + b + c + d for a in letters for b in letters for c in letters for d in letters]
    assert len(np.unique(text.tokenize([" ".join(words)]).word_hashes)) == len(words)


def test_lines_are_those_of_split() -> None:
    texts = ["", "a", "a\nb", "\n\nx\n", "\r\n"]
    tokens = text.tokenize(texts)
    for i, whole in enumerate(texts):
        span = range(tokens.line_offsets[i], tokens.line_offsets[i + 1])
        lines = [bytes(tokens.data[tokens.line_starts[j] : tokens.line_ends[j]]).decode() for j in span]
        assert lines == whole.split("\n")


@settings(deadline=None)
@given(TEXTS)
def test_any_text_has_an_answer_and_every_visible_character_a_place(texts: list[str]) -> None:
    tokens = text.tokenize(texts)
    assert tokens.characters.tolist() == [len(t) for t in texts]
    for i, whole in enumerate(texts):
        words = tokens.words(i)
        assert sum(map(len, words)) == tokens.word_characters[tokens.word_offsets[i] : tokens.word_offsets[i + 1]].sum()
        assert sum(map(len, words)) <= len(whole)
        assert all(word in whole for word in words)
        assert sum(c.isalnum() for c in "".join(words)) == sum(c.isalnum() for c in whole)


@settings(deadline=None)
@given(TEXTS, st.integers(0, 3))
def test_layout_of_the_array_does_not_matter(texts: list[str], skip: int) -> None:
    plain = text.tokenize(texts[skip:])
    layouts = [
        pa.array(texts, pa.string()).slice(skip),
        pa.array(texts, pa.large_string()).slice(skip),
        pa.chunked_array([[t] for t in texts[skip:]], pa.string()),
        pa.array(texts[skip:], pa.string_view()),
    ]
    for array in layouts:
        assert_same(text.tokenize(array), plain)


def test_null_is_an_empty_text_and_numbers_are_refused() -> None:
    assert_same(text.tokenize(pa.array(["a", None, "b"])), text.tokenize(["a", "", "b"]))
    with pytest.raises(TypeError, match="expected an Arrow array of strings, not of int64"):
        text.tokenize(pa.array([1]))


def test_broken_utf8_is_an_answer_too() -> None:
    raw = np.array([0x61, 0xE4, 0xB8, 0xF0, 0x9F, 0xFF, 0x80], np.uint8)
    array = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(np.array([0, 7], np.int32)), pa.py_buffer(raw)])
    assert len(text.tokenize(array)) == 1


@settings(deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=6), st.data())
def test_transient_columns_give_the_same_tokens(texts: list[str], data: st.DataObject) -> None:
    batch = pa.record_batch({"text": pa.array(texts, pa.large_string())})
    carried = text.attach(batch, text.tokenize(batch.column("text")))
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=8))
    taken = carried.take(pa.array(rows, pa.int32())).slice(1)
    assert_same(text.tokens_of(taken), text.tokenize(taken.column("text")))


def test_positions_past_2_gib_are_int64(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["One line, two words.\nAnd \u4e2d\u6587 #1 ...", "", "\n"]
    plain = text.tokenize(texts)
    monkeypatch.setattr("text.words.INT32_BYTES", 0)
    wide = text.tokenize(texts)
    assert wide.word_starts.dtype == wide.line_ends.dtype == np.int64
    assert_same(wide, plain)


@pytest.mark.parametrize("whole", ["a, " * 50_000, "," * 100_000, "!?" * 50_000, "\n" * 100_000, "\u0301" * 50_000])
def test_texts_of_one_kind_only(whole: str) -> None:
    tokens = text.tokenize([whole, whole])
    assert tokens.characters.tolist() == [len(whole)] * 2
    assert tokens.words(0) == tokens.words(1)


def assert_same(one: text.Tokens, other: text.Tokens) -> None:
    for field in dataclasses.fields(one):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))
