"""Compiled kernels of language identification: the classifier, and the count of scripts, over UTF-8 buffers."""

# ruff: noqa: PLR0917 - kernels take arrays by position; bundling them costs numba an unboxing a call

from __future__ import annotations

import numba
import numpy as np

from text.unicode import decode

_OFFSET = np.uint32(2166136261)
_PRIME = np.uint32(16777619)
_LESS = np.uint8(ord("<"))
_MORE = np.uint8(ord(">"))
_NO_ROW = np.uint16(0xFFFF)
_TINY = 1e-5  # fastText adds it inside each logarithm

_WINDOWS = 4

BUCKETS = 2_000_000
"""What fastText hashes n-grams into, unless told otherwise."""
_MAGIC, _SHIFT = np.uint64(2**51 // BUCKETS + 1), np.uint64(51)  # value * _MAGIC >> _SHIFT is value // BUCKETS

UPPER = np.uint8(1)
LOWER = np.uint8(2)

_KANA_SHARE = 10
"""One kana to nine Han letters makes a text Japanese; a Chinese one has a few at most."""


@numba.njit(cache=True, nogil=True, inline="always")
def _step(value, byte):  # type: ignore[no-untyped-def]
    # fastText widens bytes with their sign.
    wide = np.uint32(byte) if byte < 0x80 else np.uint32(byte) | np.uint32(0xFFFFFF00)
    return np.uint32((value ^ wide) * _PRIME)


@numba.njit(cache=True, nogil=True)
def _is_space(byte):  # type: ignore[no-untyped-def]
    return byte == 32 or 9 <= byte <= 13 or byte == 0


@numba.njit(cache=True, nogil=True)
def _space_bytes(data, at, end):  # type: ignore[no-untyped-def]
    """Bytes of the white space at `at`, 0 where none stands: ASCII's, and Unicode's, which fastText takes for letters.

    Generators of documentation join words by U+00A0, and a page of such words looks French to the model.
    """
    if at >= end:
        return 0
    byte = data[at]
    if byte < 0x80:
        return 1 if _is_space(byte) else 0
    if byte == 0xC2:
        return 2 if at + 1 < end and (data[at + 1] == 0xA0 or data[at + 1] == 0x85) else 0
    if at + 2 >= end:
        return 0
    second, third = data[at + 1], data[at + 2]
    if byte == 0xE2 and second == 0x80:  # U+2000 to U+200A, U+2028, U+2029, U+202F
        return 3 if 0x80 <= third <= 0x8A or 0xA8 <= third <= 0xA9 or third == 0xAF else 0
    if byte == 0xE3 and second == 0x80 and third == 0x80:  # U+3000
        return 3
    return 3 if byte == 0xE2 and second == 0x81 and third == 0x9F else 0  # U+205F


@numba.njit(cache=True, nogil=True)
def _word_row(data, start, end, slots, word_bytes, word_offsets):  # type: ignore[no-untyped-def]
    value = _OFFSET
    for i in range(start, end):
        value = _step(value, data[i])
    mask = np.int64(len(slots) - 1)
    slot = np.int64(value) & mask
    while slots[slot] >= 0:
        row = slots[slot]
        first, last = word_offsets[row], word_offsets[row + 1]
        if last - first == end - start:
            same = True
            for i in range(end - start):
                if word_bytes[first + i] != data[start + i]:
                    same = False
                    break
            if same:
                return np.int64(row)
        slot = (slot + 1) & mask
    return np.int64(-1)


@numba.njit(cache=True, nogil=True)
def _add(hidden, vector):  # type: ignore[no-untyped-def]
    for d in range(len(hidden)):
        hidden[d] += vector[d]


@numba.njit(cache=True, nogil=True)
def _add_ngrams(data, start, end, shortest, longest, words, buckets, vectors, hidden):  # type: ignore[no-untyped-def]
    """Add the vectors of the n-grams of <word>; how many there were."""
    found = 0
    for i in range(start - 1, end + 1):  # start - 1 and end stand for the marks before and after the word
        if start <= i < end and (data[i] & 0xC0) == 0x80:
            continue
        value = _OFFSET
        at = i
        n = 1
        while at <= end and n <= longest:
            byte = _LESS if at < start else (_MORE if at == end else data[at])
            value = _step(value, byte)
            at += 1
            while at < end and (data[at] & 0xC0) == 0x80 and at > start - 1:
                value = _step(value, data[at])
                at += 1
            if n >= shortest and not (n == 1 and (i == start - 1 or at == end + 1)):
                quotient = (np.uint64(value) * _MAGIC) >> _SHIFT
                row = buckets[np.int64(value) - np.int64(quotient) * BUCKETS]
                if row != _NO_ROW:
                    _add(hidden, vectors[words + np.int64(row)])
                    found += 1
            n += 1
    return found


@numba.njit(cache=True, nogil=True)
def _add_words(data, start, end, model, hidden):  # type: ignore[no-untyped-def]
    """Add the vectors of the words of data[start:end] and of their n-grams; how many there were."""
    slots, word_bytes, word_offsets, shortest, longest, buckets, vectors = model
    found = 0
    at = start
    while at < end:
        space = _space_bytes(data, at, end)
        while space > 0:
            at += space
            space = _space_bytes(data, at, end)
        first = at
        while at < end and (0x20 < data[at] < 0xC2 or _space_bytes(data, at, end) == 0):
            at += 1
        if at == first:
            break
        row = _word_row(data, first, at, slots, word_bytes, word_offsets)
        if row >= 0:
            _add(hidden, vectors[row])
            found += 1
        found += _add_ngrams(data, first, at, shortest, longest, len(word_offsets) - 1, buckets, vectors, hidden)
    return found


@numba.njit(cache=True, nogil=True)
def _cut(data, at, end):  # type: ignore[no-untyped-def]
    """The first white space at or after `at`, at most 64 bytes on; else the next character's start."""
    for i in range(at, min(at + 64, end)):
        if _is_space(data[i]):
            return i
    while at < end and (data[at] & 0xC0) == 0x80:
        at += 1
    return at


@numba.njit(cache=True, nogil=True)
def _add_text(data, start, end, sample_bytes, model, hidden):  # type: ignore[no-untyped-def]
    """Add a text's words: all of them, or those of _WINDOWS windows spread evenly over a long one."""
    if end - start <= sample_bytes:
        return _add_words(data, start, end, model, hidden)
    found = 0
    width = sample_bytes // _WINDOWS
    last = end - width
    for window in range(_WINDOWS):
        first = start if window == 0 else _cut(data, start + (last - start) * window // (_WINDOWS - 1), end)
        stop = end if window == _WINDOWS - 1 else _cut(data, first + width, end)
        found += _add_words(data, first, stop, model, hidden)
    return found


@numba.njit(cache=True, nogil=True)
def _insert(label, score, labels, scores):  # type: ignore[no-untyped-def]
    """Keep the best: sorted by score, then by label, so that no order of the walk shows."""
    at = len(labels) - 1
    if labels[at] >= 0 and (score < scores[at] or (score == scores[at] and label > labels[at])):
        return
    while at > 0 and (
        labels[at - 1] < 0 or score > scores[at - 1] or (score == scores[at - 1] and label < labels[at - 1])
    ):
        labels[at], scores[at] = labels[at - 1], scores[at - 1]
        at -= 1
    labels[at], scores[at] = label, score


@numba.njit(cache=True, nogil=True)
def _walk(hidden, left, right, output, stack, paths, labels, scores):  # type: ignore[no-untyped-def]
    """Fill in the likeliest labels and their log probabilities: down the tree, the heavier side first."""
    n_labels = len(left) + 1
    labels[:] = -1
    stack[0], paths[0] = 2 * n_labels - 2, np.float32(0.0)
    depth = 1
    while depth:
        depth -= 1
        node, score = stack[depth], paths[depth]
        if node < n_labels:
            _insert(node, score, labels, scores)
            continue
        if labels[-1] >= 0 and score < scores[-1]:
            continue  # fastText prunes here too; a step down adds at most 1e-5
        inner = node - n_labels
        total = np.float32(0.0)
        for d in range(len(hidden)):
            total += output[inner, d] * hidden[d]
        share = np.float64(np.float32(1.0 / (1.0 + np.exp(-np.float64(total)))))
        on_left = score + np.float32(np.log(1.0 - share + _TINY))
        on_right = score + np.float32(np.log(share + _TINY))
        light, heavy = (left[inner], right[inner]) if share > 0.5 else (right[inner], left[inner])
        stack[depth], paths[depth] = light, min(on_left, on_right)
        stack[depth + 1], paths[depth + 1] = heavy, max(on_left, on_right)
        depth += 2


@numba.njit(cache=True, nogil=True)
def predict(data, offsets, sample_bytes, top, model, end_row, left, right, output):  # type: ignore[no-untyped-def]
    """(labels int16[n, top], probabilities float64[n, top]), the likeliest first, of data[offsets[i]:offsets[i + 1]].

    White space of every kind, line feeds too, parts words. A text in which the model knows nothing has labels of -1.
    sample_bytes: a longer text is read in _WINDOWS windows that hold this much together. model: see Model.lookup.
    """
    vectors = model[6]
    n = len(offsets) - 1
    labels = np.full((n, top), -1, np.int16)
    shares = np.zeros((n, top), np.float64)
    hidden = np.zeros(vectors.shape[1], np.float32)
    stack, paths = np.zeros(2 * len(left) + 2, np.int64), np.zeros(2 * len(left) + 2, np.float32)
    best, scores = np.zeros(top, np.int64), np.zeros(top, np.float32)
    for i in range(n):
        hidden[:] = np.float32(0.0)
        found = _add_text(data, offsets[i], offsets[i + 1], sample_bytes, model, hidden)
        if end_row >= 0:
            _add(hidden, vectors[end_row])
            found += 1
        if found == 0:
            continue
        share = np.float32(1.0 / found)
        for d in range(len(hidden)):
            hidden[d] *= share
        _walk(hidden, left, right, output, stack, paths, best, scores)
        for rank in range(top):
            labels[i, rank] = best[rank]
            if best[rank] >= 0:
                shares[i, rank] = min(1.0, np.exp(np.float64(scores[rank])))
    return labels, shares


@numba.njit(cache=True, nogil=True)
def _dominant(counts, han, kana):  # type: ignore[no-untyped-def]
    """The script with the most letters; of equal ones the first. Han and kana together are Japanese."""
    if counts[kana] * _KANA_SHARE >= counts[kana] + counts[han]:
        counts[kana] += counts[han]
        counts[han] = 0
    best = 0
    for script in range(1, len(counts)):
        if counts[script] > counts[best]:
            best = script
    return best


@numba.njit(cache=True, nogil=True)
def measure_scripts(data, offsets, scripts, cases, n_scripts, latin, han, kana):  # type: ignore[no-untyped-def]
    """(script uint8[n], its letters int64[n], all letters int64[n], upper int64[n], lower int64[n]) of each text.

    script: the one with the most letters; 0 where the text has no letter.
    """
    n = len(offsets) - 1
    dominant = np.zeros(n, np.uint8)
    own, letters = np.zeros(n, np.int64), np.zeros(n, np.int64)
    upper, lower = np.zeros(n, np.int64), np.zeros(n, np.int64)
    counts = np.zeros(n_scripts, np.int64)
    for i in range(n):
        counts[:] = 0
        at, end = offsets[i], offsets[i + 1]
        capital, small = 0, 0
        while at < end:
            byte = data[at]
            if byte < 0x80:
                capital += 65 <= byte <= 90
                small += 97 <= byte <= 122
                at += 1
                continue
            point, size = decode(data, at, end)
            at += size
            script = scripts[point]
            if script:
                counts[script] += 1
                upper[i] += cases[point] == UPPER
                lower[i] += cases[point] == LOWER
        counts[latin] += capital + small
        upper[i] += capital
        lower[i] += small
        letters[i] = counts.sum()
        dominant[i] = _dominant(counts, han, kana)
        own[i] = counts[dominant[i]]
    return dominant, own, letters, upper, lower
