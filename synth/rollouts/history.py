"""What is known of a prompt's rollouts, and what of it counts: right, wrong, or neither."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from synth.verdicts import Outcome


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One reply, or the lack of one. outcome: of its verdict; None where it was not verified, or never came.

    temperature: as sent. truncated: it ran out of tokens. tokens: of the completion. cost: in the teacher's currency.
    answer: whatever equal answers share, such as the answer itself or its digest; "" where it gave none.
    """

    outcome: Outcome | None
    temperature: float = 1.0
    truncated: bool = False
    tokens: int = 0
    cost: float = 0.0
    answer: str = ""


def counts(rollouts: Iterable[Rollout], truncated: Literal["wrong", "nothing"] = "wrong") -> tuple[int, int]:
    """How many were right, and how many wrong. A verifier's error and a judge's silence are neither; a reply cut off
    is wrong by default, since leaving it out would make hard prompts, whose replies are long, look easier."""
    right = wrong = 0
    for one in rollouts:
        if one.outcome is Outcome.RIGHT:
            right += 1
        elif one.outcome is Outcome.WRONG or (one.truncated and truncated == "wrong"):
            wrong += 1
    return right, wrong


def in_waves(history: Sequence[Rollout], wave: int) -> list[Sequence[Rollout]]:
    """The history in waves of a size, the last one perhaps not whole."""
    return [history[start : start + wave] for start in range(0, len(history), wave)]
