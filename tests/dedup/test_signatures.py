"""Signatures: golden parameters, the sentinel, short texts, and the estimate that they are for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup import signatures
from dedup.sketch import EMPTY, band_keys, parameters


def test_the_permutations_of_seed_1_are_these_for_good() -> None:
    a, b = parameters(112, 1)
    assert a[:3].tolist() == [3582191691, 4270784983, 1892572953]
    assert b[:3].tolist() == [2465816345, 2636844999, 630194419]
    assert (a % 2 == 1).all()


def test_a_text_without_words_has_the_sentinel() -> None:
    assert (signatures(["", " \n", "... !!! ---"], permutations=9) == EMPTY).all()


@pytest.mark.parametrize("words", [1, 4, 5])
def test_a_text_of_up_to_ngram_words_has_one_shingle(words: int) -> None:
    text = " ".join("abcdefgh"[:words])
    twice, other = text.upper() + "!", text + " z"
    same = signatures([text, twice, other])
    assert (same[0] == same[1]).all()
    assert (same[0] != same[2]).mean() > (0.9 if words < 5 else 0.2)


def test_case_symbols_accents_and_line_breaks_do_not_count() -> None:
    plain, dressed = "the cafe is open all day long", "The Caf\u00e9 --\nis OPEN, all day (long)."
    assert (signatures([plain])[0] == signatures(pa.array([dressed]))[0]).all()


def test_equal_values_estimate_jaccard() -> None:
    words = [f"w{number}" for number in range(2000)]
    a, b = " ".join(words), " ".join(words[:1000] + [f"v{number}" for number in range(500)])
    left, right = signatures([a, b], ngram=1, permutations=2048)
    assert (left == right).mean() == pytest.approx(1000 / 2500, abs=0.04)


@given(st.lists(st.text(max_size=80), max_size=8))
@settings(max_examples=60, deadline=None)
def test_any_text_has_a_signature_of_its_own_whatever_the_batch(texts: list[str]) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    together = signatures(texts)
    assert together.shape == (len(texts), 112)
    assert together.dtype == np.uint32
    for number, text in enumerate(texts):
        assert (signatures([text])[0] == together[number]).all()


def test_bands_are_keyed_by_their_rows_alone() -> None:
    signature = signatures(["one two three four five six", "one two three four five seven"])
    keys = band_keys(signature, 14, 8)
    for band in range(14):
        rows = slice(band * 8, band * 8 + 8)
        assert (keys[0, band] == keys[1, band]) == (signature[0, rows] == signature[1, rows]).all()
    assert len(np.unique(keys[0])) == 14


def test_bands_that_do_not_fill_the_signature_are_refused() -> None:
    with pytest.raises(ValueError, match="13 bands of 8 rows need 104 permutations, not 112"):
        band_keys(np.zeros((1, 112), np.uint32), 13, 8)


def test_hash_randomisation_does_not_reach_a_signature() -> None:
    told = "from dedup import signatures; print(signatures(['some words of a text to sign'])[0, :4].tolist())"
    root = Path(__file__).resolve().parents[2]
    answers = {
        subprocess.run(
            [sys.executable, "-c", told],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1
