"""One tokenisation of a batch, shared by signals, MinHash and contamination.

A word is a maximal run of letters, marks, digits and underscores; in scripts written without spaces (Han, kana, Thai,
Lao, Khmer, Myanmar, Tibetan ...) each base character with its marks is a word. Every other maximal run of one
repeated character that is not white space ("...", "#", ",") is a symbol token. Words are hashed folded: compatibility
form, case folded, Latin, Greek and Cyrillic diacritics taken off, so "Cafe" and "CAFE" with an accent are one word.
"""

# ruff: noqa: PLR0917 - kernels are given bare arrays: a tuple or object of them costs reference counts in each call.

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from text.buffers import Texts, buffers_of
from text.jit import inlined, kernel
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
INT32_BYTES = 2**31 - 1
"""From here on positions need int64."""

_SPACE, _NEWLINE = 32, 10
_BYTE = np.uint64(8)
_HALF = np.uint64(32)
_THIRD = np.uint64(33)

Offsets: TypeAlias = npt.NDArray[np.signedinteger[Any]]


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
        hashes, offsets = np.empty_like(self.word_hashes), np.zeros_like(self.word_offsets)
        _without_symbols(self.word_hashes, self.word_flags, self.word_offsets, hashes, offsets)
        return hashes[: offsets[-1]], offsets

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
    width: type[np.signedinteger[Any]] = np.int32 if len(data) < INT32_BYTES else np.int64
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


@inlined
def _push(h, lane, size, byte):  # type: ignore[no-untyped-def]
    """One more byte of a folded word into its state (hash, lane, bytes): eight of them are mixed at a time."""
    lane = (lane << _BYTE) | byte
    size += 1
    if size & 7 == 0:
        h = (h ^ lane) * _MULTIPLIER
        h ^= h >> _HALF
        lane = np.uint64(0)
    return h, lane, size


@kernel
def _push_point(h, lane, size, point):  # type: ignore[no-untyped-def]
    """A folded code point: one byte in ASCII, else three of which the first is 0x80 or more, so no two words meet."""
    if point >= 0x80:
        h, lane, size = _push(h, lane, size, np.uint64(0x80 | (point >> 16)))
        h, lane, size = _push(h, lane, size, np.uint64((point >> 8) & 0xFF))
    return _push(h, lane, size, np.uint64(point & 0xFF))


@kernel
def _push_folded(h, lane, size, point, folds, expansions):  # type: ignore[no-untyped-def]
    fold = np.int64(folds[point])
    if fold >= EXPANDS:
        at = fold - EXPANDS
        for k in range(np.int64(expansions[at])):
            h, lane, size = _push_point(h, lane, size, np.int64(expansions[at + 1 + k]))
    elif fold:
        h, lane, size = _push_point(h, lane, size, fold)
    return h, lane, size


@inlined
def finish(h):  # type: ignore[no-untyped-def]
    """Spread a 64-bit state over all its bits."""
    h = (h ^ (h >> _THIRD)) * _MIX_A
    h = (h ^ (h >> _THIRD)) * _MIX_B
    return h ^ (h >> _THIRD)


@kernel
def _rest(data, at, end, h, lane, size, joins, first, classes, folds, expansions):  # type: ignore[no-untyped-def]
    """Go on with a token while classes are in `joins` or the code point is `first`: (end, state, points, bits)."""
    bits, count = np.int64(0), np.int64(0)
    while at < end:
        point, step = decode(data, at, end)
        kind = np.int64(classes[point])
        if not (kind & joins or point == first):
            break
        h, lane, size = _push_folded(h, lane, size, point, folds, expansions)
        bits |= kind
        count += 1
        at += step
    return at, h, lane, size, count, bits


@kernel
def _token(data, at, end, classes, folds, expansions, ascii_):  # type: ignore[no-untyped-def]
    """The token at `at`: (its end, hash, code points, class bits together). IGNORED alone where there is none."""
    h, lane, size = _SEED, np.uint64(0), np.int64(0)
    start, bits = at, np.int64(0)
    while at < end:  # letters, digits and underscores of ASCII, without a call
        both = np.int64(ascii_[data[at]])
        if both == 0:
            break
        bits |= both
        h, lane, size = _push(h, lane, size, np.uint64(both & 0xFF))
        at += 1
    count, bits = at - start, bits >> 8
    if count == 0 or (at < end and data[at] >= 0x80):
        joins, first = JOINS | EXTENDS, np.int64(-1)
        if count == 0:
            point, step = decode(data, at, end)
            bits = np.int64(classes[point])
            count, at = np.int64(1), at + step
            if bits & IGNORED:
                return at, h, count, bits
            h, lane, size = _push_folded(h, lane, size, point, folds, expansions)
            if not bits & JOINS:
                joins = EXTENDS
            if not bits & (JOINS | UNSPACED):
                first = point
        if at < end and (first < 0 or data[at] >= 0x80 or data[at] == first):
            at, h, lane, size, more, kinds = _rest(
                data, at, end, h, lane, size, joins, first, classes, folds, expansions
            )
            count, bits = count + more, bits | (kinds & ~IGNORED)
    return at, finish((h ^ lane) * _MULTIPLIER + np.uint64(size)), count, bits


@kernel
def _tokenize(data, offsets, tables, characters, words, lines):  # type: ignore[no-untyped-def]
    """Fill the arrays of words and lines; False where there was no room for all words."""
    word_offsets, starts, ends, hashes, lengths, flags = words
    line_offsets, line_starts, line_ends = lines
    classes, folds, expansions, ascii_ = tables
    w, line, room = np.int64(0), np.int64(0), len(starts)
    word_offsets[0], line_offsets[0] = 0, 0
    for t in range(len(offsets) - 1):
        at, end, count = offsets[t], offsets[t + 1], np.int64(0)
        line_starts[line] = at
        while at < end:
            if data[at] == _SPACE:
                at, count = at + 1, count + 1
                continue
            if data[at] == _NEWLINE:
                line_ends[line] = at
                at, count, line = at + 1, count + 1, line + 1
                line_starts[line] = at
                continue
            start = at
            at, h, length, bits = _token(data, at, end, classes, folds, expansions, ascii_)
            count += length
            if bits & IGNORED:
                continue
            if w == room:
                return False
            starts[w], ends[w], hashes[w], lengths[w] = start, at, h, length
            flags[w] = (bits & (LETTER | DIGIT)) or SYMBOL
            w += 1
        line_ends[line] = end
        line += 1
        characters[t] = count
        word_offsets[t + 1], line_offsets[t + 1] = w, line
    return True


@kernel
def _without_symbols(hashes, flags, offsets, kept, new_offsets):  # type: ignore[no-untyped-def]
    m = 0
    for t in range(len(offsets) - 1):
        for w in range(offsets[t], offsets[t + 1]):
            kept[m] = hashes[w]  # without a branch, which one symbol in six would mispredict
            m += flags[w] != SYMBOL
        new_offsets[t + 1] = m
