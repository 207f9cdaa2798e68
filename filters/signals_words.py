"""Signals of the words of a text: lengths, symbols, stop words, repeated n-grams."""

# ruff: noqa: PLR0917 - kernels are given bare arrays.

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

import text
from text import Tokens, inlined, kernel

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
"""Rae et al. 2021 (Gopher), arXiv:2112.11446, appendix A.1.1."""

WORDS = {
    "characters": "code points of the text",
    "words": "words that hold a letter or a digit; in scripts without spaces, characters",
    "tokens": "words and symbols",
    "mean_word_characters": "mean length of the words",
    "hash_ratio": "'#' characters for each token",
    "ellipsis_ratio": "'...' and U+2026 for each token",
    "alpha_word_ratio": "share of the words that hold a letter",
    "alpha_token_ratio": "words that hold a letter, for each token: what datatrove calls the alphabetic share",
    "stop_words": "how many of the eight English stop words occur, in any case",
}
TOP_SIZES = (2, 3, 4)
DUPLICATE_SIZES = (5, 6, 7, 8, 9, 10)
NGRAMS = {
    **{
        f"top_{n}gram_character_ratio": f"characters of the most frequent {n}-gram, all of them, for each character; "
        "0 where none stands twice"
        for n in TOP_SIZES
    },
    **{
        f"duplicate_{n}gram_character_ratio": f"share of the characters in {n}-grams that stood before, left to right"
        for n in DUPLICATE_SIZES
    },
}

_HASH_SIGN, _DOT, _ELLIPSIS_LEAD = ord("#"), ord("."), 0xE2
_ELLIPSIS_TAIL = (0x80, 0xA6)
_HAS_LETTER, _SYMBOL = 1, 4  # Tokens.word_flags
_BASE = np.uint64(0xD6E8FEB86659FD93)
HALF, ONE, _COUNT = np.uint64(32), np.uint64(1), np.uint64(0xFFFFFFFF)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@cache
def _stop_hashes() -> npt.NDArray[np.uint64]:
    return text.tokenize([" ".join(STOP_WORDS)]).word_hashes


def measure_words(tokens: Tokens) -> npt.NDArray[np.float64]:
    """float64[len(WORDS), n]."""
    out = np.zeros((len(WORDS), len(tokens)), np.float64)
    _words(
        tokens.data, tokens.characters, tokens.word_offsets, tokens.word_starts, tokens.word_ends,
        tokens.word_hashes, tokens.word_characters, tokens.word_flags, _stop_hashes(), out,
    )  # fmt: skip
    return out


def measure_ngrams(tokens: Tokens) -> npt.NDArray[np.float64]:
    """float64[len(NGRAMS), n]. Linear time; memory for the longest text of the batch: 40 bytes a token and more."""
    out = np.zeros((len(NGRAMS), len(tokens)), np.float64)
    most = int(np.diff(tokens.word_offsets).max(initial=0))
    entries = table(most)
    grams, slots, runs = np.empty(most, np.uint64), np.empty(most, np.int32), np.empty(most + 1, np.int32)
    _ngrams(
        tokens.characters, tokens.word_offsets, tokens.word_hashes, tokens.word_characters,
        entries, grams, slots, runs, out,
    )  # fmt: skip
    return out


