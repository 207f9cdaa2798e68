"""How often each token was seen, against plain counting."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.train.feed.made import make_tokens
from train.feed import times as times_module
from train.feed.times import TokenTimes
from train.feed.token_shards import TokenShards


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> TokenShards:
    counts = {"a": [[7, 5], [20]], "b": [[9], [], [3]], "c": [[1]]}
    return TokenShards.open(make_tokens(tmp_path_factory.mktemp("t"), counts))


intervals = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 19), st.integers(0, 20), st.integers(0, 3)))


@settings(max_examples=100, deadline=None)
@given(told=intervals, pending=st.integers(1, 9), stop=st.integers(0, 32))
def test_any_intervals_count_as_plain_counting_does(
    shards: TokenShards, told: list[tuple[int, int, int, int]], pending: int, stop: int
) -> None:
    plain = [np.zeros(size, int) for size in shards.shard_tokens]
    times = TokenTimes(shards)
    times_module.PENDING, before = pending, times_module.PENDING
    for shard, start, count, often in told:
        size = int(shards.shard_tokens[shard])
        start = min(start, size)
        count = min(count, size - start)
        plain[shard][start : start + count] += often
        times.add(np.array([shard]), np.array([start]), np.array([count]), np.array([often]))
    for domain in shards.domains:
        whole = np.concatenate([plain[shard] for shard in domain.shards])
        assert times.histogram(domain) == dict(Counter(whole.tolist()))
        assert times.histogram(domain, stop) == dict(Counter(whole[:stop].tolist()))
    times_module.PENDING = before


def test_touching_intervals_leave_no_edges(shards: TokenShards) -> None:
    times = TokenTimes(shards)
    for start in range(12):
        times.add(np.array([0]), np.array([start]), np.array([1]))
    assert times.histogram(shards.domains[0]) == {1: 12, 0: 20}
    assert len(times._at) == 2
