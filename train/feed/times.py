"""How often each token was seen, exactly: intervals counted on one axis of all shards' tokens."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from train.feed.token_shards import DomainShards, TokenShards

PENDING = 1 << 20  # edges to gather before they are made one


class TokenTimes:
    """Adds intervals of tokens and tells how many tokens were covered how many times.

    Memory: the edges where the count changes. Intervals that touch leave none, so a stream that was read in one go
    costs two edges, whatever its length and however it was cut into rows.
    """

    def __init__(self, shards: TokenShards) -> None:
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(shards.shard_tokens)])
        self._at, self._change = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._level = np.zeros(1, np.int64)  # how often tokens before each edge, and behind the last, were seen
        self._waiting: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._pending = 0

    def copy(self) -> TokenTimes:
        """One that counts on from here by itself."""
        self._settle()
        made = copy(self)  # arrays are never written to
        made._waiting = []
        return made

    def add(
        self,
        shard: NDArray[np.int32],
        start: NDArray[np.int64],
        count: NDArray[np.int64],
        times: NDArray[np.int64] | int = 1,
    ) -> None:
        """Tokens start .. start + count of shards were seen `times` times more."""
        begin = self._starts[shard] + start
        change = np.broadcast_to(np.asarray(times, np.int64), begin.shape)
        self._waiting.append((np.concatenate([begin, begin + count]), np.concatenate([change, -change])))
        self._pending += len(begin)
        if self._pending >= PENDING:
            self._settle()

    def histogram(self, domain: DomainShards, stop: int | None = None) -> dict[int, int]:
        """{times seen: how many of the domain's tokens}, of its first `stop` tokens (None: all)."""
        self._settle()
        stop = domain.tokens if stop is None else stop
        begins = self._starts[domain.shards]
        ends = begins + np.clip(stop - domain.offsets[:-1], 0, np.diff(domain.offsets))
        edges = np.unique(np.concatenate([self._at, begins, ends]))
        seen = self._level[np.searchsorted(self._at, edges[:-1], side="right")]
        place = np.searchsorted(begins, edges[:-1], side="right") - 1
        inside = (place >= 0) & (edges[:-1] < ends[place])
        times, which = np.unique(seen[inside], return_inverse=True)
        tokens = np.bincount(which, weights=np.diff(edges)[inside], minlength=len(times))
        return {int(count): round(total) for count, total in zip(times, tokens, strict=True)}

    def _settle(self) -> None:
        if not self._waiting:
            return
        at = np.concatenate([self._at, *(edges for edges, _ in self._waiting)])
        change = np.concatenate([self._change, *(changes for _, changes in self._waiting)])
        self._waiting, self._pending = [], 0
        where, which = np.unique(at, return_inverse=True)
        total = np.zeros(len(where), np.int64)
        np.add.at(total, which, change)
        self._at, self._change = where[total != 0], total[total != 0]
        self._level = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._change)])
