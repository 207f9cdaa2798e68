"""A plan as plain as can be, for tests of what follows a plan: one stream, concatenated, cut into rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from train.feed.spans import Spans
from train.feed.token_shards import TokenShards


class PlainPlan:
    """Rows of the first domain's first shard one after another, `epochs` times, each token a target once an epoch."""

    def __init__(self, shards: TokenShards, *, length: int = 8, batch: int = 4, steps: int | None = None) -> None:
        self.shards, self.length, self.batch_sequences = shards, length, batch
        self.rows_of_shard = (int(shards.shard_tokens[0]) - 1) // length
        self.steps = steps

    def batch(self, step: int, rank: int = 0, world_size: int = 1) -> Spans:
        first = step * self.batch_sequences
        begin, end = (first + (r * self.batch_sequences) // world_size for r in (rank, rank + 1))
        ends, found = self.shards.ends(0), []
        for row, sequence in enumerate(range(begin, end)):
            start = sequence % self.rows_of_shard * self.length
            stop, at = start + self.length + 1, start
            while at < stop:
                document = int(np.searchsorted(ends, at, side="right"))
                upto = min(stop, int(ends[document]))
                found.append((row, at - start, 0, 0, document, at, upto - at, at == start))
                at = upto
        columns = [np.array([one[i] for one in found]) for i in range(8)] if found else [np.zeros(0)] * 8
        kinds = (np.int32, np.int32, np.int32, np.int32, np.int64, np.int64, np.int32, np.bool_)
        columns = [column.astype(kind) for column, kind in zip(columns, kinds, strict=True)]
        return Spans(*columns, rows=end - begin, sequence_tokens=self.length, first_sequence=begin)

    def state(self) -> dict[str, Any]:
        return {"length": self.length, "batch": self.batch_sequences}
