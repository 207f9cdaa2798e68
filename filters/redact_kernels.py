"""Compiled kernels that find e-mail and IP addresses in UTF-8 text and put placeholders in their place.

Each byte is looked at a bounded number of times: what can be part of an address is read left and right of an `@`, `:`
or `.` once, and an address has a greatest length. So 40 KB of `a.a.a.` take no longer than 40 KB of prose.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position; bundling them costs numba an unboxing a call

from __future__ import annotations

import numba
import numpy as np

from filters.redact_ip import find_v4, find_v6
from filters.redact_letters import alphanumeric, letter_before, spaced_letter
from filters.url_kernels import PRIME, SEED, contains, lower, mixed
from text.unicode import decode

_AT, _DOT, _HYPHEN, _COLON, _APOSTROPHE, _PLUS, _UNDERSCORE = 64, 46, 45, 58, 39, 43, 95
_LONGEST_LOCAL = 64  # RFC 5321, section 4.5.3.1
_LONGEST_DOMAIN = 253
_LONGEST_LABEL = 63

EMAIL = np.uint8(0)
IP_ADDRESS = np.uint8(1)


@numba.njit(cache=True, nogil=True)
def _local_start(data, floor, at):  # type: ignore[no-untyped-def]
    """Where the local part before the `@` at `at` starts; `at` where there is none."""
    start = at
    while start > floor and at - start < _LONGEST_LOCAL:
        byte = data[start - 1]
        if byte >= 0x80:
            letter = letter_before(data, floor, start)
            if letter < 0 or at - letter > _LONGEST_LOCAL:
                break
            start = letter
        elif alphanumeric(byte) or byte in (_DOT, _HYPHEN, _APOSTROPHE, _PLUS, _UNDERSCORE):
            if byte == _DOT and (start == at or data[start] == _DOT):
                break  # an address has no dot before the @ nor two in a row
            start -= 1
        else:
            break
    while start < at and data[start] in (_DOT, _HYPHEN, _APOSTROPHE, _PLUS):
        start += 1
    return start


@numba.njit(cache=True, nogil=True)
def _label_end(data, at, end):  # type: ignore[no-untyped-def]
    """(end of the label at `at`, end of its head): letters, digits and hyphens; the head is ASCII without hyphens."""
    stop = at
    head = -1
    while stop < end and stop - at <= _LONGEST_LABEL:
        byte = data[stop]
        if byte >= 0x80:
            point, size = decode(data, stop, end)
            if not spaced_letter(point):
                break
            if head < 0:
                head = stop
            stop += size
        elif alphanumeric(byte) or byte == _HYPHEN:
            if head < 0 and byte == _HYPHEN:
                head = stop
            stop += 1
        else:
            break
    return stop, stop if head < 0 else head


@numba.njit(cache=True, nogil=True)
def _is_tld(data, start, end, tlds):  # type: ignore[no-untyped-def]
    value = SEED
    for i in range(start, end):
        value = (value ^ np.uint64(lower(data[i]))) * PRIME
    return end - start >= 2 and contains(tlds, mixed(value))


@numba.njit(cache=True, nogil=True)
def _is_capitalised(data, start, end):  # type: ignore[no-untyped-def]
    return 65 <= data[start] <= 90 and end - start >= 2 and 97 <= data[start + 1] <= 122


@numba.njit(cache=True, nogil=True)
def _domain_end(data, start, end, tlds):  # type: ignore[no-untyped-def]
    """Where a domain ends: after the last label that is a top-level domain. `start` where there is none."""
    best = start
    at = start
    end = min(end, start + _LONGEST_DOMAIN)
    while at < end and data[at] != _HYPHEN:
        stop, head = _label_end(data, at, end)
        if stop == at or stop - at > _LONGEST_LABEL:
            break
        if at > start:
            # "x.com.In short" has a sentence after its address, though .in is India's.
            sentence = best > start and _is_capitalised(data, at, stop) and not _is_capitalised(data, start, best)
            if not sentence and _is_tld(data, at, stop, tlds):
                best = stop
            elif not sentence and head > at and _is_tld(data, at, head, tlds):
                best = head  # a dash or a word of another alphabet stands against the address
        if stop >= end or data[stop] != _DOT or data[stop - 1] == _HYPHEN:
            break
        at = stop + 1
    return best


@numba.njit(cache=True, nogil=True)
def _is_git(data, start, at, stop, end):  # type: ignore[no-untyped-def]
    # git@github.com:owner/name names a repository, not a person.
    return (
        at - start == 3
        and data[start] == 103 and data[start + 1] == 105 and data[start + 2] == 116
        and stop < end and data[stop] == _COLON
    )  # fmt: skip


@numba.njit(cache=True, nogil=True)
def _grown(array):  # type: ignore[no-untyped-def]
    longer = np.empty(2 * len(array), array.dtype)
    longer[: len(array)] = array
    return longer


@numba.njit(cache=True, nogil=True)
def _next_email(data, floor, end, tlds):  # type: ignore[no-untyped-def]
    """(start, end) of the first e-mail address in data[floor:end]; (-1, -1) where there is none."""
    for at in range(floor, end):
        if data[at] != _AT:
            continue
        start = _local_start(data, floor, at)
        if start < at:
            stop = _domain_end(data, at + 1, end, tlds)
            if stop > at + 1 and not _is_git(data, start, at, stop, end):
                return start, stop
    return np.int64(-1), np.int64(-1)


@numba.njit(cache=True, nogil=True)
def _emails(data, floor, end, tlds, starts, ends):  # type: ignore[no-untyped-def]
    """(number, starts, ends) of the e-mail addresses of one text; the arrays grow where they must.

    The bytes are scanned in another function, for numba counts references to arrays that a loop assigns: 70 ns a turn.
    """
    found = 0
    while True:
        start, stop = _next_email(data, floor, end, tlds)
        if start < 0:
            return found, starts, ends
        if found == len(starts):
            starts, ends = _grown(starts), _grown(ends)
        starts[found], ends[found] = start, stop
        found += 1
        floor = stop


@numba.njit(cache=True, nogil=True)
def _addresses(data, begin, floor, ceiling, end, words, found, starts, ends):  # type: ignore[no-untyped-def]
    """Append the IP addresses of data[floor:ceiling], in order: those of six first, then those of four between them."""
    first, stop = find_v6(data, floor, ceiling, end)
    while True:
        start, last = find_v4(data, begin, floor, first if first >= 0 else ceiling, words)
        if start < 0:
            if first < 0:
                return found, starts, ends
            start, last = first, stop
            first, stop = find_v6(data, stop, ceiling, end)
        if found == len(starts):
            starts, ends = _grown(starts), _grown(ends)
        starts[found], ends[found] = start, last
        found += 1
        floor = last


@numba.njit(cache=True, nogil=True)
def find(data, offsets, tlds, words, emails, addresses):  # type: ignore[no-untyped-def]
    """(text int64[m], start int64[m], end int64[m], kind uint8[m]): the spans in bytes, in order, none over another.

    tlds: sorted hashes of top-level domains. words: sorted hashes of the words before a number that is no address.
    """
    starts, ends = np.empty(64, np.int64), np.empty(64, np.int64)
    texts, kinds = np.empty(64, np.int64), np.empty(64, np.uint8)
    mail_starts, mail_ends = np.empty(64, np.int64), np.empty(64, np.int64)
    found = 0
    for text in range(len(offsets) - 1):
        begin, end = offsets[text], offsets[text + 1]
        mails = 0
        if emails:
            mails, mail_starts, mail_ends = _emails(data, begin, end, tlds, mail_starts, mail_ends)
        floor = begin
        for mail in range(mails + 1):
            # Hosts are sought between the e-mail addresses, as if these were replaced already: a second run finds no
            # more than the first.
            ceiling = mail_starts[mail] if mail < mails else end
            before = found
            if addresses:
                found, starts, ends = _addresses(data, begin, floor, ceiling, end, words, found, starts, ends)
            if mail < mails:
                if found == len(starts):
                    starts, ends = _grown(starts), _grown(ends)
                starts[found], ends[found] = ceiling, mail_ends[mail]
                found += 1
                floor = mail_ends[mail]
            while len(texts) < found:
                texts, kinds = _grown(texts), _grown(kinds)
            texts[before:found], kinds[before:found] = text, IP_ADDRESS
            if mail < mails:
                kinds[found - 1] = EMAIL
    return texts[:found].copy(), starts[:found].copy(), ends[:found].copy(), kinds[:found].copy()


@numba.njit(cache=True, nogil=True)
def replace(data, offsets, texts, starts, ends, kinds, email, address):  # type: ignore[no-untyped-def]
    """(data, offsets) with each span replaced by the placeholder of its kind."""
    size = np.int64(len(data))
    for i in range(len(starts)):
        size += (len(email) if kinds[i] == EMAIL else len(address)) - (ends[i] - starts[i])
    out = np.empty(size, np.uint8)
    out_offsets = np.zeros(len(offsets), np.int64)
    at, here, span = np.int64(0), np.int64(0), 0
    for text in range(len(offsets) - 1):
        while span < len(starts) and texts[span] == text:
            length = starts[span] - at
            out[here : here + length] = data[at : starts[span]]
            here += length
            mark = email if kinds[span] == EMAIL else address
            out[here : here + len(mark)] = mark
            here += len(mark)
            at = ends[span]
            span += 1
        length = offsets[text + 1] - at
        out[here : here + length] = data[at : offsets[text + 1]]
        here += length
        at = offsets[text + 1]
        out_offsets[text + 1] = here
    return out, out_offsets


@numba.njit(cache=True, nogil=True)
def characters(data, offsets, texts, starts, ends):  # type: ignore[no-untyped-def]
    """(starts, ends) of the spans in code points of their texts."""
    first, last = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    at, count, text = np.int64(0), np.int64(0), np.int64(-1)
    for i in range(len(starts)):
        if texts[i] != text:
            text = texts[i]
            at, count = offsets[text], np.int64(0)
        while at < starts[i]:
            count += (data[at] & 0xC0) != 0x80
            at += 1
        first[i] = count
        while at < ends[i]:
            count += (data[at] & 0xC0) != 0x80
            at += 1
        last[i] = count
    return first, last
