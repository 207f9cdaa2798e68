"""Encoding from memory: most pieces of a text were encoded before, so only new ones go to the library.

A text is cut where the pre-tokenizer (train.tokenise.bpe.PATTERN) must begin a new piece whatever stands around, so
the ids of the whole are the ids of its parts, one after another. Such places, judged from the bytes around them:

    behind a letter or digit, before an ASCII character of another kind            word|,   x|1   12|px   end|
    behind a symbol, before a digit                                                $|5
    behind symbols, before a letter, if the first of them cannot be that letter's  (|born   x +=|y
    behind any character but white space, before a blank or tab                    end.| Next
    before the last of several blanks or tabs, if no more white space follows           | return
    behind the last line end of white space                                        |The   |    return

The pre-tokenizers of other vocabularies are cut at fewer places (train.tokenise.cutting says which are which):

    WORDS   before a blank or tab, behind any character but white space; between a letter or digit and a line end
            behind it; behind a line end that stands alone between other characters, before a letter or digit
    MARKS   before the first of a run of U+2581

No alternative of the patterns reaches over such a place, and where one looks ahead (blanks that something other than
white space follows), it sees blanks or the end on both sides of the cut. Bytes outside ASCII are letters only in blocks
that hold nothing else; in doubt a text is not cut. Tests hold all this to the library's own answer.
"""

# ruff: noqa: PLR0917 - kernels are given bare arrays: an object of them costs reference counts in each call.

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from text import inlined, kernel

Ids = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int64]
Encode: TypeAlias = Callable[[list[str]], tuple[Ids, Offsets]]

OWN, WORDS, MARKS = range(3)
LETTER, DIGIT, SYMBOL, BLANK, LINE_END, CONTROL, HIGH = range(7)
PIECE_BYTES = 128  # longer pieces are encoded each time
LONG_PIECES = 1 << 12  # of one scan
AT, TEXT, ENTRIES, STORED, PIECES, LONG = range(6)  # of the state that a scan goes on from


def _kinds() -> npt.NDArray[np.uint8]:
    kinds = np.full(256, CONTROL, np.uint8)
    for byte in range(33, 127):
        character = chr(byte)
        kinds[byte] = LETTER if character.isalpha() else DIGIT if character.isdigit() else SYMBOL
    kinds[[ord(" "), ord("\t")]] = BLANK
    kinds[[ord("\n"), ord("\r")]] = LINE_END
    kinds[128:] = HIGH
    return kinds


KINDS = _kinds()


@inlined
def _is_white(data: Any, end: int) -> Any:
    """Whether the non-ASCII character that ends before `end` is white space, or was in an older Unicode."""
    last, second = data[end - 1], data[end - 2]
    third = data[end - 3] if end >= 3 else np.uint8(0)
    if second == 0xC2:
        return last in (0x85, 0xA0)
    if third == 0xE2:
        return (second == 0x80 and (last <= 0x8A or last in (0xA8, 0xA9, 0xAF))) or (second == 0x81 and last == 0x9F)
    if third == 0xE1:
        return (second == 0x9A and last == 0x80) or (second == 0xA0 and last == 0x8E)
    return third == 0xE3 and second == 0x80 and last == 0x80


@inlined
def _is_letter(data: Any, end: int) -> Any:
    """Whether the non-ASCII character before `end` is surely a letter: Latin U+00C0-027F, Cyrillic U+0400-047F."""
    last, second = data[end - 1], data[end - 2]
    return (second == 0xC3 and last not in (0x97, 0xB7)) or 0xC4 <= second <= 0xC9 or 0xD0 <= second <= 0xD1


@inlined
def _ends_symbols(data: Any, kinds: Any, first: int, at: int) -> Any:
    """Whether the symbols before `at` are a piece of their own, so that none of them leads the letter at `at`."""
    if at - 2 < first:
        return False
    if data[at - 2] == 0x20:
        return True
    if kinds[data[at - 2]] != SYMBOL:
        return False
    if at - 3 < first:
        return True
    return kinds[data[at - 3]] in (LETTER, DIGIT, LINE_END, BLANK)


@inlined
def _solid_after_blanks(data: Any, kinds: Any, at: int, end: int) -> Any:
    """Whether only blanks lie between `at` and an ASCII letter, digit or symbol of the same text."""
    while at < end and kinds[data[at]] == BLANK:
        at += 1
    return at < end and kinds[data[at]] <= SYMBOL


