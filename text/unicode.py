"""The code-point tables: class bits and folding, loaded once a process from unicode.npz (see make_tables.py)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from text.jit import inlined

CODE_POINTS = 0x110000
EXPANDS = 0x200000
"""A fold at or above this is an index, plus EXPANDS, into `expansions`: a length, then that many code points."""

LETTER = 1
"""Category L*."""
DIGIT = 2
"""Category N*."""
JOINS = 4
"""Continues or starts a word of a spaced script: letters, numbers, underscore."""
EXTENDS = 8
"""Sticks to what stands before it: combining marks, and format characters such as ZWJ and the soft hyphen."""
UNSPACED = 16
"""A word by itself: a character of a script written without spaces."""
WHITE = 32
"""White space, as Python's str.isspace."""
IGNORED = 64
"""Makes no token: white space, and format characters."""
TERMINAL = 128
"""Unicode's Sentence_Terminal: ends a sentence."""

REPLACEMENT = 0xFFFD


class Tables(NamedTuple):
    """classes: uint8[0x110000]; folds: uint32[0x110000], 0 where nothing is hashed; expansions: uint32[...].

    ascii: uint16[256], for each byte that joins a word its fold, with its class above it (<< 8); 0 for other bytes.
    """

    classes: npt.NDArray[np.uint8]
    folds: npt.NDArray[np.uint32]
    expansions: npt.NDArray[np.uint32]
    ascii: npt.NDArray[np.uint16]


@cache
def tables() -> Tables:
    # A resource, not a path: Spark ships the packages as a zip.
    with files("text").joinpath("unicode.npz").open("rb") as file, np.load(file, allow_pickle=False) as stored:
        # Stored as the distance to the code point itself, mostly 0, which packs into a few kilobytes.
        folds = (stored["shifts"] + np.arange(CODE_POINTS)).astype(np.uint32)
        classes, expansions = stored["classes"], stored["expansions"]
    first = classes[:128].astype(np.uint16)
    ascii_ = np.zeros(256, np.uint16)
    ascii_[:128] = np.where(first & JOINS, (first << 8) | folds[:128], 0)
    return Tables(classes, folds, expansions, ascii_)


@inlined
def decode(data, at, end):  # type: ignore[no-untyped-def]
    """(code point, bytes) of the UTF-8 character at `at`. A broken one is U+FFFD of one byte: no input is an error."""
    lead = np.int64(data[at])
    left = end - at
    if lead < 0x80:
        return lead, 1
    if 0xC0 <= lead < 0xE0 and left >= 2:
        return ((lead & 0x1F) << 6) | (np.int64(data[at + 1]) & 0x3F), 2
    if 0xE0 <= lead < 0xF0 and left >= 3:
        return ((lead & 0x0F) << 12) | ((np.int64(data[at + 1]) & 0x3F) << 6) | (np.int64(data[at + 2]) & 0x3F), 3
    if 0xF0 <= lead < 0xF5 and left >= 4:
        point = (
            ((lead & 0x07) << 18)
            | ((np.int64(data[at + 1]) & 0x3F) << 12)
            | ((np.int64(data[at + 2]) & 0x3F) << 6)
            | (np.int64(data[at + 3]) & 0x3F)
        )
        return (point if point < CODE_POINTS else REPLACEMENT), 4
    return REPLACEMENT, 1
