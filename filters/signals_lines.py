"""Signals of the lines and paragraphs of a text.

A line is what stands between line feeds and is not blank; a paragraph is a run of lines between blank ones. Both are
compared as they are, white space at their ends included; beginnings and endings are looked at without it.
"""

# ruff: noqa: PLR0917 - kernels are given bare arrays.

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from filters.signals_words import HALF, ONE, shift_for, slot_of, table
from text import Tokens, inlined, kernel
from text.unicode import TERMINAL, WHITE, decode, tables

LINES = {
    "lines": "lines that are not blank",
    "bullet_line_ratio": "share of the lines that start with '-' or U+2022",
    "ellipsis_line_ratio": "share of the lines that end with '...' or U+2026",
    "duplicate_line_ratio": "share of the lines that stood before",
    "duplicate_paragraph_ratio": "share of the paragraphs that stood before",
    "duplicate_line_character_ratio": "characters of the lines that stood before, for each character",
    "duplicate_paragraph_character_ratio": "characters of the paragraphs that stood before, for each character",
    "terminal_line_ratio": "share of the lines that end with a mark that ends sentences",
    "short_line_ratio": "share of the lines of at most 30 characters",
    "duplicate_line_text_ratio": "characters of the lines that stood before, for each character that is no line feed",
    "newline_ratio": "line feeds for each token",
}
SHORT_LINE = 30  # FineWeb, arXiv:2406.17557, section 3.6

_SEED, _MULTIPLIER = np.uint64(0xA4093822299F31D0), np.uint64(0x9E3779B97F4A7C15)
_BYTE, _HALF = np.uint64(8), np.uint64(32)
_DOT, _HYPHEN, _BULLET, _ELLIPSIS = ord("."), ord("-"), 0x2022, 0x2026


def measure_lines(tokens: Tokens) -> npt.NDArray[np.float64]:
    """float64[len(LINES), n]. Linear time; memory for the text of most lines: 40 bytes a line."""
    out = np.zeros((len(LINES), len(tokens)), np.float64)
    most = int(np.diff(tokens.line_offsets).max(initial=0))
    entries = table(most)
    hashes, sizes = np.empty(most, np.uint64), np.empty(most, np.int64)
    _lines(
        tokens.data, tokens.characters, tokens.word_offsets, tokens.line_offsets, tokens.line_starts,
        tokens.line_ends, tables().classes, entries, hashes, sizes, out,
    )  # fmt: skip
    return out


@kernel
def trimmed(data, start, end, classes):  # type: ignore[no-untyped-def]
    """(start, end, first code point, last code point) without white space at the ends; start == end where all is."""
    first, last = np.int64(0), np.int64(0)
    while start < end:
        first, step = decode(data, start, end)
        if not classes[first] & WHITE:
            break
        start += step
    while end > start:
        at = end - 1
        while at > start and end - at < 4 and (data[at] & 0xC0) == 0x80:
            at -= 1
        last, step = decode(data, at, end)
        if not classes[last] & WHITE:
            break
        end = at
    return start, end, first, last


@kernel
def _hash(data, start, end):  # type: ignore[no-untyped-def]
    """(hash, code points) of some bytes."""
    h, lane, size = _SEED, np.uint64(0), np.int64(0)
    for at in range(start, end):
        lane = (lane << _BYTE) | np.uint64(data[at])
        size += (data[at] & 0xC0) != 0x80
        if ((at - start) & 7) == 7:
            h = (h ^ lane) * _MULTIPLIER
            h ^= h >> _HALF
            lane = np.uint64(0)
    h = (h ^ lane) * _MULTIPLIER + np.uint64(end - start)
    return h ^ (h >> _HALF), size


@kernel
def _repeated(hashes, sizes, count, entries, generation):  # type: ignore[no-untyped-def]
    """(number, characters) of the items that stood before."""
    shift, number, characters = shift_for(count), 0, 0
    for i in range(count):
        at = slot_of(entries, hashes[i], shift, generation)
        if (entries[at, 1] >> HALF) == generation:
            number += 1
            characters += sizes[i]
        else:
            entries[at, 0], entries[at, 1] = hashes[i], generation << HALF
    return number, characters


@kernel
def _paragraphs(data, start, end, line_starts, line_ends, classes, hashes, sizes):  # type: ignore[no-untyped-def]
    """The hashes of lines start:end of a text, joined to those of its paragraphs in place; how many there are."""
    count, line, inside = 0, 0, False
    for i in range(start, end):
        s, e, _, _ = trimmed(data, line_starts[i], line_ends[i], classes)
        if s == e:
            inside = False
            continue
        h, size = hashes[line], sizes[line]
        if inside:
            h = (hashes[count - 1] ^ h) * _MULTIPLIER
            hashes[count - 1] = h ^ (h >> _HALF)
            sizes[count - 1] += size + 1
        else:
            hashes[count], sizes[count] = h, size
            count += 1
        inside = True
        line += 1
    return count


@inlined
def ends_in_ellipsis(data, start, end, last):  # type: ignore[no-untyped-def]
    dots = end - start >= 3 and data[end - 1] == _DOT and data[end - 2] == _DOT and data[end - 3] == _DOT
    return dots or last == _ELLIPSIS


@kernel
def _lines(  # type: ignore[no-untyped-def]
    data, characters, word_offsets, offsets, starts, ends, classes, entries, hashes, sizes, out
):
    generation = np.uint64(0)
    for t in range(len(characters)):
        lines, bullets, ellipses, terminals, short = 0, 0, 0, 0, 0
        for i in range(offsets[t], offsets[t + 1]):
            s, e, first, last = trimmed(data, starts[i], ends[i], classes)
            if s == e:
                continue
            hashes[lines], sizes[lines] = _hash(data, starts[i], ends[i])
            short += sizes[lines] <= SHORT_LINE
            bullets += first in (_HYPHEN, _BULLET)
            ellipses += ends_in_ellipsis(data, s, e, last)
            terminals += (classes[last] & TERMINAL) != 0
            lines += 1
        newlines, tokens = offsets[t + 1] - offsets[t] - 1, word_offsets[t + 1] - word_offsets[t]
        if tokens:
            out[10, t] = newlines / tokens
        if not lines:
            continue
        out[0, t], out[1, t], out[2, t] = lines, bullets / lines, ellipses / lines
        out[7, t], out[8, t] = terminals / lines, short / lines
        generation += ONE
        number, repeated = _repeated(hashes, sizes, lines, entries, generation)
        out[3, t], out[5, t] = number / lines, repeated / characters[t]
        out[9, t] = repeated / (characters[t] - newlines)
        paragraphs = _paragraphs(data, offsets[t], offsets[t + 1], starts, ends, classes, hashes, sizes)
        generation += ONE
        number, repeated = _repeated(hashes, sizes, paragraphs, entries, generation)
        out[4, t], out[6, t] = number / paragraphs, repeated / characters[t]
