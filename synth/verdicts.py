"""What a verifier says of an answer. That it could not say is never that the answer is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from synth.requests import digest


class Outcome(StrEnum):
    """right and wrong are about the answer; error is the verifier's own failure (a hang, a broken gold, a sandbox that
    is not there); unscored is a judge that gave no usable score."""

    RIGHT = "right"
    WRONG = "wrong"
    ERROR = "error"
    UNSCORED = "unscored"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """outcome, and why in a few words (a rule's name, never the answer's text). score: where there are degrees."""

    outcome: Outcome
    reason: str = ""
    score: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Check:
    """An answer to verify. kind: which verifier; an unknown one is an error, never a default."""

    kind: str
    gold: Any
    answer: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def key(self, version: str) -> str:
        """Of the check and the verifier's version: what was verified once is not verified again."""
        return digest([self.kind, version, self.gold, self.answer, dict(self.options)])
