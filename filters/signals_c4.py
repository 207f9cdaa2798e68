"""Signals of the C4 rules: what of a text would survive them, without rewriting it.

C4 (Raffel et al. 2020, JMLR 21/140, section 2.2, and the list of its public code in tensorflow_datasets) drops lines
first and then judges the page by what is left. The lines are judged here in that order, so that the counts decide as
the rewritten page would: a line goes where it has a word of more than 1,000 characters, does not end in a sentence's
mark or quote (or ends in "..."), has fewer than 3 words, names javascript, or one of six policy phrases; a page goes
where "lorem ipsum" or "{" stands in a line that got so far. FineWeb keeps lines whatever their ending: `any_ending`.

Differs from datatrove's: white space that is left once citations are taken off an end is taken off too; of scripts
without spaces each character is a word; sentence marks of all scripts end a line and a sentence. Letters are compared
without regard to case in ASCII.
"""

# ruff: noqa: PLR0917 - kernels are given bare arrays.

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from filters.signals_lines import ends_in_ellipsis, trimmed
from text import Tokens, inlined, kernel
from text.unicode import TERMINAL, UNSPACED, WHITE, decode, tables

_MEANINGS = {
    "lines": "lines that the C4 rules keep",
    "sentences": "sentences in the lines that the C4 rules keep",
    "lorem_ipsum_lines": "lines with 'lorem ipsum' that the C4 rules would otherwise keep",
    "curly_bracket_lines": "lines with '{' that the C4 rules would otherwise keep",
}
C4 = {
    **{f"c4_{name}": meaning for name, meaning in _MEANINGS.items()},
    **{f"c4_any_ending_{name}": meaning + ", whatever ends a line" for name, meaning in _MEANINGS.items()},
}

LONGEST_WORD = 1000
FEWEST_WORDS = 3

# What a byte may begin: kinds of events, so that most bytes of a line cost one look.
_COUNTS, _SPACE, _WIDE, _PHRASE = 1, 2, 4, 8
_LOREM, _JAVASCRIPT, _POLICY, _CURLY = 1, 2, 4, 8
_QUOTES = (0x22, 0x27)
_CLOSERS = (0x22, 0x27, 0x29, 0x5D, 0x2019, 0x201D, 0xBB, 0x300D, 0x300F)  # " ' ) ] and those of other scripts
_OPEN, _CLOSE, _DOT, _CURLY_BRACKET = ord("["), ord("]"), ord("."), ord("{")
_EDIT, _NEEDED = b"[edit]", b"[citation needed]"


@cache
def _kinds() -> npt.NDArray[np.uint8]:
    kinds = np.array([_COUNTS if (byte & 0xC0) != 0x80 else 0 for byte in range(256)], np.uint8)
    for byte in range(128):
        kinds[byte] |= _SPACE if chr(byte).isspace() else 0
    # U+0085 and U+00A0 begin with C2; all other white space, and all scripts without spaces, with E0 or more.
    kinds[[0xC2, *range(0xE0, 0xF5)]] |= _WIDE
    # Each phrase is looked for at one of its rarer letters.
    kinds[[ord(c) for c in "jJkKvVpPfF{"]] |= _PHRASE
    return kinds


