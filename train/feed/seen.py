"""What an audit counts: tokens by domain, how often each was seen, and the way of one document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from shards.store import read_batches
from train.feed.history import Checkpoint
from train.feed.plan import Plan
from train.feed.spans import Spans
from train.feed.times import TokenTimes
from train.feed.token_shards import TokenShards, TokenShardsError

LEAST_LETTERS = 4  # of an id's beginning


class Place(NamedTuple):
    """Where a document lies: tokens start .. stop of a shard, row of its documents."""

    shard: int
    document: int
    start: int
    stop: int


@dataclass(frozen=True, kw_only=True)
class DomainSeen:
    """One domain's tokens that were trained on: each as often as it was, without those that were context only.

    epochs: of the tokens that are not held out. times: {how often seen: how many tokens}, of the same. sequences: rows;
    share: of the rows of all domains; wanted: what the plan's weights make of that, over the same steps.
    """

    name: str
    tokens: int
    epochs: float
    times: dict[int, int]
    sequences: int
    share: float
    wanted: float

    def told(self) -> str:
        least, most = (min(self.times, default=0), max(self.times, default=0))
        return (
            f"{self.name}: {self.tokens:,} tokens in {self.sequences:,} sequences, {self.share:.3%} of all (wanted "
            f"{self.wanted:.3%}); {self.epochs:.3f} epochs, each token {least} to {most} times"
        )


@dataclass(frozen=True, kw_only=True)
class DocumentSeen:
    """One document's way. steps: {step that was applied: how many of its tokens}, 0 where only as context.

    checkpoints: {path: tokens of the document that it has learned from, each as often as it was}; abandoned: those of
    them that are no ancestors of the newest model.
    """

    id: str
    tokens: int
    places: tuple[Place, ...]
    steps: dict[int, int]
    checkpoints: dict[str, int]
    unaware: tuple[str, ...]
    abandoned: tuple[str, ...]

    def told(self) -> Iterator[str]:
        steps = ", ".join(f"{step} ({tokens})" for step, tokens in self.steps.items()) or "none"
        yield f"document {self.id}: {self.tokens:,} tokens; trained on in steps (tokens): {steps}"
        for path, tokens in self.checkpoints.items():
            yield f"  {path}: has seen {tokens:,} of its tokens" + (", abandoned" if path in self.abandoned else "")
        for path in self.unaware:
            yield f"  {path}: has not seen it"


class Seen:
    """Adds up steps: what the plan has in them, and what of it was applied."""

    def __init__(self, shards: TokenShards, places: Sequence[Place]) -> None:
        self.shards, self.places = shards, tuple(places)
        self.planned = TokenTimes(shards)
        self.trained: TokenTimes | None = None  # the same as planned until a step was not applied once as a whole
        self.sequences = np.zeros(len(shards.domains), np.int64)
        self.document_steps: dict[int, int] = {}

    def add(self, step: int, spans: Spans, rows: NDArray[np.int64]) -> None:
        """A step of which each row was applied so many times."""
        start, new = spans.start + spans.repeats, spans.count.astype(np.int64) - spans.repeats
        if self.trained is None and (rows != 1).any():
            self.trained = self.planned.copy()
        if self.trained is not None:
            self.trained.add(spans.shard, start, new, rows[spans.row])
        self.planned.add(spans.shard, start, new)
        first = np.diff(spans.row, prepend=-1) != 0  # a row is of one domain
        np.add.at(self.sequences, spans.domain[first], rows[spans.row[first]])
        for place in self.places:
            mine = (spans.shard == place.shard) & (spans.document == place.document) & (rows[spans.row] > 0)
            if mine.any():
                found = int((new * rows[spans.row])[mine].sum())
                self.document_steps[step] = self.document_steps.get(step, 0) + found

    def domains(self, plan: Plan, steps: range) -> tuple[DomainSeen, ...]:
        """What was applied of steps, by domain."""
        wanted = plan.shares(steps.start, steps.stop)
        times = self.planned if self.trained is None else self.trained
        found = []
        for domain, sequences in zip(self.shards.domains, self.sequences.tolist(), strict=True):
            epoch = plan.tokens[domain.name]
            seen = times.histogram(domain, epoch)
            tokens = _total(seen)
            found.append(
                DomainSeen(
                    name=domain.name,
                    tokens=tokens,
                    epochs=tokens / epoch,
                    times=seen,
                    sequences=sequences,
                    share=sequences / max(1, int(self.sequences.sum())),
                    wanted=wanted[domain.name],
                )
            )
        return tuple(found)

    def broken(self, plan: Plan, steps: range) -> Iterator[str]:
        """Where the spans of the plan's steps are not what its streams give between the cursors of both ends.

        From step 0 on, each token of an epoch must be there as often as the cursor has passed it: after q epochs and r
        tokens, r tokens q + 1 times and all others q times. From elsewhere on, as many tokens in all. What packing
        crops or drops may be missing.
        """
        before, after = plan.consumed(steps.start), plan.consumed(steps.stop)
        segments = plan.state()["segments"]
        lossless = all(told["packing"] == "concat" or told["overflow"] == "split" for told in segments)
        for domain in self.shards.domains:
            epoch = plan.tokens[domain.name]
            seen, whole = self.planned.histogram(domain, epoch), self.planned.histogram(domain)
            held_out = _total(whole) - _total(seen)
            if held_out:
                yield f"{domain.name}: {held_out} tokens that are held out are in the plan"
            consumed = after[domain.name] - before[domain.name]
            if _total(seen) > consumed or (lossless and _total(seen) != consumed):
                yield f"{domain.name}: {_total(seen)} tokens are in steps that pass {consumed} tokens of its stream"
            elif steps.start == 0:
                epochs, rest = divmod(consumed, epoch)
                expected = {often: count for often, count in ((epochs, epoch - rest), (epochs + 1, rest)) if count}
                if max(seen) > max(expected) or (lossless and seen != expected):
                    yield f"{domain.name}: tokens are there {seen} times, where its stream gives them {expected} times"

    def document(self, told: str, checkpoints: Iterable[Checkpoint]) -> DocumentSeen:
        """The way of the document whose places were looked for. Of checkpoints at one path, the last one counts."""
        last = {checkpoint.path: checkpoint for checkpoint in checkpoints}
        learned = {
            path: sum(self.document_steps[step] for step in found.learned)
            for path, found in last.items()
            if found.learned
        }
        return DocumentSeen(
            id=told,
            tokens=sum(place.stop - place.start for place in self.places),
            places=tuple(self.places),
            steps=dict(sorted(self.document_steps.items())),
            checkpoints=learned,
            unaware=tuple(path for path in last if path not in learned),
            abandoned=tuple(path for path, found in last.items() if found.abandoned),
        )


def _total(times: dict[int, int]) -> int:
    return sum(often * count for often, count in times.items())


def find_document(shards: TokenShards, told: str) -> tuple[str, list[Place]]:
    """The id of a document and where it lies (several places, where one id stands in several folders).

    told: the id, or four letters and more that it alone begins with. Reads the ids of all shards. Raises
    TokenShardsError where there is none.
    """
    matches = pc.equal if len(told) < LEAST_LETTERS else pc.starts_with
    found: dict[str, list[Place]] = {}
    for shard in range(shards.shards):
        row = 0
        for batch in read_batches(shards.documents_url(shard), ["id"], batch_rows=1 << 16):
            ids = batch.column(0)
            for at in np.flatnonzero(matches(ids, told).to_numpy(zero_copy_only=False)).tolist():
                ends = shards.ends(shard)
                document = row + at
                place = Place(shard, document, int(ends[document - 1]) if document else 0, int(ends[document]))
                found.setdefault(ids[at].as_py(), []).append(place)
            row += batch.num_rows
    if told in found:
        return told, found[told]
    if not found:
        raise TokenShardsError(f"document: {told} is in none of {shards.shards} shards; take an id of their documents")
    if len(found) > 1:
        some = ", ".join(sorted(found)[:3])
        raise TokenShardsError(f"document: {len(found)} ids begin with {told} ({some}, ...); give more of it")
    return next(iter(found.items()))
