"""Segments in place: where each begins in the plan, and the spans of its sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from train.feed.mixture import ENDLESS, Mixture
from train.feed.segments import Segment
from train.feed.sources import Source
from train.feed.spans import Int64s, Spans
from train.feed.stream import Stream


@dataclass(frozen=True, kw_only=True, eq=False)
class Stage:
    """A segment in place: its sequences of the plan begin at `first`."""

    segment: Segment
    first: int
    mixture: Mixture

    @classmethod
    def of(cls, streams: Sequence[Stream], segment: Segment, last: Stage | None) -> Stage:
        """A segment behind the last one: each domain goes on at its cursor, and what does not change goes on as it was.

        So a change of batch_sequences alone leaves the order of sequences, and a change of weights leaves windows.
        """
        names = [stream.domain.name for stream in streams]
        ends = segment.ends({stream.domain.name: stream.tokens for stream in streams})
        first = 0 if last is None else last.sequence(segment.step)
        used = np.zeros(len(streams), np.int64) if last is None else last.mixture.used(first).copy()
        sources = []
        for number, (stream, end) in enumerate(zip(streams, ends, strict=True)):
            before = None if last is None else last.mixture.sources[number]
            if before is None or not before.is_like(segment.sequence_tokens, segment.how_packed, end):
                before = Source(
                    stream=stream,
                    sequence_tokens=segment.sequence_tokens,
                    packing=segment.how_packed,
                    end=end,
                    before=None if before is None else (before, int(used[number])),
                )
                used[number] = 0
            sources.append(before)
        same = last is not None and tuple(sources) == last.mixture.sources and segment.weights == last.segment.weights
        if last is not None and same:
            return cls(segment=segment, first=first, mixture=last.mixture)
        weights = [segment.weights[name] for name in names]
        return cls(segment=segment, first=first, mixture=Mixture.of(sources, weights=weights, first=first, used=used))

    def sequence(self, step: int) -> int:
        """The first sequence of a step."""
        return min(self.first + (step - self.segment.step) * self.segment.batch_sequences, self.mixture.stop)

    @property
    def steps(self) -> int | None:
        """The step at which everything has ended, were there no further segment."""
        if self.mixture.stop == ENDLESS:
            return None
        return self.segment.step - (self.first - self.mixture.stop) // self.segment.batch_sequences


Parts: TypeAlias = Sequence[tuple[Stage, int, int]]  # stages, and from which to which sequence of the plan


def spans_of(parts: Parts) -> Spans:
    """The spans of consecutive sequences, which have one sequence_tokens."""
    origin, placed = parts[0][1], []
    for stage, first, stop in parts:
        mixture = stage.mixture
        domains = mixture.domains(first, stop - first)
        order = np.argsort(domains, kind="stable").astype(np.int32)
        edges = np.flatnonzero(np.diff(domains[order], prepend=-1, append=-1))
        before = mixture.used(first)
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            number = int(domains[order[start]])
            rows = mixture.sources[number].rows(int(before[number]), end - start)
            placed.append((number, order[start:end] + np.int32(first - origin), rows))
    return Spans.of(
        placed,
        rows=parts[-1][2] - origin,
        sequence_tokens=parts[0][0].segment.sequence_tokens,
        first_sequence=origin,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Occurrences:
    """Where a plan has parts of a document: equally long int64 arrays, in order of sequence.

    epoch of the domain, sequence of the plan, step, and the part: tokens start .. stop of the shard.
    """

    epoch: Int64s
    sequence: Int64s
    step: Int64s
    start: Int64s
    stop: Int64s

    def __len__(self) -> int:
        return len(self.epoch)

    def shifted(self, tokens: int) -> Occurrences:
        """With parts counted from another token on."""
        return replace(self, start=self.start + tokens, stop=self.stop + tokens)


def occurrences(parts: Parts, domain: int, begin: int, end: int) -> Occurrences:
    """Where sequences hold a range of a domain's tokens, which lies in one shard; start and stop are the domain's."""
    found: list[tuple[int, int, int, int, int]] = []
    last = {stage.mixture.sources[domain]: int(stage.mixture.used(stop)[domain]) for stage, _, stop in parts}
    held = {source: source.occurrences(begin, end, used) for source, used in last.items()}
    for stage, first, stop in parts:
        source = stage.mixture.sources[domain]
        low, high = int(stage.mixture.used(first)[domain]), int(stage.mixture.used(stop)[domain])
        for one in held[source]:
            sequence = stage.mixture.sequence(domain, one.sequence) if low <= one.sequence < high else None
            if sequence is not None:
                step = stage.segment.step + (sequence - stage.first) // stage.segment.batch_sequences
                found.append((one.epoch, sequence, step, one.begin, one.end))
    columns = np.array(sorted(found, key=lambda one: one[1:]), np.int64).reshape(-1, 5).T
    return Occurrences(epoch=columns[0], sequence=columns[1], step=columns[2], start=columns[3], stop=columns[4])
