"""Compiled kernels of the url step: words and parts of words in URLs, and the look at a batch against all lists."""

# ruff: noqa: PLR0917 - kernels take arrays by position; bundling them costs numba an unboxing a call

from __future__ import annotations

import numba
import numpy as np

from filters.url_kernels import PERCENT, PRIME, SEED, authority, contains, host, lower, mixed, suffix, trim, url_hash

_SOFT_WORDS = 64  # distinct words remembered in one URL; no threshold is above


@numba.njit(cache=True, nogil=True)
def _hex(byte):  # type: ignore[no-untyped-def]
    byte = lower(byte)
    if 48 <= byte <= 57:
        return np.int64(byte) - 48
    return np.int64(byte) - 87 if 97 <= byte <= 102 else np.int64(-1)


@numba.njit(cache=True, nogil=True)
def plain(data, start, end, out):  # type: ignore[no-untyped-def]
    """Write data[start:end] percent-decoded and in small letters to `out`; how many bytes that is.

    Small: ASCII, and the capitals of Latin-1, Greek and Cyrillic, whose UTF-8 has two bytes.
    """
    size = 0
    at = start
    while at < end:
        byte = data[at]
        if byte == PERCENT and at + 2 < end:
            high, low = _hex(data[at + 1]), _hex(data[at + 2])
            if high >= 0 and low >= 0:
                byte = np.uint8(high * 16 + low)
                at += 2
        at += 1
        out[size] = lower(byte)
        size += 1
    for i in range(1, size):
        lead, trail = out[i - 1], out[i]
        latin = lead == 0xC3 and 0x80 <= trail <= 0x9E and trail != 0x97
        if latin or (lead == 0xD0 and 0x90 <= trail <= 0x9F) or (lead == 0xCE and 0x91 <= trail <= 0x9F):
            out[i] = trail + np.uint8(0x20)
        elif (lead == 0xD0 and 0xA0 <= trail <= 0xAF) or (lead == 0xCE and 0xA0 <= trail <= 0xA9):
            out[i - 1], out[i] = lead + np.uint8(1), trail - np.uint8(0x20)
        elif lead == 0xD0 and 0x80 <= trail <= 0x8F:
            out[i - 1], out[i] = np.uint8(0xD1), trail + np.uint8(0x10)
    return size


@numba.njit(cache=True, nogil=True, inline="always")
def in_word(byte):  # type: ignore[no-untyped-def]
    """ASCII letters (small) and digits, and all of a character beyond ASCII."""
    return 97 <= byte <= 122 or 48 <= byte <= 57 or byte >= 0x80


@numba.njit(cache=True, nogil=True)
def word_hash(out, start, end):  # type: ignore[no-untyped-def]
    value = SEED
    for i in range(start, end):
        value = (value ^ np.uint64(out[i])) * PRIME
    return mixed(value)


@numba.njit(cache=True, nogil=True)
def _words(out, size, words, soft_words, seen):  # type: ignore[no-untyped-def]
    """(hash of the first listed word or 0, number of distinct listed soft words) of a plain URL."""
    hit = np.uint64(0)
    soft = 0
    at = 0
    while at < size:
        while at < size and not in_word(out[at]):
            at += 1
        start = at
        while at < size and in_word(out[at]):
            at += 1
        if at == start:
            break
        value = word_hash(out, start, at)
        if hit == 0 and contains(words, value):
            hit = value
        if soft < len(seen) and contains(soft_words, value):
            new = True
            for i in range(soft):
                new &= seen[i] != value
            if new:
                seen[soft] = value
                soft += 1
    return hit, soft


@numba.njit(cache=True, nogil=True)
def find_subword(out, size, classes, moves, found):  # type: ignore[no-untyped-def]
    """Number of the first listed subword in a plain URL read without separators, or -1 (Aho-Corasick)."""
    state = np.int32(0)
    for i in range(size):
        if in_word(out[i]):
            state = moves[state, classes[out[i]]]
            if found[state] >= 0:
                return found[state]
    return np.int32(-1)


@numba.njit(cache=True, nogil=True)
def link(moves, found):  # type: ignore[no-untyped-def]
    """Turn a trie (0: no child) into an automaton in place: where a branch ends, go on from the longest suffix."""
    states, n_classes = moves.shape
    fallback = np.zeros(states, np.int32)
    queue = np.zeros(states, np.int32)
    head, tail = 0, 1
    while head < tail:
        state = queue[head]
        head += 1
        for letter in range(n_classes):
            child = moves[state, letter]
            onward = moves[fallback[state], letter] if state else np.int32(0)
            if child == 0:
                moves[state, letter] = onward
                continue
            fallback[child] = onward
            if found[child] < 0:
                found[child] = found[onward]
            queue[tail] = child
            tail += 1


@numba.njit(cache=True, nogil=True)
def look(data, begins, stops, domains, allowed, urls, words, soft_words, classes, moves, found):  # type: ignore[no-untyped-def]
    """What of each URL is on a list: (domain start int64[n], domain end int64[n], url bool[n], word uint64[n],
    soft words int32[n], subword int32[n]); -1, False or 0 where nothing is, or an allowed host covers the URL.
    """
    n = len(begins)
    starts, ends = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    listed = np.zeros(n, np.bool_)
    hits, softs, subwords = np.zeros(n, np.uint64), np.zeros(n, np.int32), np.full(n, -1, np.int32)
    longest = 0
    for i in range(n):
        longest = max(longest, stops[i] - begins[i])
    out = np.zeros(longest, np.uint8)
    seen = np.zeros(_SOFT_WORDS, np.uint64)
    for i in range(n):
        start, end = trim(data, begins[i], stops[i])
        if start == end:
            continue
        first, rest = authority(data, start, end)
        first, last = host(data, first, rest)
        if len(allowed) and suffix(data, first, last, allowed) >= 0:
            continue
        if len(domains):
            starts[i] = suffix(data, first, last, domains)
            ends[i] = last
        if len(urls):
            listed[i] = contains(urls, url_hash(data, first, last, rest, end))
        if len(words) or len(soft_words) or len(moves) > 1:
            size = plain(data, start, end, out)
            hits[i], softs[i] = _words(out, size, words, soft_words, seen)
            subwords[i] = find_subword(out, size, classes, moves, found)
    return starts, ends, listed, hits, softs, subwords
