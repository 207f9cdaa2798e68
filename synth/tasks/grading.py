"""Has a judge grade candidates; one whose grade cannot be read has none, never a low one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from synth.judges.grading import grade
from synth.judges.judging import Judge, Opinion
from synth.tasks.asking import given
from synth.tasks.candidates import Candidate, Stage


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Grading:
    """How grades are asked for.

    prompt: a template of a judge. low, high: the scale; a grade outside it is none. judge: who grades, and how.
    """

    prompt: Annotated[str, given("question", "answer", "low", "high", "fence")] = "judge_grade"
    low: int = 1
    high: int = 10
    judge: Judge = Field(default_factory=Judge)

    @model_validator(mode="after")
    def _ordered(self) -> Grading:
        if self.low >= self.high:
            raise ValueError("low, high: the first must be below the second")
        return self


def graded(
    candidates: Sequence[Candidate], grading: Grading, texts_of: Callable[[Candidate], tuple[str, str]]
) -> Stage:
    """Open candidates with the figure `score`; failed as judge.unscored where there is none.

    texts_of: a candidate's question and answer. Candidates of equal texts share a grade.
    """
    pairs = {texts_of(one): None for one in candidates if one.open}
    opinions: dict[tuple[str, str], Opinion[float]] = {}
    for question in dict.fromkeys(question for question, _ in pairs):
        answers = [answer for asked, answer in pairs if asked == question]
        told = yield from grade(
            grading.judge, question, answers, low=grading.low, high=grading.high, template=grading.prompt
        )
        opinions |= {(question, answer): opinion for answer, opinion in zip(answers, told, strict=True)}
    return [_scored(one, opinions[texts_of(one)]) if one.open else one for one in candidates]


def _scored(one: Candidate, opinion: Opinion[float]) -> Candidate:
    one = replace(one, keys=(*one.keys[:-1], *opinion.keys, *one.keys[-1:]))
    return one.failed("judge.unscored", opinion.reason) if opinion.value is None else one.told(score=opinion.value)
