"""A domain as an endless stream of tokens: epoch after epoch, each with its blocks in another order.

Any position of the stream is found by arithmetic on the shards' prefix sums and a keyed permutation; the `ends` of the
shards that are touched give the documents. Nothing is listed and nothing is remembered.
"""

# ruff: noqa: PLR0917 - kernels are given bare numbers and arrays.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np

from text import kernel
from train.feed.permutation import key_at, key_of, numbered_key, permute, unpermute
from train.feed.spans import Bools, Int32s, Int64s


class DomainTokens(Protocol):
    """One domain's shards one after another: numbers among all shards, and prefix sums of their tokens."""

    @property
    def name(self) -> str: ...
    @property
    def shards(self) -> Int64s: ...
    @property
    def offsets(self) -> Int64s: ...


class TokenIndex(Protocol):
    """What a plan asks of token shards (train.feed.token_shards.TokenShards)."""

    @property
    def domains(self) -> Sequence[DomainTokens]: ...
    @property
    def digest(self) -> str: ...
    @property
    def tokenizer_digest(self) -> str: ...
    def ends(self, shard: int) -> Int64s: ...


class Pieces(NamedTuple):
    """Contiguous parts of documents, of equal length arrays: `tokens` from `start` (in tokens of the shard) on.

    continues: the piece's first token is not its document's first.
    """

    shard: Int32s
    document: Int64s
    start: Int64s
    tokens: Int64s
    continues: Bools


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """One domain's tokens that are trained on, in an order for each epoch.

    tokens: of an epoch. whole: with the held-out rest. block_tokens: what keeps its inner order.
    """

    number: int
    domain: DomainTokens
    index: TokenIndex
    tokens: int
    whole: int
    block_tokens: int
    key: np.uint64

    @classmethod
    def of(cls, index: TokenIndex, number: int, *, seed: int, held_out: float | Fraction, block_tokens: int) -> Stream:
        """The stream of the domain with this number; its last documents, `held_out` of its tokens, stay out.

        The share counts as the decimal that it is written as: 0.1 is a tenth. More than 0 holds out the last document
        at least, however long it is, where a domain has two or more.
        """
        domain = index.domains[number]
        whole = int(domain.offsets[-1])
        return cls(
            number=number,
            domain=domain,
            index=index,
            tokens=_cut(index, domain, (1 - Fraction(str(float(held_out)))) * whole),
            whole=whole,
            block_tokens=block_tokens,
            key=key_of("epochs", seed, domain.name),
        )

    def ranges(self, start: int, stop: int) -> tuple[Int64s, Int64s]:
        """Positions start .. stop of the stream as ranges of the domain's tokens in order: where each begins, how many.

        Blocks that happen to follow each other are one range.
        """
        # A range ends at a block's edge, of which each epoch has one more than whole blocks, or at either end.
        epochs = (stop - 1) // self.tokens - start // self.tokens + 1
        most = (stop - start) // self.block_tokens + 2 * epochs + 2
        begins, counts = np.empty(most, np.int64), np.empty(most, np.int64)
        found = _ranges(self.tokens, self.block_tokens, self.key, start, stop, begins, counts)
        return begins[:found], counts[:found]

    def pieces(self, begins: Int64s, counts: Int64s) -> Pieces:
        """Ranges of the domain's tokens, cut where documents end."""
        offsets = self.domain.offsets
        parts, most = [], 0
        for begin, count, place in zip(
            begins.tolist(), counts.tolist(), (np.searchsorted(offsets, begins, "right") - 1).tolist(), strict=True
        ):
            stop = begin + count
            while begin < stop:
                first, end = int(offsets[place]), min(stop, int(offsets[place + 1]))
                shard = int(self.domain.shards[place])
                ends = self.index.ends(shard)
                most += documents_between(ends, begin - first, end - first)
                parts.append((ends, shard, begin - first, end - first))
                begin, place = end, place + 1
        pieces = _empty(most)
        at = 0
        for ends, shard, first, end in parts:
            at = cut_at_documents(ends, first, end, shard, at, *pieces)
        return Pieces._make(column[:at] for column in pieces)

    def places(self, begin: int, end: int, epoch: int) -> list[tuple[int, int, int]]:
        """Where an epoch has a range of the domain's tokens: (position in the stream, first token, how many)."""
        found = []
        key = numbered_key(self.key, epoch)
        while begin < end:
            block = begin // self.block_tokens
            stop = min(end, (block + 1) * self.block_tokens, self.tokens)
            if stop <= begin:  # the rest is held out
                break
            position = block_position(self.tokens, self.block_tokens, key, block) + begin % self.block_tokens
            found.append((epoch * self.tokens + position, begin, stop - begin))
            begin = stop
        return found

    def from_shard(self, shard: int, tokens: int) -> int | None:
        """The domain's number of a shard's token; None where the shard is not of this domain."""
        place = int(np.searchsorted(self.domain.shards, shard))
        if place == len(self.domain.shards) or self.domain.shards[place] != shard:
            return None
        return int(self.domain.offsets[place]) + tokens

    def to_shard(self, token: int) -> tuple[int, int]:
        """Shard and token of the shard for the domain's token of this number."""
        place = int(np.searchsorted(self.domain.offsets, token, "right")) - 1
        return int(self.domain.shards[place]), token - int(self.domain.offsets[place])


