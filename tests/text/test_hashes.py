"""N-gram hashes and the hash of a normalised text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import text

GOLDEN_TEXT = [[-4136870770076120764, -8146180847584840872], [9075900273720978793, -3221749149268496541]]
GOLDEN_WORD = [16240190530972412182]


@pytest.mark.parametrize(("words", "n", "count"), [(0, 3, 0), (1, 3, 1), (2, 3, 1), (3, 3, 1), (4, 3, 2), (9, 1, 9)])
def test_number_of_ngrams(words: int, n: int, count: int) -> None:
    tokens = text.tokenize(["w " * words, "x"])
    hashes, offsets = text.ngram_hashes(tokens.word_hashes, tokens.word_offsets, n)
    assert offsets.tolist() == [0, count, count + 1]
    assert len(hashes) == count + 1


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from("abc"), max_size=12), max_size=5), st.integers(1, 5))
def test_equal_ngrams_and_only_they_share_a_hash(texts: list[list[str]], n: int) -> None:
    tokens = text.tokenize([" ".join(words) for words in texts])
    hashes, offsets = text.ngram_hashes(tokens.word_hashes, tokens.word_offsets, n)
    grams: list[tuple[str, ...]] = []
    for words in texts:
        grams += [tuple(words[i : i + n]) for i in range(max(1, len(words) - n + 1))] if words else []
    assert len(grams) == len(hashes) == offsets[-1]
    assert len({*zip(grams, hashes.tolist(), strict=True)}) == len(set(grams)) == len(np.unique(hashes))


def test_ngrams_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="n >= 1, not 0"):
        text.ngram_hashes(np.zeros(0, np.uint64), np.zeros(1, np.int64), 0)


@settings(deadline=None)
@given(st.lists(st.text(alphabet=st.sampled_from("ab \n\t\u00a0\u3000é中"), max_size=20), max_size=8))
def test_normalised_hash_sees_words_and_not_layout(texts: list[str]) -> None:
    hashes = text.normalised_hash(texts)
    assert hashes.shape == (len(texts), 2)
    assert hashes.dtype == np.int64
    plain = [" ".join(t.split()) for t in texts]
    by_text = {tuple(h): p for h, p in zip(hashes.tolist(), plain, strict=True)}
    assert len(by_text) == len(set(plain))
    np.testing.assert_array_equal(text.normalised_hash(plain), hashes)


def test_no_collision_among_many_near_texts() -> None:
    texts = [f"{'x' * (i % 17)}{i}" for i in range(20_000)]
    hashes = text.normalised_hash(texts)
    for column in range(2):
        assert len(np.unique(hashes[:, column])) == len(set(texts))


def test_stored_hashes_do_not_change() -> None:
    assert text.normalised_hash(["", "The same  text\n"]).tolist() == GOLDEN_TEXT
    assert text.tokenize(["word"]).word_hashes.tolist() == GOLDEN_WORD
