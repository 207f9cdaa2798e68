"""Which domain gives each sequence of a mixture: counts within one of the exact share, in every prefix.

One period of the order is made by earliest deadline first. The i-th sequence of a domain with share w belongs between
floor(i / w) and ceil((i + 1) / w) - 1, which is what |count - w p| < 1 for each prefix p says; such an order exists for
all shares that sum to 1 (Tijdeman 1980, "The chairman assignment problem"; Steiner and Yeomans 1993, "Level schedules
for mixed-model, just-in-time processes"), and serving the earliest deadline first finds it, as it does for any unit
jobs on one machine. Beyond a period, whole periods are counted.
"""

# ruff: noqa: PLR0917 - kernels are given bare numbers and arrays.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import gcd, isfinite, lcm
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from text import kernel
from train.feed.spans import Int64s

PERIOD = 1 << 20  # longest period of exact weights: 1 MB of domain numbers, made in 10 to 60 ms
ROUNDED = 1 << 18  # of rounded ones
LEAST_CHECKPOINT = 1 << 10  # positions between counts that are kept
SCHEDULES_KEPT = 16  # of up to 4 MB each; one is made anew in tens of milliseconds
Weight: TypeAlias = int | float | Fraction | Decimal


def exact_weights(weights: Mapping[str, Weight]) -> dict[str, int]:
    """Whole numbers in proportion to the weights, whose sum is the period of the order; 0 stays 0.

    Exact where the weights, read as the decimals that they are written as, have a sum of at most 2^20 in lowest terms.
    Else they are rounded to a period of 2^18 by largest remainder, at least 1 for each positive weight: a share is then
    wrong by less than 2^-18, where none had to be raised to 1. Raises ValueError where all are 0 or one
    is negative or not a number.
    """
    shares = {name: _fraction(name, weight) for name, weight in weights.items()}
    total = sum(shares.values())
    if total == 0:
        raise ValueError("weights: all are 0; at least one domain needs more")
    whole = lcm(*(share.denominator for share in shares.values()))
    counts = {name: int(share * whole) for name, share in shares.items()}
    divisor = gcd(*counts.values())
    if sum(counts.values()) // divisor <= PERIOD:
        return {name: count // divisor for name, count in counts.items()}
    return _rounded(counts)


def _fraction(name: str, weight: Weight) -> Fraction:
    """A weight as the decimal that it is written as: 0.1 is a tenth."""
    share = Fraction(str(weight)) if isinstance(weight, Fraction) or isfinite(weight) else Fraction(-1)
    if share < 0:
        raise ValueError(f"weights: {name} has {weight}; a weight is a number, 0 or more")
    return share


def _rounded(counts: Mapping[str, int]) -> dict[str, int]:
    total, positive = sum(counts.values()), [name for name, count in counts.items() if count]
    if len(positive) > ROUNDED:
        raise ValueError(f"weights: {len(positive)} domains; at most {ROUNDED} can be mixed")
    found = {name: count * ROUNDED // total for name, count in counts.items()}
    found |= {name: 1 for name in positive if found[name] == 0}
    order = sorted(positive, key=lambda name: (-(counts[name] * ROUNDED % total), name))
    missing = ROUNDED - sum(found.values())
    for name in order[: max(0, missing)]:
        found[name] += 1
    while missing < 0:  # what was raised to 1 is taken from the largest
        largest = max(positive, key=lambda name: (found[name], name))
        taken = min(-missing, found[largest] - 1)
        # In equal measure where several are large: never more than half of one at a time.
        taken = max(1, min(taken, found[largest] // 2))
        found[largest] -= taken
        missing += taken
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Schedule:
    """The order of domains for whole-number weights: position q of the mixture belongs to one domain.

    weights: int64[m]. period: their sum. table: domain of each position of the first period, or of the part of it that
    is needed. checkpoints: int32[k, m], sequences of each domain before position k * step.
    """

    weights: Int64s
    period: int
    step: int
    table: npt.NDArray[np.integer[Any]]
    checkpoints: npt.NDArray[np.int32]

    def domains(self, first: int, count: int) -> npt.NDArray[np.integer[Any]]:
        """The domain of each of `count` positions."""
        start = first % self.period
        if start + count <= len(self.table):
            return self.table[start : start + count]
        return self.table[(start + np.arange(count)) % self.period]

    def counts(self, position: int) -> Int64s:
        """How many of the first `position` sequences each domain gives: int64[m]."""
        periods, rest = divmod(position, self.period)
        row, inside = divmod(rest, self.step)
        found: Int64s = self.checkpoints[row] + periods * self.weights
        if inside:
            part = self.table[rest - inside : rest]
            found = found + np.bincount(part, minlength=len(self.weights))
        return found

    def position(self, domain: int, number: int) -> int | None:
        """The position of a domain's sequence of this number (from 0); None where the table does not reach it."""
        periods, rest = divmod(number, int(self.weights[domain]))
        row = int(np.searchsorted(self.checkpoints[:, domain], rest, "right")) - 1
        places = np.flatnonzero(self.table[row * self.step : (row + 1) * self.step] == domain)
        inside = rest - int(self.checkpoints[row, domain])
        if inside >= len(places):
            return None
        return periods * self.period + row * self.step + int(places[inside])


def schedule_of(weights: Int64s, positions: int | None = None) -> Schedule:
    """The order for these weights, of which only the first `positions` are needed; None = all."""
    period = int(weights.sum())
    return _schedule(weights.astype(np.int64).tobytes(), period if positions is None else min(period, positions))


@lru_cache(maxsize=SCHEDULES_KEPT)
def _schedule(weights: bytes, positions: int) -> Schedule:
    given = np.frombuffer(weights, np.int64)
    domains, period = len(given), int(given.sum())
    kind = np.uint8 if domains <= 1 << 8 else np.uint16 if domains <= 1 << 16 else np.int32
    table: npt.NDArray[np.integer[Any]] = np.empty(positions, kind)
    work = np.zeros((domains, 5), np.int64)
    work[:, 3], work[:, 4] = np.divmod(period, np.maximum(given, 1))
    released, heap = np.full(positions, -1, np.int32), np.empty(domains, np.int64)
    if not _earliest_deadline_first(given, period, released, work, heap, table):
        raise AssertionError(f"no order for the weights {given.tolist()}")
    step = max(LEAST_CHECKPOINT, 1 << (4 * domains).bit_length())
    checkpoints = np.zeros((positions // step + 1, domains), np.int32)
    _count(table, step, checkpoints)
    return Schedule(weights=given, period=period, step=step, table=table, checkpoints=checkpoints)


@kernel
def _earliest_deadline_first(weights: Any, period: int, released: Any, work: Any, heap: Any, table: Any) -> Any:
    """Fill the table; False where a deadline is missed, which cannot be.

    released: for each position the first of the domains whose next sequence may not come before. work: three numbers a
    domain: the next of those domains, and the earliest position of its next sequence, as a whole number and a rest over
    its weight. heap: deadline and domain, as one number, of the domains that may come now.
    """
    shift, waiting = 1, 0
    while (1 << shift) < len(weights):
        shift += 1
    for domain in range(len(weights) - 1, -1, -1):
        if weights[domain] > 0:
            work[domain, 0], released[0] = released[0], domain
    for position in range(len(table)):
        domain = released[position]
        while domain >= 0:
            after, weight = work[domain, 0], weights[domain]
            begin = work[domain, 1] + work[domain, 3]
            rest = work[domain, 2] + work[domain, 4]
            if rest >= weight:
                begin, rest = begin + 1, rest - weight
            work[domain, 1], work[domain, 2] = begin, rest
            deadline = begin if rest > 0 else begin - 1
            waiting = _push(heap, waiting, (deadline << shift) + domain)
            domain = after
        if waiting == 0 or heap[0] >> shift < position:
            return False
        domain = heap[0] & ((1 << shift) - 1)
        table[position] = domain
        waiting = _pop(heap, waiting)
        release = max(position + 1, work[domain, 1])
        if release < len(table):
            work[domain, 0] = released[release]
            released[release] = domain
    return True


@kernel
def _push(heap: Any, size: int, value: int) -> Any:
    """Put a value on a heap of `size`; its new size."""
    at = size
    while at > 0 and heap[(at - 1) // 2] > value:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = value
    return size + 1


@kernel
def _pop(heap: Any, size: int) -> Any:
    """Take the least value off a heap of `size`; its new size."""
    size -= 1
    value, at = heap[size], 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value
    return size


@kernel
def _count(table: Any, step: int, checkpoints: Any) -> None:
    """Fill checkpoints[k] with the counts before position k * step."""
    for position in range(len(table)):
        row = position // step
        if row + 1 < len(checkpoints):
            checkpoints[row + 1, table[position]] += 1
    for row in range(1, len(checkpoints)):
        for domain in range(checkpoints.shape[1]):
            checkpoints[row, domain] += checkpoints[row - 1, domain]
