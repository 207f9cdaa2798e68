"""The plan by itself: `python -m bench.plan [TOKENS]`, with the folder of token shards of a run, or made ones.

seek: the spans of a step near 10^7 by a plan that has just been made. plan: making one over 100,000 shards. spans:
tokens of the spans made a second and core, 64 rows of 2,048 a step, step after step. padding: slots that hold nothing
under best fit at 2,048, by domain, over one epoch. Figures are the median of three rounds.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from train.feed.plan import Plan
from train.feed.stream import TokenIndex

ROUNDS, STEPS, FAR = 3, 200, 10**7
SETTINGS: dict[str, Any] = {"sequence_tokens": 2048, "batch_sequences": 64, "seed": 1}
DOMAINS, DOCUMENTS = 7, 4096
TARGETS = {"seek": 0.05, "plan": 1.0, "spans": 100e6, "padding": 0.01}  # the loader is to reach 20 M tokens/s in all


@dataclass(frozen=True)
class MadeDomain:
    name: str
    shards: np.ndarray[Any, np.dtype[np.int64]]
    offsets: np.ndarray[Any, np.dtype[np.int64]]


class MadeShards:
    """Shards that are all alike: log-normal documents of 700 tokens in the median."""

    digest = tokenizer_digest = "made"

    def __init__(self, shards: int) -> None:
        lengths = np.maximum(1, np.random.default_rng(1).lognormal(6.5, 1.2, DOCUMENTS)).astype(np.int64)
        self._ends = np.cumsum(lengths)
        each = shards // DOMAINS
        offsets = np.arange(each + 1, dtype=np.int64) * self._ends[-1]
        self.domains = [MadeDomain(f"domain-{n}", np.arange(n * each, (n + 1) * each), offsets) for n in range(DOMAINS)]

    def ends(self, shard: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        return self._ends


def median_seconds(work: Callable[[int], object]) -> float:
    found = []
    for turn in range(ROUNDS):
        start = time.perf_counter()
        work(turn)
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def told(name: str, ours: float, unit: str, target: float, *, at_most: bool) -> None:
    good = ours <= target if at_most else ours >= target
    relation = "at most" if at_most else "at least"
    print(f"bench plan.{name}: ours {ours:,.4g} {unit} (target {relation} {target:,.4g}){'' if good else '  MISSED'}")


def main(folder: str | None) -> None:
    large: TokenIndex = MadeShards(100_000)
    index = large
    if folder is not None:
        from train.feed.token_shards import TokenShards

        index = TokenShards.open(folder)
    for packing in ("concat", "best_fit"):
        plan = Plan.new(index, packing=packing, **SETTINGS)
        plan.batch(0)  # kernels, and whatever of the shards is opened
        seconds = median_seconds(lambda _, packing=packing: Plan.new(large, packing=packing, **SETTINGS).batch(0))
        told(f"plan {packing}", seconds, "s", TARGETS["plan"], at_most=True)
        fresh = [Plan.of(index, plan.state()) for _ in range(ROUNDS)]
        seconds = median_seconds(lambda turn, fresh=fresh: fresh[turn].batch(FAR + turn))
        told(f"seek {packing}", seconds, "s", TARGETS["seek"], at_most=True)
        seconds = median_seconds(lambda turn, plan=plan: [plan.batch(turn * STEPS + step) for step in range(STEPS)])
        told(f"spans {packing}", STEPS * 64 * 2048 / seconds, "tokens/s", TARGETS["spans"], at_most=False)
    ends = Plan.new(index if folder else MadeShards(70), packing="best_fit", max_epochs=1, **SETTINGS)
    for name, account in ends.account(0, ends.steps or 0).items():
        told(f"padding {name}", account.padding / account.slots, "of slots", TARGETS["padding"], at_most=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
