"""MinHash signatures and band keys, from the words of a batch of texts.

Source: Broder 1997 (MinHash); the permutations are those of datasketch 2.0's scheme affine32: the 32-bit hash of a
shingle passes once through the finaliser of MurmurHash3, then permutation k maps h to a_k * h + b_k mod 2**32, a_k odd.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from text import ngram_hashes, tokenize
from text.buffers import Texts
from text.jit import inlined, kernel

EMPTY = np.uint32(2**32 - 1)
"""Each value of the signature of a text without words, as in datasketch."""

BLOCK = 256
"""Texts at a time: their words stay in the processor's cache, which saves a tenth of the time."""

_ALL = np.uint32(2**32 - 1)
_HALF = np.uint64(32)
_FMIX_A, _FMIX_B = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)  # the 32-bit finaliser of MurmurHash3
_S16, _S13 = np.uint32(16), np.uint32(13)
_KEY_SEED, _KEY_MULTIPLIER = np.uint64(0x452821E638D01377), np.uint64(0x9E3779B97F4A7C15)  # pi; golden ratio
_MIX_A, _MIX_B, _S33 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(33)


def signatures(texts: Texts, ngram: int = 5, permutations: int = 112, seed: int = 1) -> npt.NDArray[np.uint32]:
    """uint32[texts, permutations]: the MinHash signature of each text over its shingles of `ngram` words.

    Words are folded (case, Latin, Greek and Cyrillic diacritics) and symbols left out. A text of fewer words than
    `ngram` has one shingle, all of its words; a text without words has a signature of all ones.
    The share of equal values in two signatures estimates the Jaccard similarity of their shingle sets.
    """
    if not isinstance(texts, pa.Array | pa.ChunkedArray):
        texts = pa.array(texts, pa.large_string())
    out = np.empty((len(texts), permutations), np.uint32)
    for first in range(0, len(texts), BLOCK):
        part = texts.slice(first, BLOCK)
        shingles, offsets = ngram_hashes(*tokenize(part).words_only(), ngram)
        out[first : first + len(part)] = signatures_of(shingles, offsets, permutations, seed)
    return out


def signatures_of(
    shingles: npt.NDArray[np.uint64], offsets: npt.NDArray[np.int64], permutations: int, seed: int
) -> npt.NDArray[np.uint32]:
    """`signatures` of texts whose 64-bit shingle hashes are at hand: text i has shingles[offsets[i]:offsets[i + 1]]."""
    a, b = parameters(permutations, seed)
    out = np.empty((len(offsets) - 1, permutations), np.uint32)
    _sign(shingles, offsets, a, b, out)
    return out


def hashes32(shingles: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    """The 32-bit hash that a signature takes of each 64-bit shingle hash."""
    return (shingles ^ (shingles >> _HALF)).astype(np.uint32)


@lru_cache(maxsize=16)
def parameters(permutations: int, seed: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """(a, b), uint32[permutations] each, as datasketch draws them for this seed and count.

    numpy keeps the stream of RandomState as it is for good (NEP 19); a test holds the first values.
    """
    if permutations < 1:
        raise ValueError(f"a signature needs at least one permutation, not {permutations}")
    draw = np.random.RandomState(seed)
    a = draw.randint(0, 2**31, permutations, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    b = draw.randint(0, 2**32, permutations, dtype=np.uint32)
    return a, b


def band_keys(signature: npt.NDArray[np.uint32], bands: int, rows: int) -> npt.NDArray[np.int64]:
    """int64[n, bands]: a 64-bit hash of the `rows` values of each band; texts that agree in a band share its key."""
    if signature.shape[1] != bands * rows:
        raise ValueError(f"{bands} bands of {rows} rows need {bands * rows} permutations, not {signature.shape[1]}")
    out = np.empty((len(signature), bands), np.uint64)
    _band_keys(signature, rows, out)
    return out.view(np.int64)


@inlined
def _fmix32(h):  # type: ignore[no-untyped-def]
    h = np.uint32(h ^ (h >> _S16))
    h = np.uint32(h * _FMIX_A)
    h = np.uint32(h ^ (h >> _S13))
    h = np.uint32(h * _FMIX_B)
    return np.uint32(h ^ (h >> _S16))


@inlined
def _prepared(shingle):  # type: ignore[no-untyped-def]
    return _fmix32(np.uint32((shingle ^ (shingle >> _HALF)) & np.uint64(0xFFFFFFFF)))


@kernel
def _sign(shingles, offsets, a, b, out):  # type: ignore[no-untyped-def]
    # The inner loop runs over permutations, which lie side by side and so fill vector registers; four shingles a pass
    # read the parameters and the row of minima a quarter as often.
    permutations = len(a)
    for t in range(len(offsets) - 1):
        row = out[t]
        row[:] = _ALL
        at, end = offsets[t], offsets[t + 1]
        while at + 4 <= end:
            h0, h1 = _prepared(shingles[at]), _prepared(shingles[at + 1])
            h2, h3 = _prepared(shingles[at + 2]), _prepared(shingles[at + 3])
            for p in range(permutations):
                v0 = min(np.uint32(np.uint32(a[p] * h0) + b[p]), np.uint32(np.uint32(a[p] * h1) + b[p]))
                v1 = min(np.uint32(np.uint32(a[p] * h2) + b[p]), np.uint32(np.uint32(a[p] * h3) + b[p]))
                row[p] = min(row[p], min(v0, v1))  # noqa: PLW3301
            at += 4
        while at < end:
            h0 = _prepared(shingles[at])
            for p in range(permutations):
                row[p] = min(row[p], np.uint32(np.uint32(a[p] * h0) + b[p]))
            at += 1


@kernel
def _band_keys(signature, rows, out):  # type: ignore[no-untyped-def]
    for t in range(out.shape[0]):
        for band in range(out.shape[1]):
            key = _KEY_SEED + np.uint64(band)
            for row in range(band * rows, band * rows + rows):
                key = (key ^ np.uint64(signature[t, row])) * _KEY_MULTIPLIER
                key ^= key >> _HALF
            key = (key ^ (key >> _S33)) * _MIX_A
            key = (key ^ (key >> _S33)) * _MIX_B
            out[t, band] = key ^ (key >> _S33)