@cache
def _phrases() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Phrases in one buffer, and for each (rare letter, its place in the phrase, start, length, what it means)."""
    known = [
        ("lorem ipsum", 7, _LOREM),
        ("javascript", 0, _JAVASCRIPT),
        ("terms of use", 7, _POLICY),
        ("privacy policy", 3, _POLICY),
        ("cookie policy", 3, _POLICY),
        ("uses cookies", 8, _POLICY),
        ("use of cookies", 10, _POLICY),
        ("use cookies", 7, _POLICY),
    ]
    rows, start = [], 0
    for phrase, place, meaning in known:
        rows.append((ord(phrase[place]), place, start, len(phrase), meaning))
        start += len(phrase)
    return np.frombuffer("".join(p for p, _, _ in known).encode(), np.uint8), np.array(rows, np.int64)


def measure_c4(tokens: Tokens) -> npt.NDArray[np.float64]:
    """float64[len(C4), n]. Linear time."""
    out = np.zeros((len(C4), len(tokens)), np.float64)
    letters, phrases = _phrases()
    _c4(
        tokens.data, tokens.line_offsets, tokens.line_starts, tokens.line_ends, tables().classes, _kinds(),
        letters, phrases, out,
    )  # fmt: skip
    return out


@kernel
def _phrases_at(data, start, end, at, letters, phrases):  # type: ignore[no-untyped-def]
    """What the phrases mean that stand around the rare letter at `at`."""
    if data[at] == _CURLY_BRACKET:
        return _CURLY
    found = 0
    letter = data[at] | 0x20
    for p in range(len(phrases)):
        first = at - phrases[p, 1]
        size = phrases[p, 3]
        if phrases[p, 0] != letter or first < start or first + size > end:
            continue
        same = 0
        while same < size:
            byte = data[first + same]
            if (byte | 0x20 if 0x41 <= byte <= 0x5A else byte) != letters[phrases[p, 2] + same]:
                break
            same += 1
        if same == size:
            found |= phrases[p, 4]
    return found


@kernel
def _scan(data, start, end, classes, kinds, letters, phrases):  # type: ignore[no-untyped-def]
    """(words, longest word, what phrases mean) of a line."""
    points, since, words, longest, found = 0, 0, 0, 0, 0
    for at in range(start, end):
        kind = kinds[data[at]]
        points += kind & _COUNTS
        if kind <= _COUNTS:
            continue
        if kind & _PHRASE:
            found |= _phrases_at(data, start, end, at, letters, phrases)
            continue
        if kind & _WIDE:
            point, _ = decode(data, at, end)
            bits = classes[point]
            if not bits & (WHITE | UNSPACED):
                continue
            words += (bits & UNSPACED) != 0
        words += points - 1 > since
        longest = max(longest, points - 1 - since)
        since = points
    words += points > since
    return words, max(longest, points - since), found


@kernel
def _without_citations(data, start, end, classes):  # type: ignore[no-untyped-def]
    """Where the line ends once citations at its end, such as [12] or [edit], are taken off."""
    while end > start and data[end - 1] == _CLOSE:
        at = end - 2
        while at > start and 0x30 <= data[at] <= 0x39:
            at -= 1
        if not (at >= start and data[at] == _OPEN):
            at = _before(data, start, end, _EDIT)
            if at < 0:
                at = _before(data, start, end, _NEEDED)
            if at < 0:
                break
        _, end, _, _ = trimmed(data, start, at, classes)
    return end


@kernel
def _before(data, start, end, word):  # type: ignore[no-untyped-def]
    """Where `word` begins if the bytes up to `end` are it, else -1."""
    at = end - len(word)
    if at < start:
        return np.int64(-1)
    for k in range(len(word)):
        if data[at + k] != word[k]:
            return np.int64(-1)
    return np.int64(at)


@inlined
def _is_abbreviation(data, start, at):  # type: ignore[no-untyped-def]
    """Whether the full stop at `at` follows a lone letter, or a word that has a full stop inside: J. or e.g. or 3.1."""
    first = at
    while first > start and at - first < 12 and data[first - 1] > 0x20 and data[first - 1] != 0x28:
        first -= 1
    inside = False
    for b in range(first, at):
        inside |= data[b] == _DOT
    return inside or (at - first == 1 and (data[first] | 0x20) >= 0x61)


@kernel
def _sentences(data, start, end, classes):  # type: ignore[no-untyped-def]
    """Sentences in a line, at least 1. An ASCII mark ends one before white space or the line's end, others anywhere."""
    count, at, since = 0, start, start
    while at < end:
        point, step = decode(data, at, end)
        stop = at
        at += step
        if not classes[point] & TERMINAL:
            continue
        wide = point >= 0x80
        while at < end:
            point, step = decode(data, at, end)
            if not (classes[point] & TERMINAL or point in _CLOSERS):
                break
            wide |= classes[point] & TERMINAL and point >= 0x80
            at += step
        goes_on = not classes[point] & WHITE or (data[stop] == _DOT and _is_abbreviation(data, since, stop))
        if at < end and not wide and goes_on:
            continue
        count += 1
        since = at
    rest, _, _, _ = trimmed(data, since, end, classes)
    return max(count + (rest < end), 1)


@kernel
def _c4(data, offsets, starts, ends, classes, kinds, letters, phrases, out):  # type: ignore[no-untyped-def]
    for t in range(len(offsets) - 1):
        for i in range(offsets[t], offsets[t + 1]):
            s, e, _, _ = trimmed(data, starts[i], ends[i], classes)
            if s == e:
                continue
            words, longest, found = _scan(data, s, e, classes, kinds, letters, phrases)
            if words < FEWEST_WORDS or longest > LONGEST_WORD:
                continue
            e = _without_citations(data, s, e, classes)
            s, e, _, last = trimmed(data, s, e, classes)
            if s == e:
                continue
            closed = last in _QUOTES or (classes[last] & TERMINAL and not ends_in_ellipsis(data, s, e, last))
            sentences = 0
            if not found & (_JAVASCRIPT | _POLICY):
                sentences = _sentences(data, s, e, classes)
            for k in range(0 if closed else 4, 8, 4):
                out[k + 2, t] += (found & _LOREM) != 0
                out[k + 3, t] += (found & _CURLY) != 0 and not found & _JAVASCRIPT
                out[k, t] += sentences > 0
                out[k + 1, t] += sentences
