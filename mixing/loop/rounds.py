"""Rounds of the loop on disk: what was proposed, before it is measured, and what was measured, when it is.

OUT/rounds/NN.json            the proposal: mixtures, why each, and which settings shaped it
OUT/rounds/NN.parquet         what was measured, as a tidy table
OUT/rounds/NN-measured.json   seconds and failures, written last: a round with it is over

Each file appears whole, so a loop killed anywhere goes on from its files: a proposal is never drawn twice, and a round
that is over is never measured again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from mixing.observations import read_observations, write
from mixing.observations.observations import Observations
from mixing.observations.points import MixingError
from shards.store import join, read_json, write_json

ROUNDS: Final = "rounds"
FORMAT: Final = 1
OWN: Final = ("why", "size", "seed")
"""Columns of a proposal that are no domain."""
CYCLE: Final = 4
"""Seeds in turn: enough to tell what a seed changes, few enough that runs of one seed go in parallel."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Mixtures to measure together. shaped_by: digest of the settings that it follows from.

    seeds: which seed each is measured with, from 0; another for the same mixture at the same size, and few in turn for
        the others: a law of runs that all had one seed would know nothing of what another changes, and its intervals
        would not hold the target. sizes: names of the proxies' sizes, or None for all of them.
    """

    number: int
    domains: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    why: tuple[str, ...]
    sizes: tuple[str | None, ...]
    seeds: tuple[int, ...]
    shaped_by: str

    def __len__(self) -> int:
        return len(self.weights)

    @classmethod
    def of(
        cls,
        number: int,
        table: pa.Table,
        domains: Sequence[str],
        *,
        before: Sequence[Proposal],
        shaped_by: str,
        cycle: int = CYCLE,
    ) -> Proposal:
        """A proposal of a table with a column a domain, and perhaps `why` and `size`. cycle: how many seeds in turn."""
        count = table.num_rows
        weights = np.column_stack([table.column(domain).to_numpy() for domain in domains]).reshape(count, len(domains))
        rows = tuple(tuple(float(weight) for weight in row) for row in weights)
        names = set(table.column_names)
        why = tuple(table.column("why").to_pylist()) if "why" in names else ("",) * count
        sizes = tuple(table.column("size").to_pylist()) if "size" in names else (None,) * count
        taken = {key for one in before for key in one.keys}
        seeds: list[int] = []
        for at, (row, size) in enumerate(zip(rows, sizes, strict=True)):
            seed = number - 1 + at % cycle
            while (_rounded(row), size, seed) in taken:
                seed += 1
            taken.add((_rounded(row), size, seed))
            seeds.append(seed)
        return cls(
            number=number, domains=tuple(domains), weights=rows, why=why, sizes=sizes, seeds=tuple(seeds),
            shaped_by=shaped_by,
        )  # fmt: skip

    @property
    def keys(self) -> list[tuple[tuple[float, ...], str | None, int]]:
        """Mixture, size and seed: what makes two of them the same run."""
        return list(zip(map(_rounded, self.weights), self.sizes, self.seeds, strict=True))

    def mixtures(self) -> list[dict[str, float]]:
        return [dict(zip(self.domains, row, strict=True)) for row in self.weights]

    def table(self) -> pa.Table:
        """As measure takes it: a column a domain, then why, size, seed."""
        columns = {domain: [row[at] for row in self.weights] for at, domain in enumerate(self.domains)}
        own = {
            "why": pa.array(self.why, pa.string()),
            "size": pa.array(self.sizes, pa.string()),
            "seed": pa.array(self.seeds, pa.int64()),
        }
        return pa.table({**{name: pa.array(values, pa.float64()) for name, values in columns.items()}, **own})


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a measurement gives. failed: {run: why}, in a line each; runs without a row, that were paid for."""

    observations: Observations | None
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Round:
    """A round that is over."""

    proposal: Proposal
    measured: Measured
    seconds: float

    @property
    def runs(self) -> int:
        """Runs that were paid for."""
        done = self.measured.observations
        return (0 if done is None else len(set(done.runs))) + len(self.measured.failed)


def store_proposal(out: str, proposal: Proposal) -> None:
    told = {
        "format": FORMAT,
        "number": proposal.number,
        "shaped_by": proposal.shaped_by,
        "mixtures": [
            {"weights": weights, "why": why, "size": size, "seed": seed}
            for weights, why, size, seed in zip(
                proposal.mixtures(), proposal.why, proposal.sizes, proposal.seeds, strict=True
            )
        ],
    }
    write_json(_url(out, proposal.number, ".json"), told)


def store_measured(out: str, number: int, measured: Measured, seconds: float) -> None:
    if measured.observations is not None:
        write(measured.observations, _url(out, number, ".parquet"))
    told = {
        "format": FORMAT,
        "failed": dict(measured.failed),
        "seconds": seconds,
        "rows": 0 if measured.observations is None else len(measured.observations),
    }
    write_json(_url(out, number, "-measured.json"), told)


def stored(out: str, domains: Sequence[str]) -> tuple[list[Round], Proposal | None]:
    """The rounds that are over, and the proposal that waits to be measured, if one does."""
    over: list[Round] = []
    while True:
        number = len(over) + 1
        proposal = _proposal(out, number, domains)
        if proposal is None:
            return over, None
        told = read_json(_url(out, number, "-measured.json"))
        if told is None:
            return over, proposal
        observations = read_observations(_url(out, number, ".parquet")) if told["rows"] else None
        measured = Measured(observations=observations, failed=told["failed"])
        over.append(Round(proposal=proposal, measured=measured, seconds=float(told["seconds"])))


def _proposal(out: str, number: int, domains: Sequence[str]) -> Proposal | None:
    url = _url(out, number, ".json")
    told = read_json(url)
    if told is None:
        return None
    if told.get("format") != FORMAT:
        raise MixingError(f"{url}: format {told.get('format')!r}, where {FORMAT} can be read; use another out")
    mixtures: list[dict[str, Any]] = told["mixtures"]
    return Proposal(
        number=number,
        domains=tuple(domains),
        weights=tuple(tuple(one["weights"].get(domain, 0.0) for domain in domains) for one in mixtures),
        why=tuple(one["why"] for one in mixtures),
        sizes=tuple(one["size"] for one in mixtures),
        seeds=tuple(one["seed"] for one in mixtures),
        shaped_by=told["shaped_by"],
    )


def _rounded(row: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(weight, 9) for weight in row)


def _url(out: str, number: int, end: str) -> str:
    return join(out, ROUNDS, f"{number:02d}{end}")
