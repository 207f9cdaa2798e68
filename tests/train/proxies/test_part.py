"""A part of the shards: the first tokens of each domain, and nothing else changes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.train.feed.made import make_tokens
from train.feed.stream import Stream
from train.feed.token_shards import TokenShards
from train.proxies.part import part_of, trainable_tokens

DOMAINS = {"code": [[5, 3, 9], [], [7, 1]], "web": [[40, 2], [30]]}


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return TokenShards.open(make_tokens(tmp_path_factory.mktemp("tokens"), DOMAINS))


def tokens_of(shards, number):
    domain = shards.domains[number]
    whole = np.concatenate([shards.tokens(int(shard)) for shard in domain.shards])
    return whole[: domain.tokens].tolist()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(code=st.integers(1, 25), web=st.integers(1, 72))
def test_a_part_is_the_first_tokens_of_each_domain(shards, code, web):
    part = part_of(shards, {"code": code, "web": web})
    for number, count in enumerate((code, web)):
        assert part.domains[number].tokens == count
        assert tokens_of(part, number) == tokens_of(shards, number)[:count]
        assert len(part.domains[number].offsets) == len(part.domains[number].shards) + 1
        assert np.all(np.diff(part.domains[number].offsets) > 0)
    assert shards.domains[0].tokens == 25  # the whole is as it was


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(1, 25), epochs=st.integers(1, 3))
def test_the_stream_of_a_part_gives_its_tokens_in_each_epoch_and_no_others(shards, count, epochs):
    part = part_of(shards, {"code": count})
    stream = Stream.of(part, 0, seed=3, held_out=Fraction(0), block_tokens=4)
    assert stream.tokens == count
    for epoch in range(epochs):
        begins, counts = stream.ranges(epoch * count, (epoch + 1) * count)
        pieces = stream.pieces(begins, counts)
        seen = sorted(
            (int(shard), int(start) + at)
            for shard, start, length in zip(pieces.shard, pieces.start, pieces.tokens, strict=True)
            for at in range(length)
        )
        places = [part.domains[0].locate(np.array([position])) for position in range(count)]
        assert seen == sorted((int(shard[0]), int(token[0])) for shard, token in places)


def test_a_domain_that_is_not_named_is_left_out_and_the_digest_tells_parts_apart(shards):
    part = part_of(shards, {"web": 10})
    assert [domain.name for domain in part.domains] == ["web"]
    assert len({shards.digest, part.digest, part_of(shards, {"web": 11}).digest}) == 3
    assert part_of(shards, {"web": 10}).digest == part.digest


def test_documents_of_a_part_are_counted_with_the_one_that_is_cut(shards):
    assert [part_of(shards, {"code": count}).domains[0].documents[-1] for count in (5, 6, 8, 17, 18, 24, 25)] == [
        1, 2, 2, 3, 4, 4, 5,
    ]  # fmt: skip


def test_what_is_held_out_is_never_in_a_part(shards):
    trainable = trainable_tokens(shards, 0.2)
    # The end of the document that holds the last trained token, but of web's last document it is not.
    assert trainable == {"code": 24, "web": 42}
    assert trainable_tokens(shards, 0.5) == {"code": 17, "web": 40}