def _cut(index: TokenIndex, domain: DomainTokens, least: Fraction) -> int:
    """The end of the first document that reaches `least` tokens of the domain, but not of its last document.

    The whole domain where that is wanted, or where one document is all that it has.
    """
    whole = int(domain.offsets[-1])
    if least >= whole:
        return whole
    wanted = -(-least.numerator // least.denominator)
    place = int(np.searchsorted(domain.offsets, wanted, "left")) - 1
    ends, first = index.ends(int(domain.shards[place])), int(domain.offsets[place])
    cut = first + int(ends[np.searchsorted(ends, wanted - first, "left")])
    return cut if cut < whole else _last_start(index, domain) or whole


def _last_start(index: TokenIndex, domain: DomainTokens) -> int:
    """Where the last document that has a token begins."""
    ends, first = index.ends(int(domain.shards[-1])), int(domain.offsets[-2])
    row = int(np.searchsorted(ends, int(domain.offsets[-1]) - first, "left"))
    return first + (int(ends[row - 1]) if row else 0)


def _empty(count: int) -> Pieces:
    return Pieces(
        shard=np.empty(count, np.int32),
        document=np.empty(count, np.int64),
        start=np.empty(count, np.int64),
        tokens=np.empty(count, np.int64),
        continues=np.empty(count, np.bool_),
    )


@kernel
def _ranges(tokens: int, block: int, key: Any, start: int, stop: int, begins: Any, counts: Any) -> int:
    """Fill begins and counts with the ranges of Stream.ranges; how many."""
    found, position = 0, start
    blocks = (tokens + block - 1) // block
    short = tokens - (blocks - 1) * block
    epoch, epoch_key, short_at = -1, key, 0
    while position < stop:
        if position // tokens != epoch:
            epoch = position // tokens
            epoch_key = key_at(key, epoch)
            short_at = unpermute(blocks - 1, blocks, epoch_key)
        place = position - epoch * tokens
        if place < short_at * block:
            slot, inside, size = place // block, place % block, block
        elif place < short_at * block + short:
            slot, inside, size = short_at, place - short_at * block, short
        else:
            rest = place - short_at * block - short
            slot, inside, size = short_at + 1 + rest // block, rest % block, block
        begin = permute(slot, blocks, epoch_key) * block + inside
        count = min(size - inside, stop - position)
        if found > 0 and begins[found - 1] + counts[found - 1] == begin:
            counts[found - 1] += count
        else:
            begins[found], counts[found] = begin, count
            found += 1
        position += count
    return found


@kernel
def block_position(tokens: int, block: int, epoch_key: Any, number: int) -> Any:
    """Where in an epoch's stream the block with this number begins."""
    blocks = (tokens + block - 1) // block
    slot = unpermute(number, blocks, epoch_key)
    if slot > unpermute(blocks - 1, blocks, epoch_key):
        return slot * block - (blocks * block - tokens)
    return slot * block


@kernel
def _first_ending_after(ends: Any, token: int) -> Any:
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        if ends[middle] <= token:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def documents_between(ends: Any, first: int, end: int) -> Any:
    """How many documents, empty ones too, lie at least in part between two tokens of a shard, or one more."""
    return _first_ending_after(ends, end - 1) - _first_ending_after(ends, first) + 1


@kernel
def cut_at_documents(
    ends: Any,
    first: int,
    end: int,
    shard: int,
    at: int,
    shards: Any,
    documents: Any,
    starts: Any,
    tokens: Any,
    continues: Any,
) -> Any:
    """Write the documents' parts between two tokens of a shard from entry `at` on; the entry behind the last."""
    row = _first_ending_after(ends, first)
    while first < end:
        stop = min(end, ends[row])
        if stop > first:
            shards[at], documents[at], starts[at], tokens[at] = shard, row, first, stop - first
            continues[at] = first > (ends[row - 1] if row > 0 else 0)
            at += 1
            first = stop
        row += 1
    return at
