"""Criteria of one question that change as its answers do: DR Tulu's evolving rubrics (arXiv:2511.19399).

Differs from it: a criterion is put away only on the strength of its scores. Where there are none yet, DR Tulu's
program falls back to putting away the oldest, so that a criterion can go before it was ever scored; here one that was
not scored stays, up to `max_new` of them beside the cap, until it is.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from statistics import pstdev
from typing import Any, Final

from synth.judges.judging import Judge, ask, fence, number, verdict_of
from synth.judges.rubrics import Criterion
from synth.prompts import render
from synth.requests import Request

MAX_ACTIVE: Final = 5
"""DR Tulu's max_active_rubrics."""

MAX_NEW: Final = 5
"""Criteria that one proposal adds at most: DR Tulu asks for one to five."""

MIN_SCORES: Final = 2
"""Of different answers, below which a criterion counts as not scored: one score has no spread."""

MAX_CRITERION_CHARS: Final = 500
SCHEMA: Final = {
    "type": "object",
    "properties": {
        "criteria": {
            "type": "array",
            "maxItems": MAX_NEW,
            "items": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "weight": {"enum": [-1, 1]}},
                "required": ["text", "weight"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["criteria"],
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """A question's criteria. persistent: written beforehand, always used and never put away. active: used, oldest
    first. inactive: put away, never proposed again."""

    persistent: tuple[Criterion, ...] = ()
    active: tuple[Criterion, ...] = ()
    inactive: tuple[Criterion, ...] = ()

    @property
    def used(self) -> tuple[Criterion, ...]:
        """By which answers are scored now."""
        return (*self.persistent, *self.active)

    def adding(self, proposed: Sequence[Criterion], *, max_new: int = MAX_NEW) -> Buffer:
        """With new criteria, up to max_new that were there in no form before."""
        known = {one.id for one in (*self.used, *self.inactive)}
        fresh = {one.id: one for one in proposed if one.id not in known}
        added = tuple(fresh.values())[:max_new]
        return Buffer(persistent=self.persistent, active=(*self.active, *added), inactive=self.inactive)


def retain(
    buffer: Buffer,
    scores: Mapping[str, Sequence[float | None]],
    *,
    max_active: int = MAX_ACTIVE,
    max_new: int = MAX_NEW,
) -> Buffer:
    """What stays active after a round: of the scored criteria those that tell answers apart, the widest spread first.

    scores: of each criterion's id, one an answer, None for unscored. A criterion whose scores are all the same is put
    away; of the others the max_active with the largest standard deviation stay (the older of two alike). One with
    fewer than two scores stays as it is; of these the newest max_new do, the others are put away as unscorable.
    """
    spreads: dict[str, float] = {}
    for one in buffer.active:
        there = [value for value in scores.get(one.id, ()) if value is not None]
        if len(there) >= MIN_SCORES:
            spreads[one.id] = pstdev(there)
    telling = [one for one in buffer.active if spreads.get(one.id, 0.0) > 0]
    kept = {one.id for one in sorted(telling, key=lambda one: -spreads[one.id])[:max_active]}
    unscored = [one.id for one in buffer.active if one.id not in spreads]
    kept |= set(unscored[max(0, len(unscored) - max_new) :])
    return Buffer(
        persistent=buffer.persistent,
        active=tuple(one for one in buffer.active if one.id in kept),
        inactive=(*buffer.inactive, *(one for one in buffer.active if one.id not in kept)),
    )


def propose(
    judge: Judge,
    question: str,
    answers: Sequence[str],
    buffer: Buffer,
    *,
    template: str = "judge_rubrics",
    max_new: int = MAX_NEW,
) -> Generator[Sequence[Request], Any, Buffer]:
    """The buffer with new criteria on which these answers differ; as it was where the judge's reply cannot be read."""
    listed = "\n\n".join(f"Answer {at}:\n{answer}" for at, answer in enumerate(answers, 1))
    there = "\n".join(f"- {one.text} (weight {one.weight:+g})" for one in buffer.used) or "none yet"
    asked = render(
        template,
        question=question,
        answers=listed,
        criteria=there,
        count=str(max_new),
        fence=fence(question, listed, there),
    )
    opinions = yield from ask(judge, [asked], _read, schema=SCHEMA)
    return buffer.adding(opinions[0].value or (), max_new=max_new)


def _read(answer: str) -> tuple[Criterion, ...] | None:
    said = verdict_of(answer, "criteria")
    if not isinstance(said, list):
        return None
    read = []
    for one in said:
        text, weight = (one.get("text"), one.get("weight", 1)) if isinstance(one, dict) else (None, None)
        if not isinstance(text, str) or not 0 < len(text.strip()) <= MAX_CRITERION_CHARS:
            return None
        weighed = number(weight, -1, 1)
        if weighed is None or abs(weighed) != 1:
            return None
        read.append(Criterion(text=text.strip(), weight=weighed))
    return tuple(read)
