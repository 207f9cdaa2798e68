"""The plan of the shared text: conserved to the token under each policy, and packed with less than 1% of padding."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from tests.train.feed.made_index import MadeIndex, times, whole_plan
from train import train_tokenizer
from train.feed.packing import OVERFLOWS, Overflow
from train.feed.plan import Plan

SHARD_TOKENS = 500_000


@pytest.fixture(scope="module")
def index(shared: Path) -> MadeIndex:
    """Lengths of the shared text's documents in tokens, with an EOS each, in shards by domain."""
    texts = {}
    for path in sorted((shared / "text").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            texts[path.name.split(".")[0]] = [json.loads(line)["text"] for line in lines]
    sample = (found[::8] for found in texts.values())
    tokenizer = train_tokenizer(sample, vocab_size=4096)
    random, domains = np.random.default_rng(1), {}
    for name, found in texts.items():
        lengths = np.diff(tokenizer.encode(found)[1]) + 1
        lengths = lengths[random.permutation(len(lengths))]  # as token shards are ordered by a hash
        cuts = np.searchsorted(np.cumsum(lengths), np.arange(SHARD_TOKENS, int(lengths.sum()), SHARD_TOKENS))
        domains[name] = [part.tolist() for part in np.split(lengths, cuts)]
    return MadeIndex(domains)


@pytest.mark.heavy
@pytest.mark.parametrize("overflow", OVERFLOWS)
def test_best_fit_conserves_the_shared_text_with_less_than_a_hundredth_of_padding(
    index: MadeIndex, overflow: Overflow
) -> None:
    plan = Plan.new(
        index,
        sequence_tokens=2048,
        batch_sequences=64,
        seed=1,
        packing="best_fit",
        overflow=overflow,
        max_epochs=1,
    )
    account = plan.account(0, plan.steps or 0)
    held, target = times(index, [whole_plan(plan)])
    assert held.max() == 1
    for name, told in account.items():
        assert told.tokens == plan.tokens[name] == told.trained + told.unpredicted + told.cropped + told.dropped
        assert told.slots == told.trained + told.unpredicted + told.context + told.padding
        assert told.padding <= 0.01 * told.slots, name
        assert told.cropped + told.dropped <= 0.01 * told.tokens, name
    assert held.sum() == sum(told.trained + told.unpredicted for told in account.values())
    assert target.sum() == sum(told.trained for told in account.values())
    if overflow == "split":
        assert held.min() == 1
        assert set(np.flatnonzero(target == 0).tolist()) == index.firsts


@pytest.mark.heavy
def test_concat_has_no_padding_but_at_the_end_and_loses_a_token_a_block(index: MadeIndex) -> None:
    plan = Plan.new(index, sequence_tokens=2048, batch_sequences=64, seed=1, max_epochs=1)
    held, target = times(index, [whole_plan(plan)])
    assert set(held.tolist()) == {1}
    account = plan.account(0, plan.steps or 0)
    assert all(told.padding <= 2049 for told in account.values())
    blocks = sum(-(-tokens // (1 << 16)) for tokens in plan.tokens.values())
    assert 0 <= (target == 0).sum() - len(index.firsts) <= blocks
