"""Has a teacher grade candidates, some times each; a grade that cannot be read is none, never a low one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from synth.requests import Request
from synth.tasks.asking import Deciding, filled, given
from synth.tasks.candidates import Candidate, Stage, ask
from synth.tasks.tagged import grade_of


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Grading:
    """How grades are asked for.

    prompt: a template that has the grade written between <grade> tags, a number from lowest to highest.
    grades: asked for each candidate, whose mean is its score; more than one needs asking.temperature above 0.
    asking: how the grader is asked.
    """

    prompt: Annotated[str, given("question", "answer")] = "rate_answer"
    lowest: float = Field(default=1.0, allow_inf_nan=False)
    highest: float = Field(default=10.0, allow_inf_nan=False)
    grades: int = Field(default=1, ge=1, le=64)
    asking: Deciding = Field(default_factory=lambda: Deciding(max_tokens=1024))

    @model_validator(mode="after")
    def _ordered(self) -> Grading:
        if self.lowest >= self.highest:
            raise ValueError("lowest, highest: the first must be below the second")
        return self


def grade(
    candidates: Sequence[Candidate], grading: Grading, values_of: Callable[[Candidate], Mapping[str, Any]]
) -> Stage:
    """With the figures score and grades (how many could be read); failed as judge.unscored where none could."""
    # Equal candidates of an item are graded apart: the number of the grade tells the requests apart.
    asked = [
        replace(one, at=one.at * grading.grades + number) for one in candidates for number in range(grading.grades)
    ]

    def request(one: Candidate) -> Request:
        return grading.asking.request(filled(grading.prompt, **values_of(one)), rollout=one.at)

    told = yield from ask(asked, grading.asking, request)
    groups = [told[at * grading.grades :][: grading.grades] for at in range(len(candidates))]
    return [_graded(one, group, grading) for one, group in zip(candidates, groups, strict=True)]


def _graded(one: Candidate, told: Sequence[Candidate], grading: Grading) -> Candidate:
    if not one.open:
        return one
    read = [grade_of(each.answer, grading.lowest, grading.highest) for each in told if each.open]
    grades = [grade for grade in read if grade is not None]
    one = replace(one, keys=(*one.keys, *(each.keys[-1] for each in told)))
    if not grades:
        return one.failed("judge.unscored")
    return one.told(score=sum(grades) / len(grades), grades=len(grades))
