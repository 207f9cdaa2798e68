# ruff: noqa: RUF001 - the broken characters are the point
"""The normal form of text: NFC, line feeds, no NUL, mojibake repaired and nothing else touched."""

from __future__ import annotations

import time
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.normalise import normalise_text
from ingest.normalise_columns import normalise

GOOD = "Größe, l'été, “quoted” – naïve façade, Привет мир, Ελληνικά, 日本語, ×2 ±3 §4 © £10 à la carte, ½ °C, São Paulo"


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("plain", "plain"),
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("nul\0here", "nulhere"),
        ("e\u0301", "é"),
        (GOOD, GOOD),
        ("the mission â€“ it wasnâ€™t easy", "the mission – it wasn't easy".replace("'", "\u2019")),
        ("schÃ¶n, fÃ¼r GrÃ¶ÃŸe", "schön, für Größe"),
        ("l'Ã©tÃ© Ã  Paris", "l'été à Paris"),
        ("good line é\nbad line Ã©tÃ©\ngood – line", "good line é\nbad line été\ngood – line"),
        ("ÐŸÑ€Ð¸Ð²ÐµÑ‚ Ð¼Ð¸Ñ€", "Привет мир"),
    ],
)
def test_normal_form(text: str, normal: str) -> None:
    assert normalise_text(text) == normal
    assert normalise(pa.array([text, None], pa.large_string())).to_pylist() == [normal, None]


@given(st.lists(st.none() | st.text(), max_size=8))
def test_columns_and_texts_agree(texts: list[str | None]) -> None:
    texts = [None if text is None else text.encode("utf-8", "replace").decode() for text in texts]
    column = normalise(pa.array(texts, pa.large_string()))
    assert column.to_pylist() == [None if text is None else normalise_text(text) for text in texts]


@given(st.text(st.characters(codec="utf-8")))
def test_the_normal_form_is_stable(text: str) -> None:
    normal = normalise_text(text)
    assert unicodedata.is_normalized("NFC", normal)
    assert "\r" not in normal
    assert "\0" not in normal


def test_repair_is_linear() -> None:
    times = []
    for size in (100_000, 400_000):
        start = time.process_time()
        normalise_text("Ã©" * size)
        normalise_text("â€™ " * size)
        times.append(time.process_time() - start)
    assert times[1] < max(10 * times[0], 1.0)
