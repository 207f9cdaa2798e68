"""Writes unicode.npz, what the kernels know about each code point: `python -m text.make_tables`.

The answers of the kernels must not depend on the Python that runs them, so the tables are stored in the package.
Source: the Unicode Character Database as Python's `unicodedata` and the `regex` package (scripts, Sentence_Terminal)
carry it.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import regex  # type: ignore[import-untyped]

from text import unicode as u

# Scripts written without spaces between words: each of their base characters counts as a word.
UNSPACED_SCRIPTS = (
    "Han", "Hiragana", "Katakana", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Tai_Le", "New_Tai_Lue",
    "Tai_Tham", "Tai_Viet", "Ahom", "Javanese", "Balinese", "Tangut", "Nushu",
)  # fmt: skip
PROLONGED_SOUND_MARKS = "\u30fc\uff70"  # script Common, but a part of kana text
ZERO_WIDTH_SPACE = "\u200b"


def char_class(char: str, unspaced: re.Pattern[str], terminal: re.Pattern[str]) -> int:
    category = unicodedata.category(char)
    bits = u.TERMINAL if terminal.match(char) else 0
    if char.isspace():
        return bits | u.WHITE | u.IGNORED
    if category == "Cf":
        return u.IGNORED | (0 if char == ZERO_WIDTH_SPACE else u.EXTENDS)
    if category[0] == "M":
        return bits | u.EXTENDS
    if category[0] == "L":
        alone = unspaced.match(char) or char in PROLONGED_SOUND_MARKS
        return bits | u.LETTER | (u.UNSPACED if alone else u.JOINS)
    if category[0] == "N":
        return bits | u.DIGIT | (u.UNSPACED if unspaced.match(char) and category == "Nl" else u.JOINS)
    return bits | (u.JOINS if char == "_" else 0)


def folded(char: str) -> str:
    """Compatibility form, case folded, without the marks U+0300-036F; empty for what the eye does not see."""
    if unicodedata.category(char) == "Cf":
        return ""
    lower = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", char).casefold())
    bare = "".join(c for c in unicodedata.normalize("NFKD", lower) if not 0x300 <= ord(c) <= 0x36F)
    return unicodedata.normalize("NFC", bare)


def build() -> dict[str, npt.NDArray[Any]]:
    unspaced = regex.compile("[" + "".join(rf"\p{{Script={name}}}" for name in UNSPACED_SCRIPTS) + "]")
    terminal = regex.compile(r"\p{Sentence_Terminal}")
    classes = np.zeros(u.CODE_POINTS, dtype=np.uint8)
    folds = np.zeros(u.CODE_POINTS, dtype=np.uint32)
    expansions: list[int] = []
    for point in range(u.CODE_POINTS):
        char = chr(point)
        classes[point] = char_class(char, unspaced, terminal)
        to = folded(char)
        if len(to) < 2:
            folds[point] = ord(to) if to else 0
        else:
            folds[point] = u.EXPANDS + len(expansions)
            expansions += [len(to), *map(ord, to)]
    return {
        "classes": classes,
        "shifts": folds.astype(np.int64) - np.arange(u.CODE_POINTS),
        "expansions": np.array(expansions, dtype=np.uint32),
        "version": np.array(unicodedata.unidata_version),
    }


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("unicode.npz"), allow_pickle=False, **build())
