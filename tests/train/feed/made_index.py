"""Token shards without files, for what asks them only where documents end; and plain readings of what a plan gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as some
from numpy.typing import NDArray

from train.feed.plan import Plan
from train.feed.spans import Spans


@dataclass(frozen=True)
class MadeDomain:
    name: str
    shards: NDArray[np.int64]
    offsets: NDArray[np.int64]


class MadeIndex:
    """Domains as lists of shards, a shard as the lengths of its documents in tokens."""

    digest, tokenizer_digest = "made", "words"

    def __init__(self, domains: Mapping[str, Sequence[Sequence[int]]]) -> None:
        self._ends: list[NDArray[np.int64]] = []
        found = []
        for name in sorted(domains):
            first = len(self._ends)
            self._ends += [np.cumsum(lengths, dtype=np.int64) for lengths in domains[name]]
            kept = [n for n in range(first, len(self._ends)) if len(self._ends[n]) and self._ends[n][-1]]
            sizes = [int(self._ends[n][-1]) for n in kept]
            if kept:
                found.append(MadeDomain(name, np.array(kept, np.int64), np.cumsum([0, *sizes], dtype=np.int64)))
        self.domains = tuple(found)

    def ends(self, shard: int) -> NDArray[np.int64]:
        return self._ends[shard]

    def number(self, shard: NDArray[Any], token: NDArray[Any]) -> NDArray[np.int64]:
        """One number for a token among all."""
        firsts = np.cumsum([0, *(int(ends[-1]) if len(ends) else 0 for ends in self._ends)])
        return np.asarray(firsts[shard] + token, np.int64)

    @property
    def firsts(self) -> set[int]:
        """Numbers of the documents' first tokens."""
        found = set()
        for shard, ends in enumerate(self._ends):
            starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
            found |= set(self.number(np.array(shard), starts[ends > starts]).tolist())
        return found


def tokens_of(index: MadeIndex, spans: Spans) -> tuple[NDArray[np.int64], ...]:
    """Each slot that a span fills: row, slot, number of its token, and whether it repeats one."""
    counts = spans.count.astype(np.int64)
    inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    shard = np.repeat(spans.shard, counts)
    return (
        np.repeat(spans.row, counts).astype(np.int64),
        np.repeat(spans.slot, counts) + inside,
        index.number(shard, np.repeat(spans.start, counts) + inside),
        np.repeat(spans.repeats, counts) & (inside == 0),
    )


def times(index: MadeIndex, spans: Sequence[Spans]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How often each token stands in a row, repeated ones aside, and how often it is a target of its own document."""
    size = sum(int(ends[-1]) if len(ends) else 0 for ends in index._ends)
    held, target = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for one in spans:
        _, _, token, repeats = tokens_of(index, one)
        np.add.at(held, token[~repeats], 1)
        first = np.zeros(len(token), np.bool_)
        first[np.cumsum(one.count.astype(np.int64)) - one.count] = True
        np.add.at(target, token[~first], 1)
    return held, target


def same(one: Spans, other: Spans) -> bool:
    names = ("row", "slot", "domain", "shard", "document", "start", "count", "repeats")
    alike = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)
    return alike and (one.rows, one.first_sequence) == (other.rows, other.first_sequence)


def all_batches(plan: Plan) -> list[Spans]:
    assert plan.steps is not None
    return [plan.batch(step) for step in range(plan.steps)]


def whole_plan(plan: Plan) -> Spans:
    """All of a plan that ends and whose sequence_tokens stay."""
    assert plan.steps is not None
    return plan.sequences(0, plan.first_sequence(plan.steps))


lengths = some.one_of(some.integers(0, 12), some.integers(0, 12), some.sampled_from([0, 1, 2, 33, 64, 65, 200]))
shard = some.lists(lengths, max_size=6)
domain = some.lists(shard, min_size=1, max_size=3).filter(lambda shards: any(sum(one) for one in shards))
corpora = some.dictionaries(some.sampled_from("abcd"), domain, min_size=1, max_size=4).map(MadeIndex)


@some.composite
def settings_of(draw: some.DrawFn, index: MadeIndex) -> dict[str, Any]:
    """Settings of a plan without epochs."""
    names = [one.name for one in index.domains]
    weights = {name: draw(some.sampled_from([1, 2, 0.3, 5, 1e-3])) for name in names}
    return {
        "weights": draw(some.sampled_from([None, weights])),
        "sequence_tokens": draw(some.sampled_from([1, 2, 3, 7, 8, 16, 31])),
        "batch_sequences": draw(some.integers(1, 9)),
        "seed": draw(some.integers(0, 9)),
        "packing": draw(some.sampled_from(["concat", "best_fit"])),
        "held_out": draw(some.sampled_from([0.0, 0.0, 0.1, 0.5])),
        "block_tokens": draw(some.sampled_from([1, 3, 8, 50, 1 << 16])),
        "window_sequences": draw(some.integers(1, 6)),
        "slack": draw(some.sampled_from([0.0, 0.005, 0.3])),
        "overflow": draw(some.sampled_from(["split", "split", "crop", "drop"])),
    }
