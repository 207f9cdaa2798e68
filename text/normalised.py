"""A 128-bit hash of a text that does not see how its white space was laid out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from text.buffers import Texts, buffers_of
from text.jit import inlined, kernel
from text.unicode import WHITE, decode, tables
from text.words import finish

# Multipliers and rotations as in MurmurHash3's 128-bit form for 64-bit machines; one 8-byte lane after the other.
_A, _B = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_SEED_LOW, _SEED_HIGH = np.uint64(0x13198A2E03707344), np.uint64(0xA4093822299F31D0)  # fraction of pi
_FIVE, _ADD_LOW, _ADD_HIGH = np.uint64(5), np.uint64(0x52DCE729), np.uint64(0x38495AB5)
_ONE_BYTE, _FULL = np.uint64(8), np.uint64(64)
_SPACE = np.uint64(32)


def normalised_hash(texts: Texts) -> npt.NDArray[np.int64]:
    """int64[n, 2]: a 128-bit hash of each text with runs of white space taken as one space and the ends trimmed."""
    data, offsets = buffers_of(texts)
    out = np.empty((len(offsets) - 1, 2), np.uint64)
    _hash_texts(data, offsets, tables().classes, out)
    return out.view(np.int64)


@inlined
def _rotate(x, by):  # type: ignore[no-untyped-def]
    return (x << np.uint64(by)) | (x >> (_FULL - np.uint64(by)))


@inlined
def _absorb(low, high, lane):  # type: ignore[no-untyped-def]
    """Eight bytes more. Low and high change places, so that each lane reaches both."""
    low ^= _rotate(lane * _A, 31) * _B
    low = (_rotate(low, 27) + high) * _FIVE + _ADD_LOW
    high ^= _rotate(lane * _B, 33) * _A
    high = (_rotate(high, 31) + low) * _FIVE + _ADD_HIGH
    return low, high


@kernel
def _hash_texts(data, offsets, classes, out):  # type: ignore[no-untyped-def]
    for t in range(len(offsets) - 1):
        low, high, lane, filled, size = _SEED_LOW, _SEED_HIGH, np.uint64(0), 0, np.uint64(0)
        at, end, gap = offsets[t], offsets[t + 1], 0
        while at < end:
            step = 1
            if data[at] < 0x80:
                white = classes[data[at]] & WHITE
            else:
                point, step = decode(data, at, end)
                white = classes[point] & WHITE
            if white:
                gap = 1 if size > 0 else 0
                at += step
                continue
            first = at - 1 if gap else at
            for b in range(first, at + step):
                value = _SPACE if b < at else np.uint64(data[b])
                lane |= value << (np.uint64(filled) * _ONE_BYTE)
                filled += 1
                size += np.uint64(1)
                if filled == 8:
                    low, high = _absorb(low, high, lane)
                    lane, filled = np.uint64(0), 0
            gap = 0
            at += step
        low, high = _absorb(low, high, lane)
        low, high = low ^ size, high ^ size
        low += high
        high += low
        low, high = finish(low), finish(high)
        out[t, 0], out[t, 1] = low + high, low + high + high
