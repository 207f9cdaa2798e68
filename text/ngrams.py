"""Rolling hashes of n-grams of words."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from text.jit import kernel
from text.words import finish

_BASE = np.uint64(0xD6E8FEB86659FD93)  # odd; of the "rrmxmx" family of mixers


def ngram_hashes(
    hashes: npt.NDArray[np.uint64], offsets: npt.NDArray[np.int64], n: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """(uint64[m], int64[texts + 1]): one hash for each n consecutive words of a text, in order, repeats included.

    A text of fewer than n words, but not none, gives one hash of all its words; no words give none.
    Raises ValueError where n < 1.
    """
    if n < 1:
        raise ValueError(f"n-grams need n >= 1, not {n}")
    counts = np.diff(offsets)
    ends = np.zeros(len(offsets), np.int64)
    np.cumsum(np.where(counts == 0, 0, np.maximum(counts - n + 1, 1)), out=ends[1:])
    out = np.empty(int(ends[-1]), np.uint64)
    _ngrams(hashes, offsets, n, out, ends)
    return out, ends


@kernel
def _ngrams(hashes, offsets, n, out, ends):  # type: ignore[no-untyped-def]
    leaving = np.uint64(1)
    for _ in range(n):
        leaving *= _BASE
    for t in range(len(offsets) - 1):
        first, last, at = offsets[t], offsets[t + 1], ends[t]
        h = np.uint64(0)
        for w in range(first, min(first + n, last)):
            h = h * _BASE + hashes[w]
        if first < last:
            out[at] = finish(h)
        for w in range(first + n, last):
            h = h * _BASE + hashes[w] - leaving * hashes[w - n]
            at += 1
            out[at] = finish(h)