def table(items: int) -> npt.NDArray[np.uint64]:
    """Room for an open-addressed hash table: a row has the key, and generation << 32 | count. One look, one cache line.

    A new generation empties it.
    """
    return np.zeros((1 << max(4, (3 * items // 2).bit_length()), 2), np.uint64)


@inlined
def slot_of(entries, key, shift, generation):  # type: ignore[no-untyped-def]
    """Where `key` stands in this generation's table, or the free place where it may be put."""
    mask = (1 << (64 - shift)) - 1
    at = np.int64((key * _SPREAD) >> np.uint64(shift))
    while (entries[at, 1] >> HALF) == generation and entries[at, 0] != key:
        at = (at + 1) & mask
    return at


@inlined
def shift_for(items):  # type: ignore[no-untyped-def]
    """64 less the bits of the table that this text uses: a short text stays in the cache."""
    bits = 4
    while (1 << bits) <= 3 * items // 2:
        bits += 1
    return 64 - bits


@kernel
def _words(data, characters, offsets, starts, ends, hashes, lengths, flags, stops, out):  # type: ignore[no-untyped-def]
    for t in range(len(characters)):
        words, letters, total, signs, dots, seen = 0, 0, 0, 0, 0, 0
        for w in range(offsets[t], offsets[t + 1]):
            if flags[w] != _SYMBOL:
                words += 1
                total += lengths[w]
                letters += flags[w] & _HAS_LETTER
                if lengths[w] <= 4:
                    for k in range(len(stops)):
                        if hashes[w] == stops[k]:
                            seen |= 1 << k
            elif data[starts[w]] == _HASH_SIGN:
                for b in range(starts[w], ends[w]):
                    signs += data[b] == _HASH_SIGN
            elif data[starts[w]] == _DOT:
                dots += lengths[w] // 3
            elif data[starts[w]] == _ELLIPSIS_LEAD:
                for b in range(starts[w], ends[w] - 2):
                    if data[b + 1] == _ELLIPSIS_TAIL[0] and data[b + 2] == _ELLIPSIS_TAIL[1]:
                        dots += data[b] == _ELLIPSIS_LEAD
        tokens = offsets[t + 1] - offsets[t]
        out[0, t], out[1, t], out[2, t] = characters[t], words, tokens
        if words:
            out[3, t], out[6, t] = total / words, letters / words
        if tokens:
            out[4, t], out[5, t], out[7, t] = signs / tokens, dots / tokens, letters / tokens
        for k in range(len(stops)):
            out[8, t] += (seen >> k) & 1


@kernel
def _ngrams(characters, offsets, hashes, lengths, entries, grams, slots, runs, out):  # type: ignore[no-untyped-def]
    """`runs` first says whether the n-gram at a place is repeated, then how many repeated 4-grams follow one another.

    An n-gram can only be repeated where both of its (n - 1)-grams are, so from one size to the next ever fewer places
    are looked at; where no 4-gram stands twice nothing longer does.
    """
    generation = np.uint64(0)
    for t in range(len(characters)):
        first, m = offsets[t], offsets[t + 1] - offsets[t]
        shift = shift_for(m)
        repeated = True
        for i in range(m):
            grams[i], runs[i] = hashes[first + i], 1
        for n in (2, 3, 4):
            if repeated and m >= n:
                generation += ONE
                _count(first, m, n, hashes, entries, grams, slots, runs, shift, generation)
                best, place = _most_frequent(m, n, entries, slots, runs)
                repeated = best > ONE
                if repeated:
                    size = n - 1
                    for w in range(first + place, first + place + n):
                        size += lengths[w]
                    out[n - 2, t] = np.int64(best) * size / characters[t]
        if not repeated or m < 4:
            continue
        runs[m] = 0
        for i in range(m - 1, -1, -1):
            runs[i] = runs[i + 1] + 1 if runs[i] else 0
        for n in (5, 6, 7, 8, 9, 10):
            generation += ONE
            found = _repeats(first, m, n, hashes, lengths, entries, grams, runs, shift, generation)
            out[n - 2, t] = found / characters[t]


@kernel
def _count(first, m, n, hashes, entries, grams, slots, runs, shift, generation):  # type: ignore[no-untyped-def]
    for i in range(m - n + 1):
        slots[i] = -1
        if runs[i] and runs[i + 1]:
            grams[i] = grams[i] * _BASE + hashes[first + i + n - 1]
            at = slot_of(entries, grams[i], shift, generation)
            if (entries[at, 1] >> HALF) == generation:
                entries[at, 1] += ONE
            else:
                entries[at, 0], entries[at, 1] = grams[i], (generation << HALF) | ONE
            slots[i] = at


@kernel
def _most_frequent(m, n, entries, slots, runs):  # type: ignore[no-untyped-def]
    """(count, place) of the most frequent n-gram, of several the one that stands first; marks the repeated places."""
    best, place = np.uint64(0), 0
    for i in range(m):
        count = np.uint64(0)
        if i <= m - n and slots[i] >= 0:
            count = entries[slots[i], 1] & _COUNT
        runs[i] = count > ONE
        if count > best:
            best, place = count, i
    return best, place


@kernel
def _repeats(first, m, n, hashes, lengths, entries, grams, runs, shift, generation):  # type: ignore[no-untyped-def]
    """Characters of the n-grams that stood before, read from the left; a found one is passed over whole."""
    for i in range(m - n + 1):
        if runs[i] >= n - 3:
            grams[i] = grams[i] * _BASE + hashes[first + i + n - 1]
    i, total = 0, 0
    while i <= m - n:
        step = 1
        if runs[i] >= n - 3:
            at = slot_of(entries, grams[i], shift, generation)
            if (entries[at, 1] >> HALF) == generation:
                step = n
                for w in range(first + i, first + i + n):
                    total += lengths[w]
            else:
                entries[at, 0], entries[at, 1] = grams[i], generation << HALF
        i += step
    return total
