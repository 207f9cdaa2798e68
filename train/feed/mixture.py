"""A mixture of sources: which domain gives each sequence, and what happens where the epochs of one end.

The stated rule: a domain gives its share until its epochs are used up, to the token; from the next sequence on, its
share goes to the others in proportion to their weights. When all have ended, the mixture has. These phases follow from
the settings alone, and each begins at a position known beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from train.feed.schedule import Schedule, schedule_of
from train.feed.sources import Source
from train.feed.spans import Int32s, Int64s

ENDLESS = 1 << 62


@dataclass(frozen=True, kw_only=True, eq=False)
class Phase:
    """Sequences `first` .. `stop` of the plan follow one order by `weights`. used: sequences of each source before."""

    first: int
    stop: int
    used: Int64s
    weights: Int64s
    needed: int | None

    @property
    def schedule(self) -> Schedule:
        """Kept for some phases only: a plan may have as many as domains."""
        return schedule_of(self.weights, self.needed)


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """Sequences of a plan from `first` on, each from one of the sources.

    stop: where all epochs have ended; ENDLESS where they do not. used_at_stop: sequences of each source by then.
    """

    first: int
    stop: int
    sources: tuple[Source, ...]
    phases: tuple[Phase, ...]
    used_at_stop: Int64s

    @classmethod
    def of(cls, sources: Sequence[Source], *, weights: Sequence[int], first: int, used: Int64s) -> Mixture:
        """The mixture of sources by whole-number weights, of which `used` sequences are gone."""
        left = np.array([_available(source, weight) for source, weight in zip(sources, weights, strict=True)], np.int64)
        given, at = np.array(weights, np.int64), first
        phases: list[Phase] = []
        while True:
            given = np.where(left > used, given, 0)
            if not given.any():
                return cls(first=first, stop=at, sources=tuple(sources), phases=tuple(phases), used_at_stop=used)
            count, needed = _until_one_ends(given, left - used)
            stop = at + count if count < ENDLESS else ENDLESS
            phases.append(Phase(first=at, stop=stop, used=used, weights=given, needed=needed))
            if stop == ENDLESS:
                return cls(first=first, stop=stop, sources=tuple(sources), phases=tuple(phases), used_at_stop=used)
            at, used = stop, used + phases[-1].schedule.counts(count)

    def phase_at(self, sequence: int) -> Phase:
        """The phase that a sequence belongs to; the last where the mixture has stopped before."""
        low, high = 0, len(self.phases) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.phases[middle].first <= sequence else (low, middle - 1)
        return self.phases[low]

    def used(self, sequence: int) -> Int64s:
        """How many sequences each source has given before this one of the plan."""
        if sequence >= self.stop:
            return self.used_at_stop
        phase = self.phase_at(sequence)
        return phase.used + phase.schedule.counts(sequence - phase.first)

    def domains(self, first: int, count: int) -> Int32s:
        """The domain of each of `count` sequences of the plan."""
        parts, done = [], 0
        while done < count:
            phase = self.phase_at(first + done)
            take = min(count - done, phase.stop - first - done)
            parts.append(phase.schedule.domains(first + done - phase.first, take))
            done += take
        return np.concatenate(parts).astype(np.int32) if parts else np.zeros(0, np.int32)

    def wanted(self, first: int, stop: int) -> npt.NDArray[np.float64]:
        """How many of these sequences each domain should have by its weights."""
        found = np.zeros(len(self.sources))
        for phase in self.phases:
            count = min(stop, phase.stop) - max(first, phase.first)
            if count > 0:
                found += phase.weights * (count / int(phase.weights.sum()))
        return found

    def sequence(self, domain: int, number: int) -> int | None:
        """The plan's number of a source's sequence; None where this mixture does not have it."""
        for phase in self.phases:
            inside = number - int(phase.used[domain])
            if phase.weights[domain] and inside >= 0:
                position = phase.schedule.position(domain, inside)
                if position is not None and phase.first + position < phase.stop:
                    return phase.first + position
        return None


def _available(source: Source, weight: int) -> int:
    sequences = source.sequences if weight else 0  # what has no weight need not be known
    return ENDLESS if sequences is None else sequences


def _until_one_ends(weights: Int64s, left: Int64s) -> tuple[int, int | None]:
    """How many sequences there are until a domain has none left, and what of a period that needs; None = all."""
    ending = np.flatnonzero((weights > 0) & (left < ENDLESS >> 1))
    if not len(ending):
        return ENDLESS, None
    period = int(weights.sum())
    number, weight = left[ending] - 1, weights[ending]
    begins = number // weight * period
    earliest = begins + number % weight * period // weight
    latest = begins - (-(number % weight + 1) * period // weight) - 1
    needed = int(latest.min()) + 1
    schedule, first = schedule_of(weights, needed), needed - 1
    for i in np.argsort(earliest).tolist():
        if earliest[i] >= first:
            break
        position = schedule.position(int(ending[i]), int(number[i]))
        first = first if position is None else min(first, position)
    return first + 1, needed
