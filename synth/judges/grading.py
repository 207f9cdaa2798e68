"""One grade for an answer, on a stated scale."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from synth.errors import SynthError
from synth.judges.judging import Judge, Opinion, ask, fence, number, verdict_of
from synth.prompts import render
from synth.requests import Request


def grade(
    judge: Judge,
    question: str,
    answers: Sequence[str],
    *,
    low: int = 1,
    high: int = 10,
    template: str = "judge_grade",
) -> Generator[Sequence[Request], Any, list[Opinion[float]]]:
    """A grade for each answer. One outside the scale is unreadable, not its end: a 95 may be of 100."""
    if low >= high:
        raise SynthError(f"grade: low {low} is not below high {high}; a scale such as 1 to 10 is wanted")
    schema = {
        "type": "object",
        "properties": {"grade": {"type": "integer", "minimum": low, "maximum": high}},
        "required": ["grade"],
        "additionalProperties": False,
    }
    asked = [
        render(template, question=question, answer=answer, low=str(low), high=str(high), fence=fence(question, answer))
        for answer in answers
    ]
    return (yield from ask(judge, asked, lambda answer: number(verdict_of(answer, "grade"), low, high), schema=schema))
