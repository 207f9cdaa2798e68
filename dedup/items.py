"""Benchmark items made ready for the scan: which windows of words stand for an item, and what else must be there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup.benchmarks import Item
from dedup.rules import Rules
from dedup.scan import ALONE, ENOUGH, SYMBOLS, WHOLE, build_table, hits, squeeze, window_hashes
from text import Tokens, tokenize
from text.words import HAS_DIGIT, SYMBOL

Ints = npt.NDArray[np.int64]

EXACT_WORDS = 16
LOOSE_WORDS = 50
"""Up to EXACT_WORDS every word of an item must be found; from LOOSE_WORDS on the share `min_score`; linear between.
The idea is that of decon (OLMo 3), whose bounds are 25 and 50 tokens. In 25 MB of clean English text no item of 16
shared benchmarks reached a third of its words and this bound: the nearest, 12 of 15 words, was 33 points away."""

TELLING_BYTES = 8
"""Of a prompt of digits and symbols, so many bytes make it telling: "(1+i)^10" has 7, "evaluate\\log_21" 15."""

COMMON_PROMPTS = 3
"""A short prompt that so many others contain ("which of the following is true") tells nothing by itself."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Arrays for `scan.matches`, with one entry an item where not said otherwise.

    keys: uint64, the unique hashes of windows; postings: (starts, items, positions) by key; lengths: bool[ngram + 1],
    which window lengths occur; shapes: (flags, sizes, weights, required, symbols, symbol_offsets); answers: (words,
    word_offsets, offsets, indices); unusable: numbers of items that cannot be found.
    """

    keys: npt.NDArray[np.uint64]
    postings: tuple[Ints, npt.NDArray[np.int32], npt.NDArray[np.int32]]
    lengths: npt.NDArray[np.bool_]
    near: Ints
    shapes: tuple[Any, ...]
    required: npt.NDArray[np.float64]
    answers: tuple[Any, ...]
    unusable: Ints


def prepare(items: Sequence[Item], rules: Rules) -> Prepared:
    tokens = tokenize([item.prompt for item in items])
    hashes, offsets = tokens.words_only()
    sizes = np.diff(offsets)
    benches = np.unique([item.bench for item in items], return_inverse=True)[1] if items else np.zeros(0, np.int64)
    whole = sizes < rules.ngram
    windows = _windows(hashes, offsets, whole, rules.ngram)
    windows, weights, plain = _telling(windows, _texts_seen(hashes, offsets), benches, sizes, rules)
    symbols, symbol_offsets, has_symbols = _symbols(tokens)
    flags = _flags(
        whole=whole,
        sizes=sizes,
        has_symbols=has_symbols,
        symbol_bytes=np.diff(symbol_offsets),
        plain=plain,
        rules=rules,
    )
    order = np.lexsort((windows.item, windows.key))
    key, first = np.unique(windows.key[order], return_index=True)
    starts = np.r_[first, len(order)].astype(np.int64)
    postings = (starts, windows.item[order].astype(np.int32), windows.position[order].astype(np.int32))
    lengths = np.zeros(rules.ngram + 1, np.bool_)
    lengths[np.minimum(sizes[sizes > 0], rules.ngram)] = True
    answers, answer_words = _answers(items)
    flags = _common(flags=flags, hashes=hashes, offsets=offsets, lengths=lengths, keys=key, postings=postings)
    slack = 1 - (sizes - EXACT_WORDS) / (LOOSE_WORDS - EXACT_WORDS) * (1 - rules.min_score)
    required = np.where(whole, 1.0, np.clip(slack, rules.min_score, 1.0))
    needs_answer = (flags & ALONE) == 0
    unusable = (sizes == 0) | (needs_answer & ((answer_words == 0) | (sizes < 2)))
    required[unusable] = np.inf
    return Prepared(
        keys=key,
        postings=postings,
        lengths=lengths,
        near=rules.near_words + answer_words,
        shapes=(flags, sizes, np.maximum(weights, 1), required, symbols, symbol_offsets),
        required=required,
        answers=answers,
        unusable=np.flatnonzero(unusable),
    )


@dataclass(frozen=True, kw_only=True)
class _Windows:
    """A row a window of words: its hash, the item it is of, and where in the item it starts."""

    key: npt.NDArray[np.uint64]
    item: Ints
    position: Ints

    def take(self, rows: npt.NDArray[Any]) -> _Windows:
        return _Windows(key=self.key[rows], item=self.item[rows], position=self.position[rows])


def _windows(hashes: npt.NDArray[np.uint64], offsets: Ints, whole: npt.NDArray[np.bool_], ngram: int) -> _Windows:
    sizes = np.diff(offsets)
    each = np.where(sizes == 0, 0, np.where(whole, 1, sizes - ngram + 1))
    item = np.repeat(np.arange(len(sizes)), each)
    position = np.arange(len(item)) - np.repeat(np.cumsum(each) - each, each)
    key = np.empty(len(item), np.uint64)
    window_hashes(hashes, offsets[:-1][item] + position, np.minimum(sizes, ngram)[item], key)
    key[key == 0] = 1  # zero marks a free place of the table
    return _Windows(key=key, item=item, position=position)


def _texts_seen(hashes: npt.NDArray[np.uint64], offsets: Ints) -> Ints:
    """For each item a number that items of the same words share."""
    whole = np.empty(len(offsets) - 1, np.uint64)
    window_hashes(hashes, offsets[:-1], np.diff(offsets), whole)
    return np.unique(whole, return_inverse=True)[1]


def _telling(
    windows: _Windows, texts: Ints, benches: Ints, sizes: Ints, rules: Rules
) -> tuple[_Windows, Ints, npt.NDArray[np.bool_]]:
    """(windows, weights, plain): the windows without boilerplate, how many words of each item they cover, and which
    items are boilerplate from end to end; these keep their windows."""
    _, key = np.unique(windows.key, return_inverse=True)
    rows = np.unique(np.stack([key, benches[windows.item], texts[windows.item]], axis=1), axis=0)
    groups, counts = np.unique(rows[:, :2], axis=0, return_counts=True)
    common = np.zeros(int(key.max()) + 1 if len(key) else 0, np.bool_)
    common[groups[counts > rules.max_items, 0]] = True
    telling = ~common[key]
    plain = np.bincount(windows.item[telling], minlength=len(sizes)) == 0
    stays = telling | plain[windows.item]
    windows = windows.take(stays)
    weights = np.zeros(len(sizes), np.int64)
    span = np.minimum(sizes, rules.ngram)[windows.item]
    after = np.r_[True, windows.item[1:] != windows.item[:-1]] if len(span) else np.zeros(0, np.bool_)
    gap = np.where(after, span, np.minimum(span, np.diff(windows.position, prepend=0)))
    np.add.at(weights, windows.item, gap)
    return windows, weights, plain


def _symbols(tokens: Tokens) -> tuple[npt.NDArray[np.uint8], Ints, npt.NDArray[np.bool_]]:
    """(bytes, offsets, has_symbols): each prompt squeezed from its first word to its last, and whether it holds a digit
    or a symbol that typesetting leaves as it is."""
    words = (tokens.word_flags & SYMBOL) == 0
    n = len(tokens)
    out, offsets, has = np.empty(len(tokens.data) + n, np.uint8), np.zeros(n + 1, np.int64), np.zeros(n, np.bool_)
    for t in range(n):
        span = slice(int(tokens.word_offsets[t]), int(tokens.word_offsets[t + 1]))
        inside = np.flatnonzero(words[span]) + span.start
        size = 0
        if len(inside):
            target = out[offsets[t] :]
            size = squeeze(tokens.data, tokens.word_starts[inside[0]], tokens.word_ends[inside[-1]], target)
            letters = int((tokens.word_ends[inside].astype(np.int64) - tokens.word_starts[inside]).sum())
            has[t] = size != letters or bool((tokens.word_flags[inside] & HAS_DIGIT).any())
        offsets[t + 1] = offsets[t] + size
    return out[: offsets[-1]].copy(), offsets, has


def _flags(
    *,
    whole: npt.NDArray[np.bool_],
    sizes: Ints,
    has_symbols: npt.NDArray[np.bool_],
    symbol_bytes: Ints,
    plain: npt.NDArray[np.bool_],
    rules: Rules,
) -> npt.NDArray[np.uint8]:
    alone = np.where(has_symbols, symbol_bytes >= TELLING_BYTES, sizes >= rules.min_words)
    alone = np.where(whole, alone, ~plain & (sizes >= rules.min_words))
    flags = np.where(whole, WHOLE, 0) | np.where(alone, ALONE, 0) | np.where(whole & has_symbols, SYMBOLS, 0)
    flags |= np.where(sizes >= rules.min_words, ENOUGH, 0)
    return flags.astype(np.uint8)


def _common(
    *,
    flags: npt.NDArray[np.uint8],
    hashes: npt.NDArray[np.uint64],
    offsets: Ints,
    lengths: npt.NDArray[np.bool_],
    keys: npt.NDArray[np.uint64],
    postings: tuple[Ints, npt.NDArray[np.int32], npt.NDArray[np.int32]],
) -> npt.NDArray[np.uint8]:
    """The flags, without ALONE for short prompts of mere words that several other prompts contain."""
    bits = max(int(2 * len(keys)).bit_length(), 6)
    table = (*build_table(keys, bits), bits)
    short = lengths.copy()
    short[-1] = False
    seen = []
    for t in range(len(offsets) - 1):
        where, _ = hits(hashes[offsets[t] : offsets[t + 1]], short, table, postings)
        seen.append(np.unique(where >> 36))
    holders = np.bincount(np.concatenate([*seen, np.zeros(0, np.int64)]), minlength=len(flags))
    mere = (flags & (WHOLE | SYMBOLS)) == WHOLE
    out = flags.copy()
    out[mere & (holders > COMMON_PROMPTS)] &= ~np.uint8(ALONE) & np.uint8(0xFF)
    return out


def _answers(items: Sequence[Item]) -> tuple[tuple[Any, ...], Ints]:
    """((words, word_offsets, offsets, indices), words an item): the answers of all items, one after the other."""
    words, word_offsets = tokenize([answer for item in items for answer in item.answers]).words_only()
    offsets = np.r_[0, np.cumsum([len(item.answers) for item in items])].astype(np.int64)
    index = tokenize([item.index for item in items])
    index_words, index_offsets = index.words_only()
    indices = np.zeros(len(items), np.uint64)
    one = np.flatnonzero(np.diff(index_offsets) == 1)
    indices[one] = index_words[index_offsets[one]]
    return (words, word_offsets, offsets, indices), word_offsets[offsets[1:]] - word_offsets[offsets[:-1]]
