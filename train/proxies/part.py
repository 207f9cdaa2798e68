"""Token shards of which only a part of each domain is used: what makes a proxy repeat a domain as its target will.

Documents lie in random order in a domain, so its first tokens are a random sample of it. What is held out stays held
out: a part is taken from what lies before it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import xxhash

from train.feed.stream import Stream
from train.feed.token_shards import DomainShards, TokenShards


def trainable_tokens(shards: TokenShards, held_out: float) -> dict[str, int]:
    """Tokens of each domain that are not held out."""
    return {
        domain.name: Stream.of(shards, number, seed=0, held_out=Fraction(held_out), block_tokens=1 << 16).tokens
        for number, domain in enumerate(shards.domains)
    }


def part_of(shards: TokenShards, tokens: Mapping[str, int]) -> TokenShards:
    """The same shards, of which each domain seems to end after so many tokens (from 1 on); a domain not named is left
    out. Maps and what was verified are shared with `shards`; it cannot be pickled for other processes."""
    part = copy.copy(shards)
    domains = tuple(_cut(shards, domain, tokens[domain.name]) for domain in shards.domains if domain.name in tokens)
    told = "/".join(f"{domain.name}:{domain.tokens}" for domain in domains)
    part.__dict__["domains"] = domains  # the place of a cached property
    part.digest = xxhash.xxh3_128_hexdigest(f"{shards.digest}/{told}".encode())
    return part


def _cut(shards: TokenShards, domain: DomainShards, tokens: int) -> DomainShards:
    if tokens >= domain.tokens:
        return domain
    last = int(np.searchsorted(domain.offsets, tokens, "left"))  # shards 0 .. last - 1 hold them
    offsets, documents = domain.offsets[: last + 1].copy(), domain.documents[: last + 1].copy()
    ends = shards.ends(int(domain.shards[last - 1]))
    offsets[-1] = tokens
    documents[-1] = documents[-2] + int(np.searchsorted(ends, tokens - offsets[-2], "left")) + 1
    return DomainShards(
        name=domain.name,
        shards=domain.shards[:last],
        offsets=offsets,
        documents=documents,
        text_bytes=domain.text_bytes * tokens // domain.tokens,
    )