@inlined
def _cut(data: Any, kinds: Any, first: int, at: int, end: int) -> Any:
    """Whether a piece must begin at byte `at` of the text data[first:end], first < at < end."""
    before, here = kinds[data[at - 1]], kinds[data[at]]
    if here == HIGH:
        return False
    if before == HIGH:
        return (here != LETTER and _is_letter(data, at)) or (here == BLANK and not _is_white(data, at))
    if before in (LETTER, DIGIT):
        return here != before
    if before == SYMBOL:
        return here in (DIGIT, BLANK) or (here == LETTER and _ends_symbols(data, kinds, first, at))
    if before == BLANK:
        return here == BLANK and at + 1 < end and kinds[data[at + 1]] <= SYMBOL
    if before == LINE_END:
        return here <= SYMBOL or (here == BLANK and _solid_after_blanks(data, kinds, at, end))
    return False


@inlined
def _cut_words(data: Any, kinds: Any, first: Any, at: Any) -> Any:
    before, here = kinds[data[at - 1]], kinds[data[at]]
    if here == BLANK:
        return before <= SYMBOL or (before == HIGH and not _is_white(data, at))
    if here == LINE_END:
        return before in (LETTER, DIGIT) or (before == HIGH and _is_letter(data, at))
    return before == LINE_END and here in (LETTER, DIGIT) and at - 2 >= first and kinds[data[at - 2]] <= SYMBOL


@inlined
def _cut_marks(data: Any, first: Any, at: Any) -> Any:
    if data[at] != 0xE2 or data[at + 1] != 0x96 or data[at + 2] != 0x81:
        return False
    return at - 3 < first or data[at - 1] != 0x81 or data[at - 2] != 0x96 or data[at - 3] != 0xE2


@inlined
def _may_cut(rule: Any, data: Any, kinds: Any, first: Any, at: Any, end: Any) -> Any:
    if rule == OWN:
        return _cut(data, kinds, first, at, end)
    if rule == WORDS:
        return _cut_words(data, kinds, first, at)
    return _cut_marks(data, first, at)


