"""A task as a conversation with the one who runs it: it asks, is answered, and in the end gives samples.

A flow is a generator. It yields what it wants done, some requests or some checks at a time, and is sent back their
replies or verdicts in the same order; it returns the samples that it made. It does nothing else: no file, no network,
no clock, no randomness but of `Desk.seed`. So a run that was killed goes on by running the flows again: what was
answered is read from the store, and the first effect that is not there is done.

    def flow(item, desk):
        replies = yield [Request(messages=..., rollout=at) for at in range(4)]
        ...
        verdicts = yield [Check(kind="math", gold=item.gold, answer=...)]
        return [Sample(...)]

Parts are shared between flows with `yield from`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from synth.items import Item, Sample
from synth.replies import Failure, Reply
from synth.requests import Request
from synth.verdicts import Check, Verdict

Effect = Sequence[Request] | Sequence[Check]
Answers = Sequence[Reply | Failure] | Sequence[Verdict]
Flow = Generator[Effect, Any, list[Sample]]
"""Sent back: for requests a Reply or Failure each, for checks a Verdict each."""


@dataclass(frozen=True, kw_only=True)
class Desk:
    """What a flow may know of the run. seed: of the run and the item. rollouts: how many rollouts an allocation over
    all items gave this one, None where it decides by itself."""

    seed: int = 0
    rollouts: int | None = None


class Task(Protocol):
    """A kind of data to make; its instances are its settings (a frozen pydantic dataclass).

    name: as recipes write it. version: raised when its flows ask or conclude otherwise.
    """

    name: str
    version: int

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        """The items to work on, streamed: usually the rows; a task that makes its own gives others."""

    def flow(self, item: Item, desk: Desk) -> Flow:
        """The conversation about one item."""
