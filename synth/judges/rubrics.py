"""Scores by criteria, one criterion at a time, 0 to 2."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from synth.judges.judging import Judge, ask, fence, number, verdict_of
from synth.prompts import render
from synth.requests import Request, digest

TOP: Final = 2
"""Of the scale, as DR Tulu's judge has it (arXiv:2511.19399)."""

SCHEMA: Final = {
    "type": "object",
    "properties": {"score": {"enum": [0, 1, 2]}},
    "required": ["score"],
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """What an answer is scored by. weight: below 0 for what it should not do."""

    text: str
    weight: float = 1.0

    @property
    def id(self) -> str:
        """Of its text: the same criterion, written again, is the same."""
        return digest(" ".join(self.text.casefold().split()))[:16]


@dataclass(frozen=True, kw_only=True)
class Scored:
    """An answer's scores, one a criterion, None for those unscored, with the reasons.

    value: sum of weight x score / 2 over the sum of the weights above 0 (of those below, where there are no others):
    1 is the best, and it is below 0 where faults outweigh. None, unscored, where less than the asked-for share of
    the criteria was scored.
    """

    value: float | None
    scores: tuple[int | None, ...]
    reasons: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


def score(
    judge: Judge,
    question: str,
    answers: Sequence[str],
    criteria: Sequence[Criterion],
    *,
    template: str = "judge_criterion",
    min_scored: float = 1.0,
) -> Generator[Sequence[Request], Any, list[Scored]]:
    """Scores of each answer by each criterion. min_scored: share of the criteria that must be scored for a value; those
    that were not are left out of it, never counted as 0."""
    cells = [(answer, criterion) for answer in answers for criterion in criteria]
    asked = [
        render(template, question=question, answer=answer, criterion=criterion.text, fence=fence(question, answer))
        for answer, criterion in cells
    ]
    opinions = yield from ask(judge, asked, _read, schema=SCHEMA)
    width = len(criteria)
    rows = [opinions[at * width : (at + 1) * width] for at in range(len(answers))]
    return [
        Scored(
            value=value_of([opinion.value for opinion in row], criteria, min_scored=min_scored),
            scores=tuple(opinion.value for opinion in row),
            reasons=tuple(opinion.reason for opinion in row),
            keys=tuple(key for opinion in row for key in opinion.keys),
        )
        for row in rows
    ]


def value_of(scores: Sequence[int | None], criteria: Sequence[Criterion], *, min_scored: float = 1.0) -> float | None:
    """Scored.value of an answer's scores."""
    there = [(given, one.weight) for given, one in zip(scores, criteria, strict=True) if given is not None]
    scale = sum(weight for _, weight in there if weight > 0) or sum(abs(weight) for _, weight in there)
    if not scale or len(there) < min_scored * len(criteria):
        return None
    return sum(weight * given / TOP for given, weight in there) / scale


def _read(answer: str) -> int | None:
    said = number(verdict_of(answer, "score"), 0, TOP)
    return int(said) if said is not None and said.is_integer() else None