@kernel
def _scan(
    rule: Any, data: Any, offsets: Any, kinds: Any, state: Any, found: Any, texts: Any,
    table: Any, hashes: Any, stored_at: Any, stored_bytes: Any, store: Any, new: Any, long: Any,
) -> None:  # fmt: skip
    """Cut on from `state`: found[k] is the entry of piece k and texts[k] its text, until the texts or some room end.

    new[e - first new entry] and long[k] are the (start, end) of pieces that the caller has to encode.
    """
    at, text, entries, stored = state[AT], state[TEXT], state[ENTRIES], state[STORED]
    pieces, longs, first = 0, 0, entries
    mask = np.uint64(len(table) - 1)
    while text < len(offsets) - 1:
        end = offsets[text + 1]
        if at == end:
            text += 1
            continue
        if pieces == len(found) or longs == len(long) or entries == len(hashes) or stored + PIECE_BYTES > len(store):
            break
        start = at
        value = np.uint64(0xCBF29CE484222325)
        while True:
            value = (value ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
            at += 1
            if at == end or _may_cut(rule, data, kinds, offsets[text], at, end):
                break
        size = at - start
        texts[pieces] = text
        if size > PIECE_BYTES:
            long[longs, 0], long[longs, 1] = start, at
            found[pieces] = len(hashes) + longs
            longs += 1
            pieces += 1
            continue
        slot = (value ^ (value >> np.uint64(29))) & mask
        entry = table[slot]
        while entry >= 0:
            if hashes[entry] == value and stored_bytes[entry] == size:
                same = True
                for i in range(size):
                    if store[stored_at[entry] + i] != data[start + i]:
                        same = False
                        break
                if same:
                    break
            slot = (slot + np.uint64(1)) & mask
            entry = table[slot]
        if entry < 0:
            entry = entries
            table[slot] = entry
            hashes[entry], stored_at[entry], stored_bytes[entry] = value, stored, size
            for i in range(size):
                store[stored + i] = data[start + i]
            stored += size
            new[entry - first, 0], new[entry - first, 1] = start, at
            entries += 1
        found[pieces] = entry
        pieces += 1
    state[AT], state[TEXT], state[ENTRIES], state[STORED] = at, text, entries, stored
    state[PIECES], state[LONG] = pieces, longs


@kernel
def _count(found: Any, texts: Any, lengths: Any, counts: Any) -> int:
    """Add the ids of each piece to its text's count; all of them together."""
    total = 0
    for k in range(len(found)):
        counts[texts[k]] += lengths[found[k]]
        total += lengths[found[k]]
    return total


@kernel
def _gather(found: Any, starts: Any, lengths: Any, ids: Any, out: Any) -> None:
    to = 0
    for k in range(len(found)):
        start = starts[found[k]]
        for i in range(lengths[found[k]]):
            out[to] = ids[start + i]
            to += 1


class PieceEncoder:
    """Encodes texts by `encode` (strings -> ids of all, offsets), a distinct short piece once while it is remembered.

    About 90 MB when full, whatever the texts. Not for several threads at once.
    """

    def __init__(
        self,
        encode: Encode,
        *,
        rule: int = OWN,
        entries: int = 1 << 20,
        stored_bytes: int = 32 << 20,
        scan_pieces: int = 1 << 20,
    ) -> None:
        """rule: where texts are cut.

        entries, stored_bytes: pieces to remember, and their bytes; past either all are forgotten and learnt anew.
        """
        self._encode = encode
        self._rule = rule
        self._table = np.empty(1 << (2 * entries - 1).bit_length(), np.int32)  # half empty: a free slot is near
        self._hashes = np.empty(entries, np.uint64)
        self._stored_at = np.empty(entries, np.int32)
        self._stored_bytes = np.empty(entries, np.uint8)
        self._store = np.empty(stored_bytes, np.uint8)
        self._starts = np.empty(entries + LONG_PIECES, np.int64)
        self._lengths = np.empty(entries + LONG_PIECES, np.int32)
        self._ids = np.empty(1 << 16, np.uint32)
        self._found = np.empty(scan_pieces, np.int32)
        self._texts = np.empty(scan_pieces, np.int64)
        self._new = np.empty((entries, 2), np.int64)
        self._long = np.empty((LONG_PIECES, 2), np.int64)
        self._forget()

    def _forget(self) -> None:
        self._table.fill(-1)
        self._entries = self._stored = self._used = 0

    def __call__(self, data: npt.NDArray[np.uint8], offsets: Offsets) -> tuple[Ids, Offsets]:
        """(ids of all texts, n + 1 offsets) of n texts as text.buffers_of gives them."""
        counts = np.zeros(len(offsets) - 1, np.int64)
        made: list[Ids] = []
        state = np.zeros(6, np.int64)
        while state[TEXT] < len(counts):
            if self._entries == len(self._hashes) or self._stored + PIECE_BYTES > len(self._store):
                self._forget()
            state[ENTRIES], state[STORED] = self._entries, self._stored
            _scan(
                self._rule, data, offsets, KINDS, state, self._found, self._texts, self._table, self._hashes,
                self._stored_at, self._stored_bytes, self._store, self._new, self._long,
            )  # fmt: skip
            new, long = int(state[ENTRIES]) - self._entries, int(state[LONG])
            self._learn(data, self._new[:new], self._entries)
            self._entries, self._stored, keep = int(state[ENTRIES]), int(state[STORED]), self._used
            self._learn(data, self._long[:long], len(self._hashes))
            found, texts = self._found[: state[PIECES]], self._texts[: state[PIECES]]
            out = np.empty(_count(found, texts, self._lengths, counts), np.uint32)
            _gather(found, self._starts, self._lengths, self._ids, out)
            made.append(out)
            self._used = keep
        ends = np.zeros(len(offsets), np.int64)
        np.cumsum(counts, out=ends[1:])
        return np.concatenate(made) if made else np.zeros(0, np.uint32), ends

    def _learn(self, data: npt.NDArray[np.uint8], spans: npt.NDArray[np.int64], entry: int) -> None:
        """Encode the pieces at `spans` and keep their ids as entries from `entry` on."""
        if len(spans) == 0:
            return
        view = data.data
        ids, offsets = self._encode([str(view[start:end], "utf-8") for start, end in spans.tolist()])
        if self._used + len(ids) > len(self._ids):
            self._ids = np.concatenate([self._ids, np.empty(max(len(self._ids), len(ids)), np.uint32)])
        self._ids[self._used : self._used + len(ids)] = ids
        self._starts[entry : entry + len(spans)] = offsets[:-1] + self._used
        self._lengths[entry : entry + len(spans)] = np.diff(offsets)
        self._used += len(ids)
