"""Compile time of the plan's kernels is paid once, at set-up, and never by each worker of each run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from train.feed.plan import Plan


class _Tiny:
    """One shard of two documents, its ends read-only as those of mapped files are."""

    name = digest = tokenizer_digest = "tiny"
    shards = np.array([0])
    offsets = np.array([0, 40])

    def __init__(self) -> None:
        self.domains = (self,)

    def ends(self, shard: int) -> NDArray[np.int64]:
        return np.frombuffer(np.array([5, 40]).tobytes(), np.int64)


def compile_plan() -> None:
    """Run every kernel of a plan once: builds it, or loads it from numba's cache beside the package."""
    plan = Plan.new(_Tiny(), sequence_tokens=8, batch_sequences=2, seed=0, block_tokens=16)
    changed = plan.change(2, packing="best_fit", max_epochs=4)
    for step in (0, 2):
        changed.batch(step)
    changed.positions(0, 0, 40, until_step=3)
