"""The scan for benchmark items: every window of words against a table, then the hits of a text against each item."""

from __future__ import annotations

import numba
import numpy as np

from text.jit import inlined, kernel

BASE = np.uint64(0xD6E8FEB86659FD93)
"""Of the polynomial over word hashes; odd, so that the first word counts as much as the last."""

LENGTH_SALT = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint64(0xC4CEB9FE1A85EC53)
_EMPTY = np.uint64(0)

# Flags of an item.
WHOLE = 1  # shorter than an n-gram: matched as one
ALONE = 2  # its words say enough without an answer
SYMBOLS = 4  # it holds digits or symbols, which have to agree for that
ENOUGH = 8  # with an answer near it its words do, other symbols between them or not


@kernel
def window_hashes(hashes, offsets, lengths, out):  # type: ignore[no-untyped-def]
    """out[t]: the hash of the first lengths[t] words from offsets[t] on."""
    for t in range(len(lengths)):
        h = np.uint64(0)
        for w in range(offsets[t], offsets[t] + lengths[t]):
            h = h * BASE + hashes[w]
        out[t] = h + np.uint64(lengths[t]) * LENGTH_SALT


@numba.njit(cache=True, nogil=True)
def build_table(keys, bits):  # type: ignore[no-untyped-def]
    """(slots uint64, numbers int32, bitmap uint64) of unique non-zero keys; the table has 2**bits places."""
    slots, numbers = np.zeros(1 << bits, np.uint64), np.zeros(1 << bits, np.int32)
    bitmap = np.zeros(max((1 << (bits + 3)) >> 6, 1), np.uint64)
    mask = np.uint64((1 << bits) - 1)
    for i in range(len(keys)):
        spread = keys[i] * _SPREAD
        at = (spread >> np.uint64(20)) & mask
        while slots[at] != _EMPTY:
            at = (at + np.uint64(1)) & mask
        slots[at], numbers[at] = keys[i], i
        bit = spread >> np.uint64(61 - bits)
        bitmap[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
    return slots, numbers, bitmap


@inlined
def _find(slots, numbers, bitmap, bits, key):  # type: ignore[no-untyped-def]
    spread = key * _SPREAD
    bit = spread >> np.uint64(61 - bits)
    if not (bitmap[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1):
        return -1
    mask = np.uint64((1 << bits) - 1)
    at = (spread >> np.uint64(20)) & mask
    while slots[at] != _EMPTY:
        if slots[at] == key:
            return numbers[at]
        at = (at + np.uint64(1)) & mask
    return -1


@numba.njit(cache=True, nogil=True, inline="always")
def _grown(array):  # type: ignore[no-untyped-def]
    larger = np.empty(2 * len(array), array.dtype)
    larger[: len(array)] = array
    return larger


@numba.njit(cache=True, nogil=True)
def hits(words, lengths, table, postings):  # type: ignore[no-untyped-def]
    """(item << 36 | word, position) of each window of the text that an item has; lengths: bool[n + 1]."""
    slots, numbers, bitmap, bits = table
    starts, items, positions = postings
    where, place = np.empty(64, np.int64), np.empty(64, np.int32)
    size, longest = 0, len(lengths) - 1
    for first in range(len(words)):
        h = np.uint64(0)
        for length in range(1, min(longest, len(words) - first) + 1):
            h = h * BASE + words[first + length - 1]
            if not lengths[length]:
                continue
            number = _find(slots, numbers, bitmap, bits, h + np.uint64(length) * LENGTH_SALT)
            if number < 0:
                continue
            for at in range(starts[number], starts[number + 1]):
                if size == len(where):
                    where, place = _grown(where), _grown(place)
                where[size], place[size] = (np.int64(items[at]) << 36) | first, positions[at]
                size += 1
    return where[:size], place[:size]


@kernel
def best_window(words_at, positions, ngram, length, counts):  # type: ignore[no-untyped-def]
    """(covered, first word, last word + 1): where in the text most of the item's words lie close together.

    words_at, positions: the item's hits, by word. The window spans at most twice the item and an n-gram; hits on its
    left whose words others cover too are let go. counts: int32[length] of zeros, left as zeros.
    """
    left, covered, most, start, end = 0, 0, 0, 0, 0
    for right in range(len(words_at)):
        while words_at[right] - words_at[left] > 2 * length + ngram:
            covered -= _take(counts, positions[left], ngram)
            left += 1
        for p in range(positions[right], positions[right] + ngram):
            covered += counts[p] == 0
            counts[p] += 1
        while left < right and _spare(counts, positions[left], ngram):
            _take(counts, positions[left], ngram)
            left += 1
        if covered > most:
            most, start, end = covered, words_at[left], words_at[right] + ngram
    while left < len(words_at):
        _take(counts, positions[left], ngram)
        left += 1
    return most, start, end


@inlined
def _take(counts, first, ngram):  # type: ignore[no-untyped-def]
    lost = 0
    for p in range(first, first + ngram):
        counts[p] -= 1
        lost += counts[p] == 0
    return lost


@inlined
def _spare(counts, first, ngram):  # type: ignore[no-untyped-def]
    spare = True
    for p in range(first, first + ngram):
        spare &= counts[p] > 1
    return spare


@kernel
def squeeze(data, start, end, out):  # type: ignore[no-untyped-def]
    """The bytes that say what stands between the words: ASCII in lower case, no white space, none of the marks that
    typesetting changes. Returns their number; `out` may be longer."""
    size, at = 0, start
    while at < end and size < len(out):
        byte = data[at]
        if byte == 0xE2 and at + 2 < end and data[at + 1] == 0x80 and 0x98 <= data[at + 2] <= 0x9F:
            at += 3  # curly quotes
            continue
        at += 1
        if byte <= 32 or byte in (33, 34, 36, 39, 44, 46, 58, 59, 63, 96):  # ! " $ ' , . : ; ? `
            continue
        out[size] = byte + 32 if 65 <= byte <= 90 else byte
        size += 1
    return size


@numba.njit(cache=True, nogil=True)
def same_symbols(data, start, end, pattern):  # type: ignore[no-untyped-def]
    """Whether data[start:end], squeezed, is the pattern."""
    out = np.empty(len(pattern) + 1, np.uint8)
    if squeeze(data, start, end, out) != len(pattern):
        return False
    same = True
    for i in range(len(pattern)):
        same &= out[i] == pattern[i]
    return same


@kernel
def answered(words, start, end, near, answer_words, answer_offsets, first, last, index):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Whether one of the answers first:last stands within `near` words of start:end, or `index` right after it."""
    if index != 0 and end < len(words) and words[end] == index:
        return True
    low, high = max(0, start - near), min(len(words), end + near)
    for answer in range(first, last):
        begin, size = answer_offsets[answer], answer_offsets[answer + 1] - answer_offsets[answer]
        if size == 0:
            continue
        for at in range(low, high - size + 1):
            if at + size > start and at < end:
                continue
            same = True
            for k in range(size):
                if words[at + k] != answer_words[begin + k]:
                    same = False
                    break
            if same:
                return True
    return False


@numba.njit(cache=True, nogil=True)
def matches(data, words, offsets, starts, ends, lengths, ngram, near, table, postings, items, answers):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """(row, item, score, first byte, last byte + 1) of each item that a text of the batch holds.

    words, offsets, starts, ends: the batch's words without symbols and where they are in data.
    items: (flags, sizes, weights, required, symbols, symbol_offsets); answers: (words, word_offsets, offsets, indices).
    """
    flags, sizes, weights, required, symbols, symbol_offsets = items
    answer_words, answer_offsets, item_answers, indices = answers
    rows, found, scores = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64)
    begins, stops = np.empty(64, np.int64), np.empty(64, np.int64)
    size, counts = 0, np.zeros(sizes.max() if len(sizes) else 1, np.int32)
    for t in range(len(offsets) - 1):
        base = offsets[t]
        mine = words[base : offsets[t + 1]]
        where, place = hits(mine, lengths, table, postings)
        order = np.argsort(where, kind="mergesort")
        first = 0
        while first < len(order):
            item, last = where[order[first]] >> 36, first
            while last < len(order) and where[order[last]] >> 36 == item:
                last += 1
            at = where[order[first:last]] & ((np.int64(1) << 36) - 1)
            score, start, end = 0.0, 0, 0
            told = (answer_words, answer_offsets, item_answers[item], item_answers[item + 1], indices[item])
            if flags[item] & WHOLE:
                pattern = symbols[symbol_offsets[item] : symbol_offsets[item + 1]]
                for w in at:
                    start, end = w, w + sizes[item]
                    exact = not flags[item] & SYMBOLS or same_symbols(
                        data, starts[base + start], ends[base + end - 1], pattern
                    )
                    if not exact and not flags[item] & ENOUGH:
                        continue
                    if (exact and flags[item] & ALONE) or answered(mine, start, end, near[item], *told):
                        score = 1.0
                        break
            else:
                covered, start, end = best_window(at, place[order[first:last]], ngram, sizes[item], counts)
                score = covered / weights[item]
                if not flags[item] & ALONE and not answered(mine, start, end, near[item], *told):
                    score = 0.0
            if score >= required[item]:
                if size == len(rows):
                    rows, found, scores = _grown(rows), _grown(found), _grown(scores)
                    begins, stops = _grown(begins), _grown(stops)
                rows[size], found[size], scores[size] = t, item, score
                begins[size], stops[size] = starts[base + start], ends[base + end - 1]
                size += 1
            first = last
    return rows[:size], found[:size], scores[:size], begins[:size], stops[:size]
