"""Signals of texts: values on both sides of what they mean, and an answer for any text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filters.signals import MEANINGS, SIGNALS, measure

P = "A paragraph of six words here."


def signal(name: str, whole: str) -> float:
    value: float = measure([whole]).column(name)[0].as_py()
    return value


@pytest.mark.parametrize(
    ("name", "whole", "value"),
    [
        ("characters", "héllo 中文\n", 9),
        ("words", "one, two - 3 !", 3),
        ("words", "中文 abc", 3),
        ("tokens", "one, two - 3 !", 6),
        ("mean_word_characters", "ab abcd ...", 3),
        ("hash_ratio", "a # b ##", 3 / 4),
        ("ellipsis_ratio", "a ... b \u2026", 2 / 4),
        ("ellipsis_ratio", "a .. b", 0),
        ("ellipsis_ratio", "a ...... b", 2 / 3),
        ("ellipsis_ratio", "a \u2026\u2026", 2 / 2),
        ("alpha_word_ratio", "a 1 b2 , ,", 2 / 3),
        ("alpha_token_ratio", "a 1 b2 , ,", 2 / 5),
        ("stop_words", "The AND the", 2),
        ("stop_words", "thee beto haves", 0),
        ("stop_words", "the be to of and that have with", 8),
        ("lines", "a\n\n \nb\n", 2),
        ("bullet_line_ratio", "- a\n\n  \u2022 b\nc - d\n* e", 2 / 4),
        ("ellipsis_line_ratio", "a...\nb\u2026  \nc..\nd... e", 2 / 4),
        ("duplicate_line_ratio", "a\n\n\n\nb\n", 0),
        ("duplicate_line_ratio", "a\na\n\na\nb\n", 2 / 4),
        ("duplicate_line_ratio", "a\n a\nA\n", 0),
        ("duplicate_line_character_ratio", "ab\nc\nab\n", 2 / 8),
        ("duplicate_line_text_ratio", "ab\nc\nab\n", 2 / 5),
        ("duplicate_paragraph_ratio", "a\nb\n\na\nb\n\n\na b", 1 / 3),
        ("duplicate_paragraph_ratio", "a\n\nb\na\n\nb", 0),
        ("duplicate_paragraph_character_ratio", "a\nb\n\na\nb", 3 / 8),
        ("terminal_line_ratio", "a.\nb!  \nc\u3002\nd,", 3 / 4),
        ("short_line_ratio", "x" * 30 + "\n" + "x" * 31, 1 / 2),
        ("newline_ratio", "a b\n\nc.", 2 / 4),
        ("top_2gram_character_ratio", "a b c d", 0),
        ("top_2gram_character_ratio", "a b a b", 2 * 3 / 7),
        ("top_2gram_character_ratio", "aa b x aa b y", 2 * 4 / 13),
        ("top_3gram_character_ratio", "a b c a b c", 2 * 5 / 11),
        ("top_4gram_character_ratio", "a b c d A B C D", 2 * 7 / 15),
        ("duplicate_5gram_character_ratio", "a b c d e x a b c d e", 5 / 21),
        ("duplicate_5gram_character_ratio", "a b c d e x a b c d f", 0),
        ("duplicate_6gram_character_ratio", "a b c d e x a b c d e", 0),
        ("duplicate_10gram_character_ratio", "a b c d e f g h i j " * 2, 10 / 40),
        ("c4_lines", "One two three.\nOne two.\nOne two three", 1),
        ("c4_any_ending_lines", "One two three.\nOne two.\nOne two three", 2),
        ("c4_lines", 'He said "so it is"\nAnd so on it went...\nAnd it went on\u2026', 1),
        ("c4_lines", "It is known. [12][edit]\nIt is known. [12\nIs it known [citation needed]", 1),
        ("c4_lines", f"a b {'x' * 1000}.\na b {'x' * 1001}.", 0),
        ("c4_lines", f"a b {'x' * 999}.\na b {'x' * 1000}.", 1),
        ("c4_lines", "We like JavaScript a lot.\nWe like it a lot.\nRead our Privacy Policy now.", 1),
        ("c4_lines", "This site uses cookies.\nThe use of cookies here.\nWe use cookies here.\nOur cookie policy.", 0),
        ("c4_lines", "These are the Terms of Use.\nThe terms of user.\nIn terms of us all.", 1),
        ("c4_lorem_ipsum_lines", "Here is Lorem Ipsum too.\nLorem ipsum\nLorem then ipsum it is.", 1),
        ("c4_curly_bracket_lines", "if (x) { y.\nvar x = { y;\nuse javascript { here.", 1),
        ("c4_any_ending_curly_bracket_lines", "if (x) { y.\nvar x = { y;\nuse javascript { here.", 2),
        ("c4_sentences", "It is so. Is it so? Yes! He said so.", 4),
        ("c4_sentences", 'He is J. Smith, i.e. him. It is 3.14 at "x.y".', 2),
        ("c4_sentences", "No mark at the end (it is so)", 0),
        ("c4_any_ending_sentences", "No mark at the end (it is so)", 1),
        ("c4_sentences", "日本語です。これは文です。", 2),
    ],
)
def test_values(name: str, whole: str, value: float) -> None:
    assert signal(name, whole) == value


@given(st.lists(st.text(), max_size=5))
@settings(deadline=None)
def test_any_text_has_finite_signals(texts: list[str]) -> None:
    table = measure(texts)
    assert table.schema == SIGNALS
    for column in table.columns:
        values = column.to_numpy()
        assert np.isfinite(values).all()
        assert (values >= 0).all()


@given(st.lists(st.text(st.sampled_from("ab .\n-{[1]"), max_size=60), min_size=1, max_size=4))
@settings(deadline=None)
def test_a_text_is_measured_alone(texts: list[str]) -> None:
    together = measure(texts)
    for i, whole in enumerate(texts):
        assert together.slice(i, 1).to_pylist() == measure([whole]).to_pylist()


@given(st.lists(st.sampled_from("abc"), max_size=40), st.sampled_from([5, 6, 7, 10]))
@settings(deadline=None)
def test_duplicate_ngrams_are_those_of_a_plain_scan(words: list[str], n: int) -> None:
    whole = " ".join(words)
    seen, at, characters = set(), 0, 0
    while at <= len(words) - n:
        gram = tuple(words[at : at + n])
        if gram in seen:
            characters, at = characters + n, at + n
        else:
            seen.add(gram)
            at += 1
    assert signal(f"duplicate_{n}gram_character_ratio", whole) == (characters / len(whole) if whole else 0)


@pytest.mark.parametrize("whole", ["", "\n", " \n\t\n ", "\u200b", "\x00\n", "\ufeff"])
def test_nothing_to_read_is_zero_and_no_error(whole: str) -> None:
    row = measure([whole]).to_pylist()[0]
    assert all(row[name] == 0 for name in MEANINGS if name not in ("characters", "tokens", "lines", "newline_ratio") and
               not name.startswith(("short_line",)))  # fmt: skip


@pytest.mark.parametrize(
    "whole", ["the same line\n" * 30_000, "a" * 400_000, "." * 400_000, "[1]" * 100_000, "a b " * 100_000]
)
def test_long_and_monotonous_texts_take_linear_time(whole: str) -> None:
    assert signal("characters", whole) == len(whole)


def test_nulls_slices_and_chunks() -> None:
    whole = pa.chunked_array([[P, None], [P]], pa.string())
    assert measure(whole).to_pylist() == measure([P, "", P]).to_pylist()
    assert measure(pa.array(["x", P]).slice(1)).to_pylist() == measure([P]).to_pylist()


def test_the_published_example(shared: Path) -> None:
    """One text with its Gopher statistics. Ours differ in two: a symbol is no word, and an n-gram that stands once
    is no repetition (the example's most common 2-, 3- and 4-grams each stand once)."""
    case = json.loads((shared / "quality" / "gopher_expected.jsonl").read_text(encoding="utf-8").splitlines()[0])
    ours, theirs = measure([case["text"]]).to_pylist()[0], case["expected"]
    for name, their_name in {
        "characters": "character_count",
        "words": "word_count",
        "hash_ratio": "symbol_to_word_ratio",
        "alpha_word_ratio": "fraction_of_words_with_alpha_character",
        "stop_words": "required_word_count",
        "bullet_line_ratio": "fraction_of_lines_starting_with_bullet_point",
        "ellipsis_line_ratio": "fraction_of_lines_ending_with_ellipsis",
        "duplicate_line_ratio": "fraction_of_duplicate_lines",
        "duplicate_line_character_ratio": "fraction_of_characters_in_duplicate_lines",
    }.items():
        assert ours[name] == theirs[their_name], name
    assert ours["top_2gram_character_ratio"] == 0 != theirs["fraction_of_characters_in_most_common_2grams"]
