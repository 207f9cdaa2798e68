"""A domain's endless stream, held to a plain list of it."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.train.feed.made_index import MadeIndex, domain
from train.feed.permutation import numbered_key, permute
from train.feed.stream import Stream

blocks = some.sampled_from([1, 2, 3, 7, 16, 1000])
shares = some.sampled_from([0.0, 0.2])


def stream_of(shards: list[list[int]], block: int, share: float, seed: int) -> Stream:
    return Stream.of(MadeIndex({"a": shards}), 0, seed=seed, held_out=share, block_tokens=block)


def listed(stream: Stream, epochs: int) -> list[int]:
    """The domain's number of each token of the first epochs."""
    found: list[int] = []
    count = -(-stream.tokens // stream.block_tokens)
    for epoch in range(epochs):
        key = numbered_key(stream.key, epoch)
        for slot in range(count):
            first = permute(slot, count, key) * stream.block_tokens
            found += range(first, min(first + stream.block_tokens, stream.tokens))
    return found


@settings(deadline=None)
@given(domain, blocks, shares, some.integers(0, 5), some.data())
def test_ranges_are_the_list_and_as_long_as_they_can_be(
    shards: list[list[int]], block: int, share: float, seed: int, data: some.DataObject
) -> None:
    stream = stream_of(shards, block, share, seed)
    tokens = listed(stream, 3)
    start = data.draw(some.integers(0, len(tokens) - 1))
    stop = data.draw(some.integers(start + 1, len(tokens)))
    ranges = [(int(begin), int(begin + count)) for begin, count in zip(*stream.ranges(start, stop), strict=True)]
    assert list(itertools.chain(*(range(*one) for one in ranges))) == tokens[start:stop]
    assert all(one[1] != other[0] for one, other in itertools.pairwise(ranges))


@settings(deadline=None)
@given(domain, blocks, some.integers(0, 5), some.data())
def test_places_are_where_the_list_has_the_tokens(
    shards: list[list[int]], block: int, seed: int, data: some.DataObject
) -> None:
    stream = stream_of(shards, block, 0.0, seed)
    tokens = listed(stream, 2)
    begin = data.draw(some.integers(0, stream.tokens - 1))
    end = data.draw(some.integers(begin + 1, stream.tokens))
    for epoch in (0, 1):
        found = [
            (place + shift, token + shift)
            for place, token, count in stream.places(begin, end, epoch)
            for shift in range(count)
        ]
        assert [token for _, token in found] == list(range(begin, end))
        assert all(tokens[place] == token for place, token in found)
        assert all(epoch * stream.tokens <= place < (epoch + 1) * stream.tokens for place, _ in found)


@settings(deadline=None)
@given(domain, some.data())
def test_pieces_end_where_documents_do(shards: list[list[int]], data: some.DataObject) -> None:
    index = MadeIndex({"a": shards})
    stream = Stream.of(index, 0, seed=1, held_out=0, block_tokens=8)
    begin = data.draw(some.integers(0, stream.tokens - 1))
    count = data.draw(some.integers(1, stream.tokens - begin))
    pieces = stream.pieces(np.array([begin]), np.array([count]))
    starts = np.cumsum([0, *(length for one in shards for length in one)])[:-1]
    documents = [(shard, row, length) for shard, one in enumerate(shards) for row, length in enumerate(one)]
    expected = []
    for (shard, row, length), first in zip(documents, starts.tolist(), strict=True):
        low, high = max(begin, first), min(begin + count, first + length)
        if low < high:
            inside = low - first + sum(shards[shard][:row])
            expected.append((shard, row, inside, high - low, low > first))
    assert list(zip(*(column.tolist() for column in pieces), strict=True)) == expected


def test_epochs_and_seeds_and_domains_have_orders_of_their_own() -> None:
    index = MadeIndex({"a": [[1000]], "b": [[1000]]})
    streams = [
        Stream.of(index, number, seed=seed, held_out=0, block_tokens=10) for number, seed in [(0, 1), (0, 2), (1, 1)]
    ]
    orders = [
        tuple(stream.ranges(epoch * 1000, epoch * 1000 + 1000)[0].tolist()) for stream in streams for epoch in (0, 1)
    ]
    assert len(set(orders)) == 6
