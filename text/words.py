"""One tokenisation of a batch, shared by signals, MinHash and contamination.

A word is a maximal run of letters, marks, digits and underscores; in scripts written without spaces (Han, kana, Thai,
Lao, Khmer, Myanmar, Tibetan ...) each base character with its marks is a word. Every other maximal run of one
repeated character that is not white space ("...", "#", ",") is a symbol token. Words are hashed folded: compatibility
form, case folded, Latin, Greek and Cyrillic diacritics taken off, so "Cafe" and "CAFE" with an accent are one word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from text.buffers import Texts, buffers_of
from text.unicode import (
    DIGIT,
    EXPANDS,
    EXTENDS,
    IGNORED,
    JOINS,
    LETTER,
    UNSPACED,
    decode,
    tables,
)

HAS_LETTER = LETTER
HAS_DIGIT = DIGIT
SYMBOL = 4
"""Neither a letter nor a digit: punctuation, or underscores alone."""

_SEED = np.uint64(0x243F6A8885A308D3)  # fraction of pi
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # golden ratio, odd
_MIX_A = np.uint64(0xFF51AFD7ED558CCD)  # the 64-bit finaliser of MurmurHash3
_MIX_B = np.uint64(0xC4CEB9FE1A85EC53)
_NEWLINE = 10
_HALF = np.uint64(32)
_THIRD = np.uint64(33)

Offsets = npt.NDArray[np.int32] | npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """The words and lines of n texts: w words, l lines. Positions are byte offsets into `data`.

    data: uint8[bytes]; text_offsets: int64[n + 1]; characters: int64[n], code points.
    Words of text i are word_offsets[i]:word_offsets[i + 1] of word_starts, word_ends (int32, or int64 where data
    passes 2 GiB), word_hashes (uint64, of the folded word), word_characters (int32), word_flags (uint8: HAS_LETTER,
    HAS_DIGIT, SYMBOL). Lines are split at "\\n" as str.split does: line_offsets, line_starts, line_ends (without it).
    """

    data: npt.NDArray[np.uint8]
    text_offsets: npt.NDArray[np.int64]
    characters: npt.NDArray[np.int64]
    word_offsets: npt.NDArray[np.int64]
    word_starts: Offsets
    word_ends: Offsets
    word_hashes: npt.NDArray[np.uint64]
    word_characters: npt.NDArray[np.int32]
    word_flags: npt.NDArray[np.uint8]
    line_offsets: npt.NDArray[np.int64]
    line_starts: Offsets
    line_ends: Offsets

    def __len__(self) -> int:
        return len(self.text_offsets) - 1

    def words_only(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """(hashes uint64[m], offsets int64[n + 1]) of the words that hold a letter or digit: symbols left out."""
        hashes: npt.NDArray[np.uint64]
        hashes, offsets = _without_symbols(self.word_hashes, self.word_flags, self.word_offsets)
        return hashes, offsets

    def words(self, text: int) -> list[str]:
        """The words and symbols of one text, for people and tests."""
        span = slice(int(self.word_offsets[text]), int(self.word_offsets[text + 1]))
        raw = self.data.tobytes()
        return [
            raw[start:end].decode("utf-8", "replace")
            for start, end in zip(self.word_starts[span].tolist(), self.word_ends[span].tolist(), strict=True)
        ]


def tokenize(texts: Texts) -> Tokens:
    """Words, symbols and lines of a whole batch in one pass over its UTF-8 buffer. Null texts are empty.

    Linear time, any bytes. Raises TypeError for arrays that hold no strings.
    """
    data, offsets = buffers_of(texts)
    return tokenize_buffer(data, offsets)


def tokenize_buffer(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> Tokens:
    """`tokenize` for bytes that are at hand: text i is data[offsets[i]:offsets[i + 1]]."""
    width = np.int32 if len(data) < 2**31 - 1 else np.int64
    n = len(offsets) - 1
    characters, word_offsets, line_offsets = np.empty(n, np.int64), np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    most_lines = int(np.count_nonzero(data == _NEWLINE)) + n
    line_starts, line_ends = np.empty(most_lines, width), np.empty(most_lines, width)
    # Three bytes a token or more are usual, also in Han; a text of bare symbols has one, and is then done again.
    for most in (len(data) // 3 + n, len(data)):
        starts, ends = np.empty(most, width), np.empty(most, width)
        hashes, lengths, flags = np.empty(most, np.uint64), np.empty(most, np.int32), np.empty(most, np.uint8)
        words = (word_offsets, starts, ends, hashes, lengths, flags)
        if _tokenize(data, offsets, tables(), characters, words, (line_offsets, line_starts, line_ends)):
            break
    w, lines = int(word_offsets[-1]), int(line_offsets[-1])
    return Tokens(
        data=data,
        text_offsets=offsets,
        characters=characters,
        word_offsets=word_offsets,
        word_starts=starts[:w],
        word_ends=ends[:w],
        word_hashes=hashes[:w],
        word_characters=lengths[:w],
        word_flags=flags[:w],
        line_offsets=line_offsets,
        line_starts=line_starts[:lines],
        line_ends=line_ends[:lines],
    )


@numba.njit(cache=True, nogil=True, inline="always")
def _fold(h, point, folds, expansions):  # type: ignore[no-untyped-def]
    fold = np.int64(folds[point])
    if fold == 0:
        return h
    if fold < EXPANDS:
        h = (h ^ np.uint64(fold)) * _MULTIPLIER
        return h ^ (h >> _HALF)
    at = fold - EXPANDS
    for k in range(np.int64(expansions[at])):
        h = (h ^ np.uint64(expansions[at + 1 + k])) * _MULTIPLIER
        h ^= h >> _HALF
    return h


@numba.njit(cache=True, nogil=True, inline="always")
def _finish(h):  # type: ignore[no-untyped-def]
    h = (h ^ (h >> _THIRD)) * _MIX_A
    h = (h ^ (h >> _THIRD)) * _MIX_B
    return h ^ (h >> _THIRD)


@numba.njit(cache=True, nogil=True)
def _token(data, at, end, first, step, tables):  # type: ignore[no-untyped-def]
    """The token that starts at `at` with code point `first`: (its end, hash, code points, class bits together)."""
    classes, folds, expansions = tables
    kind = classes[first]
    bits, count = np.int64(kind), np.int64(1)
    h = _fold(_SEED, first, folds, expansions)
    at += step
    joined = (JOINS | EXTENDS) if kind & JOINS else EXTENDS
    is_symbol = not (kind & (JOINS | UNSPACED))
    while at < end:
        if data[at] < 0x80:
            point, step = np.int64(data[at]), 1
        else:
            point, step = decode(data, at, end)
        kind = classes[point]
        if not (kind & joined or (is_symbol and point == first)):
            break
        h = _fold(h, point, folds, expansions)
        bits |= kind
        count += 1
        at += step
    return at, _finish(h), count, bits


@numba.njit(cache=True, nogil=True)
def _tokenize(data, offsets, tables, characters, words, lines):  # type: ignore[no-untyped-def]
    """Fill the arrays of words and lines; False where there was no room for all words."""
    word_offsets, starts, ends, hashes, lengths, flags = words
    line_offsets, line_starts, line_ends = lines
    classes = tables[0]
    w, line, room = np.int64(0), np.int64(0), len(starts)
    word_offsets[0], line_offsets[0] = 0, 0
    for t in range(len(offsets) - 1):
        at, end, count = offsets[t], offsets[t + 1], np.int64(0)
        line_starts[line] = at
        while at < end:
            point, step = decode(data, at, end)
            if classes[point] & IGNORED:
                if point == _NEWLINE:
                    line_ends[line] = at
                    line += 1
                    line_starts[line] = at + 1
                at += step
                count += 1
                continue
            if w == room:
                return False
            starts[w] = at
            at, hashes[w], length, bits = _token(data, at, end, point, step, tables)
            ends[w] = at
            lengths[w] = length
            flags[w] = (bits & (LETTER | DIGIT)) or SYMBOL
            count += length
            w += 1
        line_ends[line] = end
        line += 1
        characters[t] = count
        word_offsets[t + 1], line_offsets[t + 1] = w, line
    return True


@numba.njit(cache=True, nogil=True)
def _without_symbols(hashes, flags, offsets):  # type: ignore[no-untyped-def]
    kept, new_offsets, m = np.empty_like(hashes), np.zeros_like(offsets), 0
    for t in range(len(offsets) - 1):
        for w in range(offsets[t], offsets[t + 1]):
            if flags[w] != SYMBOL:
                kept[m] = hashes[w]
                m += 1
        new_offsets[t + 1] = m
    return kept[:m], new_offsets
