"""Compiled kernels that tell IP addresses from version numbers, section numbers, times and names of classes."""

# ruff: noqa: PLR0917 - kernels take arrays by position; bundling them costs numba an unboxing a call

from __future__ import annotations

import numba
import numpy as np

from filters.redact_letters import alphanumeric, letter_at, letter_before
from filters.url_kernels import PRIME, SEED, contains, lower, mixed

_DOT, _HYPHEN, _COLON, _UNDERSCORE, _NEWLINE = 46, 45, 58, 95, 10
_LONGEST_WORD = 16
_GROUPS = 8
_NONE = (np.int64(-1), np.int64(-1))


@numba.njit(cache=True, nogil=True)
def _is_public_v4(a, b, c):  # type: ignore[no-untyped-def]
    """Not in IANA's registry of special addresses (RFC 6890), nor multicast or reserved."""
    if a in (0, 10, 127) or a >= 224:
        return False
    if (a == 100 and 64 <= b <= 127) or (a == 169 and b == 254) or (a == 172 and 16 <= b <= 31):
        return False
    if a == 192 and (b == 168 or (b == 0 and c in (0, 2))):
        return False
    return not ((a == 198 and (b in (18, 19) or (b == 51 and c == 100))) or (a == 203 and b == 0 and c == 113))


@numba.njit(cache=True, nogil=True)
def _quad(data, start, end):  # type: ignore[no-untyped-def]
    """0: not four numbers up to 255 without leading zeros; 1: an address for special use; 2: a public one."""
    octets = np.zeros(4, np.int64)
    part, digits = 0, 0
    for i in range(start, end):
        byte = data[i]
        if byte == _DOT:
            if digits == 0 or part == 3:
                return 0
            part, digits = part + 1, 0
        elif 48 <= byte <= 57 and digits < 3 and not (digits and octets[part] == 0):
            octets[part] = octets[part] * 10 + np.int64(byte) - 48
            digits += 1
        else:
            return 0
    if part != 3 or digits == 0 or octets.max() > 255:
        return 0
    return 2 if _is_public_v4(octets[0], octets[1], octets[2]) else 1


@numba.njit(cache=True, nogil=True)
def _names_a_number(data, floor, start, words):  # type: ignore[no-untyped-def]
    """Whether a word such as `version` or `section` stands before `start`."""
    at = start
    while at > floor and start - at < 3 and data[at - 1] in (32, 9, 10, _DOT, _COLON, 40, 61, 34):  # space . : ( = "
        at -= 1
    value = SEED
    end = at
    while at > floor and end - at < _LONGEST_WORD and 97 <= lower(data[at - 1]) <= 122:
        at -= 1
        value = (value ^ np.uint64(lower(data[at]))) * PRIME
    if at == end or (at > floor and alphanumeric(data[at - 1])):
        return False
    return contains(words, mixed(value))


@numba.njit(cache=True, nogil=True)
def _is_heading(data, begin, floor, start, stop, ceiling):  # type: ignore[no-untyped-def]
    """Whether `start:stop` is a section's number: small numbers at a line's start, then a dot or a capital and more."""
    run = 0
    for i in range(start, stop):
        run = run + 1 if data[i] != _DOT else 0
        if run == 3:
            return False
    at = start
    while at > floor and data[at - 1] in (32, 9, 35, 42):  # space, # and *
        at -= 1
    if at > floor:
        if data[at - 1] != _NEWLINE:
            return False
    elif floor > begin:
        return False
    dotted = stop < ceiling and data[stop] == _DOT
    after = stop + dotted
    while after < ceiling and data[after] in (32, 9):
        after += 1
    if after == stop + dotted or after == ceiling or data[after] == _NEWLINE:
        return False
    return dotted or 65 <= data[after] <= 90 or data[after] >= 0x80


@numba.njit(cache=True, nogil=True, inline="always")
def _in_token(byte):  # type: ignore[no-untyped-def]
    return alphanumeric(byte) or byte in (_DOT, _HYPHEN, _UNDERSCORE)


@numba.njit(cache=True, nogil=True)
def _quads(data, start, stop):  # type: ignore[no-untyped-def]
    """(start, end) of the first public address in a token that is one address, or two joined by a hyphen."""
    middle = start
    while middle < stop and data[middle] != _HYPHEN:
        middle += 1
    first = _quad(data, start, middle)
    second = _quad(data, middle + 1, stop) if middle < stop else 1
    if first == 0 or second == 0:
        return _NONE
    if first == 2:
        return start, middle
    return (middle + 1, stop) if second == 2 else _NONE


