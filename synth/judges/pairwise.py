"""Which of two answers is better, asked in both orders: a judge that prefers a position prefers neither."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from synth.judges.judging import Judge, Opinion, ask, fence, verdict_of
from synth.prompts import render
from synth.requests import Message, Request
from synth.verifiers.rates import Rate, rate

Said = str
"""A, B or tie."""

SCHEMA: Final = {
    "type": "object",
    "properties": {"better": {"enum": ["A", "B", "tie"]}},
    "required": ["better"],
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two answers to a question."""

    question: str
    first: str
    second: str


@dataclass(frozen=True, kw_only=True)
class Preference:
    """winner: first, second, tie, or None for unscored; reason: of a tie or of unscored.

    forward, backward: what was said with the first answer as A, and with it as B; None where it could not be read.
    keys: of the replies.
    """

    winner: Literal["first", "second", "tie"] | None
    reason: str = ""
    forward: Said | None = None
    backward: Said | None = None
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PositionBias:
    """Of pairs that were read in both orders. consistent: both orders say the same. first: of the pairs where the
    orders contradict each other, those where A won both times (a half where no position is preferred). unscored: of
    all pairs."""

    pairs: int
    consistent: Rate
    first: Rate
    unscored: Rate


def prefer(
    judge: Judge,
    pairs: Sequence[Pair],
    *,
    template: str = "judge_pair",
    disagreement: Literal["tie", "unscored"] = "tie",
) -> Generator[Sequence[Request], Any, list[Preference]]:
    """A preference for each pair; two requests a pair, and one more for each that cannot be read.

    disagreement: what a pair is whose two orders name different winners. A tie in one order and a winner in the other
    is a tie. One order that stays unread leaves the pair unscored.
    """
    orders = [
        (pair.question, *texts) for pair in pairs for texts in ((pair.first, pair.second), (pair.second, pair.first))
    ]
    opinions = yield from ask(judge, [_asked(template, *order) for order in orders], _read, schema=SCHEMA)
    return [
        _preference(forward, backward, disagreement)
        for forward, backward in zip(opinions[::2], opinions[1::2], strict=True)
    ]


def _asked(template: str, question: str, first: str, second: str) -> Sequence[Message]:
    return render(template, question=question, first=first, second=second, fence=fence(question, first, second))


def _read(answer: str) -> Said | None:
    said = verdict_of(answer, "better")
    known = {"a": "A", "b": "B", "tie": "tie"}
    return known.get(said.strip().lower()) if isinstance(said, str) else None


def _preference(forward: Opinion[Said], backward: Opinion[Said], disagreement: str) -> Preference:
    said = (forward.value, backward.value)
    keys = (*forward.keys, *backward.keys)
    if None in said:
        reason = forward.reason if forward.value is None else backward.reason
        return Preference(winner=None, reason=reason, forward=said[0], backward=said[1], keys=keys)
    if said in (("A", "B"), ("B", "A")):
        winner: Literal["first", "second"] = "first" if said[0] == "A" else "second"
        return Preference(winner=winner, forward=said[0], backward=said[1], keys=keys)
    swapped = said[0] == said[1] != "tie"
    reason = "orders_disagree" if swapped else "tie"
    unscored = swapped and disagreement == "unscored"
    return Preference(winner=None if unscored else "tie", reason=reason, forward=said[0], backward=said[1], keys=keys)


def position_bias(preferences: Sequence[Preference]) -> PositionBias:
    """How often the order decided, over many pairs."""
    read = [one for one in preferences if one.forward is not None and one.backward is not None]
    swapped = [one for one in read if one.forward == one.backward != "tie"]
    opposite = {"A": "B", "B": "A", "tie": "tie"}
    consistent = sum(one.backward == opposite[one.forward] for one in read if one.forward is not None)
    return PositionBias(
        pairs=len(preferences),
        consistent=rate(consistent, len(read)),
        first=rate(sum(one.forward == "A" for one in swapped), len(swapped)),
        unscored=rate(len(preferences) - len(read), len(preferences)),
    )
