"""Which of two documents stays: the keep policy as one number, and the id as the tie-breaker."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from text import buffers_of
from text.jit import kernel

Keep = Literal["longest", "earliest", "latest", "first_id"]
"""longest: most characters. earliest, latest: by date, a document without one last. first_id: the smallest id."""

_TOP = np.uint64(1 << 63)
_FNV_BASIS, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # FNV-1a, 64 bits
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_S32, _S4 = np.uint64(32), np.uint64(4)


def worth(keep: Keep, characters: npt.NDArray[np.int64], dates: pa.Array) -> npt.NDArray[np.int64]:
    """int64[n], smallest first to keep. characters: int64[n]; dates: timestamp[us, UTC], null where unknown."""
    if keep == "longest":
        return -characters
    if keep == "first_id":
        return np.zeros(len(characters), np.int64)
    micros = dates.cast(pa.int64())
    if keep == "latest":
        micros = pc.negate(micros)
    found: npt.NDArray[np.int64] = pc.fill_null(micros, 2**63 - 1).to_numpy(zero_copy_only=False)
    return found


def ties(ids: pa.Array) -> npt.NDArray[np.int64]:
    """int64[n, 2] that sort, the first column first, as ids of 32 hex digits do; others are hashed first.

    Two columns of numbers instead of the id, because every sort and shuffle carries them.
    """
    data, offsets = buffers_of(ids)
    out = np.empty((len(ids), 2), np.uint64)
    _ties(data, offsets, out)
    return out.view(np.int64)


@kernel
def _ties(data, offsets, out):  # type: ignore[no-untyped-def]
    for t in range(len(out)):
        start, end = offsets[t], offsets[t + 1]
        value, other, hexadecimal = np.uint64(0), np.uint64(0), end - start == 32
        if hexadecimal:
            for at in range(start, end):
                if at == start + 16:
                    value, other = np.uint64(0), value
                byte = data[at]
                if 48 <= byte <= 57:
                    digit = byte - 48
                elif 97 <= byte <= 102:
                    digit = byte - 87
                else:
                    hexadecimal = False
                    break
                value = (value << _S4) | np.uint64(digit)
        if not hexadecimal:
            value = other = _FNV_BASIS
            for at in range(start, end):
                value = (value ^ np.uint64(data[at])) * _FNV_PRIME
                other = (other + np.uint64(data[at])) * _MIX
                other ^= other >> _S32
            value = (value ^ (value >> _S32)) * _MIX
            value ^= value >> _S32
        out[t, 0], out[t, 1] = other ^ _TOP, value ^ _TOP