@numba.njit(cache=True, nogil=True)
def find_v4(data, begin, floor, ceiling, words):  # type: ignore[no-untyped-def]
    """(start, end) of the first public IPv4 address in data[floor:ceiling], (-1, -1) where there is none.

    It stands alone: a letter, digit, `_`, `.` or `-` beside it makes it part of a name or of a version.
    """
    at = floor
    while at < ceiling:
        if data[at] != _DOT:
            at += 1
            continue
        start = at
        while start > floor and _in_token(data[start - 1]):
            start -= 1
        stop = at
        while stop < ceiling and _in_token(data[stop]):
            stop += 1
        at = stop
        beside = letter_before(data, floor, start) >= 0 or letter_at(data, stop, ceiling)
        while stop > start and data[stop - 1] in (_DOT, _HYPHEN):
            stop -= 1
        while start < stop and data[start] == _HYPHEN:
            start += 1
        if beside or not 7 <= stop - start <= 31:
            continue
        first, last = _quads(data, start, stop)
        named = first >= 0 and _names_a_number(data, floor, start, words)
        if first >= 0 and not named and not _is_heading(data, begin, floor, start, stop, ceiling):
            return first, last
    return _NONE


@numba.njit(cache=True, nogil=True, inline="always")
def _hex(byte):  # type: ignore[no-untyped-def]
    if 48 <= byte <= 57:
        return np.int64(byte) - 48
    small = byte | np.uint8(32)
    return np.int64(small) - 87 if 97 <= small <= 102 else np.int64(-1)


@numba.njit(cache=True, nogil=True)
def _is_public_v6(first, second, groups):  # type: ignore[no-untyped-def]
    """Not for special use (RFC 6890). Of shortened addresses only global unicast in use, 2000::/3, counts: among
    `a::b` in text names of classes are more frequent than addresses.
    """
    if first < 0x200 or first >= 0xFC00:
        return False
    if first == 0x2001 and (second == 0xDB8 or second < 0x200):
        return False
    if first == 0x3FFF and second < 0x1000:
        return False
    return groups == _GROUPS or (0x2000 <= first < 0x4000 and groups >= 3)


@numba.njit(cache=True, nogil=True)
def _is_v6(data, start, end):  # type: ignore[no-untyped-def]
    groups, digits, value, gaps = 0, 0, np.int64(0), 0
    first, second, pairs = np.int64(0), np.int64(0), True
    for i in range(start, end + 1):
        if i < end and data[i] != _COLON:
            digit = _hex(data[i])
            digits += 1
            value = value * 16 + digit
            if digit < 0 or digits > 4:
                return False
            continue
        if digits:
            first, second = (value if groups == 0 else first), (value if groups == 1 else second)
            pairs &= digits == 2
            groups += 1
        elif i < end:
            gaps += 1
            if i == start or data[i - 1] != _COLON:
                return False  # a colon at the start
        else:
            return False  # `2001:db8::` is a prefix
        digits, value = 0, np.int64(0)
        if gaps > 1 or groups > _GROUPS:
            return False
    if gaps == 0 and (groups != _GROUPS or pairs):
        return False  # eight pairs are a hardware address
    if gaps == 1 and groups > _GROUPS - 1:
        return False
    return _is_public_v6(
        first, second if gaps == 0 or groups > 2 else np.int64(0x1000), _GROUPS if gaps == 0 else groups
    )


@numba.njit(cache=True, nogil=True)
def find_v6(data, floor, ceiling, end):  # type: ignore[no-untyped-def]
    """(start, end) of the first public IPv6 address in data[floor:ceiling]; `end` is that of the text.

    It stands alone, but for a name before it (`ip:2001:db8::1`), a port after its bracket, a prefix length or zone.
    """
    at = floor
    while at < ceiling:
        if data[at] != _COLON:
            at += 1
            continue
        start, stop, colons = at, at, 0
        while start > floor and (alphanumeric(data[start - 1]) or data[start - 1] == _UNDERSCORE):
            start -= 1
        while stop < ceiling and (alphanumeric(data[stop]) or data[stop] in (_COLON, _UNDERSCORE)):
            colons += data[stop] == _COLON
            stop += 1
        at = stop
        if colons < 3 or letter_at(data, stop, ceiling):
            continue
        if stop + 1 < ceiling and data[stop] == _DOT and alphanumeric(data[stop + 1]):
            continue
        for i in range(stop - 1, start - 1, -1):
            if data[i] != _COLON and _hex(data[i]) < 0:
                start = i + 2 if i + 1 < stop and data[i + 1] == _COLON else stop
                break
        else:
            if start > floor and (data[start - 1] == _DOT or letter_before(data, floor, start) >= 0):
                continue
        if stop - start > 1 and data[stop - 1] == _COLON and (stop == end or data[stop] <= 32):
            stop -= 1
        if _is_v6(data, start, stop):
            return start, stop
    return _NONE
