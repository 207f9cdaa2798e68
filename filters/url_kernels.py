"""Compiled kernels of the url step: where a URL's host stands, and what of it is on a list.

One reading of a URL serves lists and documents alike. Characters are bytes; hosts are ASCII here, for url_hosts has
turned the others into punycode.
"""

from __future__ import annotations

import numba
import numpy as np

SEED = np.uint64(0xCBF29CE484222325)  # FNV-1a, 64 bits
PRIME = np.uint64(0x100000001B3)
_MIX_A = np.uint64(0xFF51AFD7ED558CCD)  # the finaliser of MurmurHash3, for FNV's low bits are weak
_MIX_B = np.uint64(0xC4CEB9FE1A85EC53)
_THIRD = np.uint64(33)

_SLASH, _BACKSLASH, _COLON, _DOT, _AT, _HASH, _QUERY = 47, 92, 58, 46, 64, 35, 63
PERCENT, _OPEN, _CLOSE, _STAR = 37, 91, 93, 42


@numba.njit(cache=True, nogil=True, inline="always")
def lower(byte):  # type: ignore[no-untyped-def]
    return byte | np.uint8(32) if 65 <= byte <= 90 else byte


@numba.njit(cache=True, nogil=True, inline="always")
def mixed(value):  # type: ignore[no-untyped-def]
    value ^= value >> _THIRD
    value *= _MIX_A
    value ^= value >> _THIRD
    value *= _MIX_B
    return value ^ (value >> _THIRD)


