"""Token shards as streams to export: whole documents in bounded runs, mapped when they are written and not before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from train.exports.folder import ExportError
from train.feed.token_manifest import TokenManifest
from train.feed.token_shards import TokenShards

MERGED = "all"


@dataclass(frozen=True, kw_only=True)
class Run:
    """Tokens `start` to `end` of one shard, and of which documents they are: rows `first_row` to `end_row`.

    The first and the last document may be there in part. Nothing is open or read until it is asked for.
    """

    shards: TokenShards
    shard: int
    start: int
    end: int
    first_row: int
    end_row: int

    @property
    def count(self) -> int:
        return self.end - self.start

    @property
    def tokens(self) -> NDArray[Any]:
        return self.shards.tokens(self.shard)[self.start : self.end]

    @property
    def ends(self) -> NDArray[np.int64]:
        """Where each piece ends, in tokens of the run: increasing, as documents without tokens are left out."""
        ends = np.clip(self.shards.ends(self.shard)[self.first_row : self.end_row], None, self.end) - self.start
        return ends[np.diff(ends, prepend=0) > 0]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.ends, prepend=0)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row in the shard of each document that has tokens."""
        ends = self.shards.ends(self.shard)[self.first_row : self.end_row]
        return self.first_row + np.flatnonzero(np.diff(ends, prepend=self.start) > 0)


@dataclass(frozen=True, kw_only=True)
class Stream:
    """The documents of one domain (or of all that were chosen) one after another, in the shards' order."""

    shards: TokenShards
    name: str
    numbers: NDArray[np.int64]

    @property
    def tokens(self) -> int:
        return int(self.shards.shard_tokens[self.numbers].sum())

    def documents(self) -> int:
        """How many have any token."""
        return sum(
            int(np.count_nonzero(np.diff(self.shards.ends(shard), prepend=0))) for shard in self.numbers.tolist()
        )

    def runs(self) -> Iterator[Run]:
        """A run a shard."""
        for shard in self.numbers.tolist():
            tokens, rows = int(self.shards.shard_tokens[shard]), int(self.shards.shard_documents[shard])
            yield Run(shards=self.shards, shard=shard, start=0, end=tokens, first_row=0, end_row=rows)

    def files(self, limit: int, *, token_cost: int = 1, document_cost: int = 0) -> Iterator[tuple[Run, ...]]:
        """Whole documents for one file after another, each filled up to `limit`; a longer document has one to itself.

        A document costs `document_cost` and `token_cost` a token.
        """
        runs: list[Run] = []
        used = 0
        for whole in self.runs():
            ends = self.shards.ends(whole.shard)
            costs = ends * token_cost + np.arange(1, len(ends) + 1) * document_cost
            row = 0
            while row < len(ends):
                before = int(costs[row - 1]) if row else 0
                stop = max(row, int(np.searchsorted(costs, before + limit - used, side="right")))
                if stop == row and not runs:
                    stop = row + 1
                if stop > row:
                    start, end = (int(ends[row - 1]) if row else 0), int(ends[stop - 1])
                    if end > start:
                        found = Run(
                            shards=self.shards, shard=whole.shard, start=start, end=end, first_row=row, end_row=stop
                        )
                        runs.append(found)
                        used += int(costs[stop - 1]) - before
                if stop < len(ends) and runs:
                    yield tuple(runs)
                    runs, used = [], 0
                row = stop
        if runs:
            yield tuple(runs)

    def cuts(self, tokens: int) -> Iterator[tuple[Run, ...]]:
        """The stream cut every `tokens` tokens, through documents too; the last cut may be shorter."""
        runs: list[Run] = []
        room = tokens
        for whole in self.runs():
            start = 0
            while start < whole.end:
                end = min(whole.end, start + room)
                rows = self.shards.documents_at(whole.shard, np.array([start, end - 1]))
                first, last = int(rows[0]), int(rows[1])
                runs.append(
                    Run(shards=self.shards, shard=whole.shard, start=start, end=end, first_row=first, end_row=last + 1)
                )
                room -= end - start
                start = end
                if room == 0:
                    yield tuple(runs)
                    runs, room = [], tokens
        if runs:
            yield tuple(runs)


@dataclass(frozen=True, kw_only=True)
class Source:
    """What an export of tokens reads. domains: documents and tokens of the chosen ones by the manifests, and
    documents_in and tokens_in their sums; documents without tokens are among them."""

    shards: TokenShards
    streams: tuple[Stream, ...]
    domains: dict[str, dict[str, int]]
    documents_in: int
    tokens_in: int

    @classmethod
    def open(
        cls, folders: str | Sequence[str], *, domains: Sequence[str] | None, by_domain: bool, cache: str | None
    ) -> Source:
        """Raises TokenShardsError for shards that are missing or damaged, ExportError for unknown domains."""
        shards = TokenShards.open(folders, cache=cache)
        counted: dict[str, Counter[str]] = {}
        for folder in shards.folders:
            manifest = TokenManifest.read(folder)
            for name, documents, tokens in zip(
                manifest.domains, manifest.documents.tolist(), manifest.tokens.tolist(), strict=True
            ):
                counted.setdefault(name, Counter()).update(documents=documents, tokens=tokens)
        chosen = sorted(counted) if domains is None else sorted(set(domains))
        unknown = [name for name in chosen if name not in counted]
        if unknown or not chosen:
            told = f"no domain {', '.join(map(repr, unknown))}" if unknown else "no domain is named"
            raise ExportError(f"domains: {told}; there are {', '.join(sorted(counted))}")
        found = [domain for domain in shards.domains if domain.name in set(chosen)]
        streams = [Stream(shards=shards, name=domain.name, numbers=domain.shards) for domain in found]
        if not by_domain and streams:
            numbers = np.concatenate([stream.numbers for stream in streams])
            streams = [Stream(shards=shards, name=MERGED, numbers=numbers)]
        return cls(
            shards=shards,
            streams=tuple(streams),
            domains={name: dict(counted[name]) for name in chosen},
            documents_in=sum(counted[name]["documents"] for name in chosen),
            tokens_in=sum(counted[name]["tokens"] for name in chosen),
        )


def lengths(runs: Sequence[Run]) -> NDArray[np.int64]:
    """Tokens of each piece of the runs, in order."""
    return np.concatenate([run.lengths for run in runs]) if runs else np.zeros(0, np.int64)


def longest(runs: Sequence[Run]) -> int:
    return int(max((run.lengths.max() for run in runs), default=0))
