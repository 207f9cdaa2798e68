"""What belongs to a word, for the kernels that find addresses."""

from __future__ import annotations

import numba
import numpy as np

from text.unicode import decode


@numba.njit(cache=True, nogil=True, inline="always")
def alphanumeric(byte):  # type: ignore[no-untyped-def]
    """ASCII letters and digits."""
    return 48 <= byte <= 57 or 97 <= (byte | np.uint8(32)) <= 122


@numba.njit(cache=True, nogil=True)
def spaced_letter(point):  # type: ignore[no-untyped-def]
    """Whether a character beyond ASCII is a letter of an alphabet written with spaces between words: Latin, Greek,
    Cyrillic, Armenian, Hebrew, Arabic and the scripts of India. Of other scripts nobody can tell where an address ends.
    """
    if point < 0x370:
        return 0xC0 <= point < 0x250 and point not in (0xD7, 0xF7)
    if point < 0x588:
        return point not in (0x375, 0x37E, 0x387) and not 0x559 <= point <= 0x55F
    if point < 0x900:
        return 0x5D0 <= point <= 0x5EA or 0x620 <= point <= 0x64A or 0x66E <= point <= 0x6D3
    return point < 0xE00 and point not in (0x964, 0x965, 0x970)


@numba.njit(cache=True, nogil=True)
def letter_before(data, floor, at):  # type: ignore[no-untyped-def]
    """Start of the spaced letter beyond ASCII that ends at `at`; -1 where there is none."""
    start = at - 1
    while start > floor and at - start < 4 and (data[start] & 0xC0) == 0x80:
        start -= 1
    if start < floor or data[start] < 0xC0:
        return -1
    point, size = decode(data, start, at)
    return start if start + size == at and spaced_letter(point) else -1


@numba.njit(cache=True, nogil=True)
def letter_at(data, at, end):  # type: ignore[no-untyped-def]
    """Whether a spaced letter beyond ASCII starts at `at`."""
    if at >= end or data[at] < 0x80:
        return False
    point, _ = decode(data, at, end)
    return spaced_letter(point)