@numba.njit(cache=True, nogil=True)
def contains(table, value):  # type: ignore[no-untyped-def]
    """Whether a sorted uint64 array holds the value."""
    low, high = 0, len(table)
    while low < high:
        middle = (low + high) >> 1
        if table[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low < len(table) and table[low] == value


@numba.njit(cache=True, nogil=True)
def trim(data, start, end):  # type: ignore[no-untyped-def]
    while start < end and data[start] <= 32:
        start += 1
    while end > start and data[end - 1] <= 32:
        end -= 1
    return start, end


@numba.njit(cache=True, nogil=True)
def _is_scheme(data, start, end):  # type: ignore[no-untyped-def]
    if start == end:
        return False
    for i in range(start, end):
        byte = lower(data[i])
        if not (97 <= byte <= 122 or (i > start and (48 <= byte <= 57 or byte in (43, 45, _DOT)))):
            return False
    return True


@numba.njit(cache=True, nogil=True)
def authority(data, start, end):  # type: ignore[no-untyped-def]
    """(first, last) of user, host and port: after `scheme://` or `//`, or from the start where there is neither."""
    at = start
    while at < end and data[at] not in (_COLON, _SLASH, _BACKSLASH, _QUERY, _HASH, _AT):
        at += 1
    first = start
    if at < end and data[at] == _COLON and _is_scheme(data, start, at):
        at += 1
    slashes = at + 1 < end and data[at] in (_SLASH, _BACKSLASH) and data[at + 1] in (_SLASH, _BACKSLASH)
    if slashes and (at == start or data[at - 1] == _COLON):
        first = at + 2
    last = first
    while last < end and data[last] not in (_SLASH, _BACKSLASH, _QUERY, _HASH):
        last += 1
    return first, last


@numba.njit(cache=True, nogil=True)
def host(data, first, last):  # type: ignore[no-untyped-def]
    """(first, last) of the host in an authority: without user, port, brackets, outer dots and a list's leading `*.`."""
    for i in range(last - 1, first - 1, -1):
        if data[i] == _AT:
            first = i + 1
            break
    if first < last and data[first] == _OPEN:
        for i in range(first, last):
            if data[i] == _CLOSE:
                return first + 1, i
    port = last
    while port > first and 48 <= data[port - 1] <= 57:
        port -= 1
    if port > first and data[port - 1] == _COLON:
        last = port - 1
    while last > first and data[last - 1] == _DOT:
        last -= 1
    if last - first > 1 and data[first] == _STAR and data[first + 1] == _DOT:
        first += 2
    while first < last and data[first] == _DOT:
        first += 1
    return first, last


@numba.njit(cache=True, nogil=True)
def suffix(data, first, last, table):  # type: ignore[no-untyped-def]
    """Where the shortest listed suffix of a host begins, at a label's start; -1 where none is listed."""
    value = SEED
    for i in range(last - 1, first - 1, -1):
        value = (value ^ np.uint64(lower(data[i]))) * PRIME
        if (i == first or data[i - 1] == _DOT) and contains(table, mixed(value)):
            return i
    return -1


@numba.njit(cache=True, nogil=True)
def url_hash(data, first, last, rest, end):  # type: ignore[no-untyped-def]
    """Hash of host and path and query: no scheme, user, port, fragment, or slash at the end."""
    value = SEED
    for i in range(first, last):
        value = (value ^ np.uint64(lower(data[i]))) * PRIME
    stop = rest
    while stop < end and data[stop] != _HASH:
        stop += 1
    while stop > rest and data[stop - 1] == _SLASH:
        stop -= 1
    for i in range(rest, stop):
        value = (value ^ np.uint64(data[i])) * PRIME
    return mixed(value)


@numba.njit(cache=True, nogil=True)
def host_hashes(data, starts, ends):  # type: ignore[no-untyped-def]
    """(uint64[n] hash of each entry's host as suffix reads it, bool[n] whether it is a host and nothing more)."""
    values = np.zeros(len(starts), np.uint64)
    good = np.zeros(len(starts), np.bool_)
    for n in range(len(starts)):
        first, rest = authority(data, starts[n], ends[n])
        first, last = host(data, first, rest)
        value = SEED
        for i in range(last - 1, first - 1, -1):
            value = (value ^ np.uint64(lower(data[i]))) * PRIME
        values[n] = mixed(value)
        good[n] = first < last and (rest == ends[n] or (rest + 1 == ends[n] and data[rest] == _SLASH))
    return values, good


@numba.njit(cache=True, nogil=True)
def url_hashes(data, starts, ends):  # type: ignore[no-untyped-def]
    """uint64[n]: hash of each entry's URL as `look` reads it."""
    values = np.zeros(len(starts), np.uint64)
    for n in range(len(starts)):
        first, rest = authority(data, starts[n], ends[n])
        first, last = host(data, first, rest)
        values[n] = url_hash(data, first, last, rest, ends[n])
    return values


@numba.njit(cache=True, nogil=True)
def odd_hosts(data, starts, ends):  # type: ignore[no-untyped-def]
    """bool[n]: whether the authority has a byte beyond ASCII or a percent sign, so that it is not plainly a host."""
    odd = np.zeros(len(starts), np.bool_)
    for n in range(len(odd)):
        start, end = trim(data, starts[n], ends[n])
        first, last = authority(data, start, end)
        for i in range(first, last):
            if data[i] >= 0x80 or data[i] == PERCENT:
                odd[n] = True
    return odd


@numba.njit(cache=True, nogil=True)
def entries(data):  # type: ignore[no-untyped-def]
    """(starts int64[n], ends int64[n], line numbers int64[n]) of a list's entries: lines, trimmed, without blank ones
    and those that begin with `#`. What follows white space and `#` is a comment too.
    """
    count = 1
    for byte in data:
        count += byte == 10
    starts, ends, lines = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    found, line, at = 0, 0, 0
    while at < len(data):
        stop = at
        while stop < len(data) and data[stop] != 10:
            stop += 1
        line += 1
        start, end = trim(data, at, stop)
        for i in range(start, end):
            if data[i] == _HASH and (i == start or data[i - 1] <= 32):
                start, end = trim(data, start, i)
                break
        if start < end:
            starts[found], ends[found], lines[found] = start, end, line
            found += 1
        at = stop + 1
    return starts[:found], ends[:found], lines[:found]


@numba.njit(cache=True, nogil=True)
def after_address(data, starts, ends):  # type: ignore[no-untyped-def]
    """Move each start past a hosts file's address: `0.0.0.0 bad.example` is bad.example."""
    for n in range(len(starts)):
        for i in range(starts[n], ends[n]):
            if data[i] <= 32:
                while data[i] <= 32:
                    i += 1
                starts[n] = i
                break
