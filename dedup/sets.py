"""Shingle sets: their hashes sorted and unique, and the exact Jaccard similarity of two of them.

"Exact" is over 64-bit hashes of shingles: two different shingles of one pair of texts collide once in about
2**64 / (size * size) pairs, one in 10**13 for texts of a thousand words.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from text.jit import kernel

_SEED_A, _SEED_B = np.uint64(0x13198A2E03707344), np.uint64(0xA4093822299F31D0)  # fraction of pi
_BY_A, _BY_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_S32, _S29 = np.uint64(32), np.uint64(29)


def unique_sorted(
    shingles: npt.NDArray[np.uint64], offsets: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """(values uint64[m], offsets int64[n + 1]): each text's shingle hashes, ascending, once each."""
    values, ends = shingles.copy(), np.zeros(len(offsets), np.int64)
    _unique_sorted(values, offsets, ends)
    return values[: ends[-1]].copy(), ends


def word_sequence_hash(hashes: npt.NDArray[np.uint64], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """int64[n, 2]: 128 bits of the sequence of words. Texts that share it have equal shingle sets for any n-gram."""
    out = np.empty((len(offsets) - 1, 2), np.uint64)
    _sequence_hash(hashes, offsets, out)
    return out.view(np.int64)


@numba.njit(cache=True, nogil=True)
def _unique_sorted(values, offsets, ends):  # type: ignore[no-untyped-def]
    at = 0
    for t in range(len(offsets) - 1):
        part = values[offsets[t] : offsets[t + 1]]
        part.sort()
        for i in range(len(part)):
            if i == 0 or part[i] != part[i - 1]:
                values[at] = part[i]
                at += 1
        ends[t + 1] = at


@kernel
def _sequence_hash(hashes, offsets, out):  # type: ignore[no-untyped-def]
    for t in range(len(offsets) - 1):
        a, b = _SEED_A, _SEED_B
        for w in range(offsets[t], offsets[t + 1]):
            a = (a ^ hashes[w]) * _BY_A
            a ^= a >> _S32
            b = (b + hashes[w]) * _BY_B
            b ^= b >> _S29
        out[t, 0], out[t, 1] = a, b ^ np.uint64(offsets[t + 1] - offsets[t])


@kernel
def jaccard(left, right, at_least):  # type: ignore[no-untyped-def]
    """Size of the intersection over size of the union; 0.0 where the sizes alone rule out `at_least`.

    One division of two integers, correctly rounded: 4 of 5 equals the setting 0.8 to the bit, so the boundary is in.
    """
    n, m = len(left), len(right)
    if n == 0 or m == 0 or min(n, m) / max(n, m) < at_least:
        return 0.0
    i, j, common = 0, 0, 0
    while i < n and j < m:
        x, y = left[i], right[j]
        common += x == y
        i += x <= y
        j += y <= x
    return common / (n + m - common)
