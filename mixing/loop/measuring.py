"""Measuring mixtures: by proxies of the training room, or by anything else that gives observations of a proposal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from mixing.loop.rounds import Measured
from mixing.loop.settings import Swarm
from mixing.observations import Observations, read_observations
from shards.store import join

PROXIES: Final = "proxies"
Measure = Callable[[pa.Table], Measured | Observations]
"""Takes a proposal (a column a domain, and `why`, `size`, `seed`) and gives what came of it, a row a run. It is
called once a round, and again for a round that was killed: what it had done by then, it must know itself."""
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class ByProxies:
    """Train proxies into OUT/proxies, which keeps what is done whatever is killed.

    known: runs that earlier rounds have told of. All others that OUT/proxies holds are told: where settings changed
    before a round was over, what it had trained by then is not lost.
    """

    swarm: Swarm
    tokens: tuple[str, ...]
    out: str
    known: frozenset[str]
    retry_failed: bool
    say: Say

    def __call__(self, proposal: pa.Table) -> Measured:
        from train.proxies import run

        folder = join(self.out, PROXIES)
        spread = max(self.swarm.seeds) + 1
        table = pa.table({"run": pa.array([], pa.string())})
        for (sizes, number), mixtures in sorted(_groups(proposal, self.swarm).items(), key=lambda one: one[0][1]):
            settings = self.swarm.on(
                mixtures,
                sizes={name: self.swarm.sizes[name] for name in sizes},
                seeds=tuple(seed + number * spread for seed in self.swarm.seeds),
            )
            table = run(
                settings, tokens=self.tokens, out=folder, retry_failed=self.retry_failed, progress=_Lines(self.say)
            )
        fresh = table.filter(pc.invert(pc.is_in(table["run"], pa.array(sorted(self.known), pa.string()))))
        failed = fresh.filter(pc.equal(fresh["status"], "failed"))
        done = fresh.filter(pc.equal(fresh["status"], "done"))
        return Measured(
            observations=read_observations(done) if done.num_rows else None,
            failed=dict(zip(failed["run"].to_pylist(), failed["error"].to_pylist(), strict=True)),
        )


def _groups(proposal: pa.Table, swarm: Swarm) -> Mapping[tuple[tuple[str, ...], int], list[dict[str, float]]]:
    """Mixtures that share sizes and seed."""
    groups: dict[tuple[tuple[str, ...], int], list[dict[str, float]]] = {}
    for row in proposal.to_pylist():
        _, size, seed = row.pop("why"), row.pop("size"), row.pop("seed")
        sizes = tuple(swarm.sizes) if size is None else (size,)
        groups.setdefault((sizes, seed), []).append(row)
    return groups


class _Lines(StringIO):
    """A stream that hands on each line."""

    def __init__(self, say: Say) -> None:
        super().__init__()
        self._say = say

    def write(self, text: str) -> int:
        self._say(text.rstrip("\n"))
        return len(text)
