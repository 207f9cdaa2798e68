"""Instructions for texts that people wrote: the text is the answer, the request for it is made, and both are graded.

Source: instruction back-translation, Li et al. 2023 (arXiv:2308.06259): self-augmentation, then self-curation with
grades from 1 to 5, of which the paper keeps 5 (and 4 in one of its sets).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item, Sample
from synth.requests import Request
from synth.tasks.asking import Asking, Deciding, filled, given
from synth.tasks.candidates import Candidate, ask
from synth.tasks.tagged import grade_of, taken


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class BackTranslation:
    """For each row's text an instruction, kept where the pair is graded `min_grade` or better.

    instructions: made for each text; each is graded, and the best one kept. min_grade: mean over the grades, of 1 to 5.
    grades: asked for each pair (more than one needs `grading.temperature` above 0).
    max_characters: of a text; what is longer is rejected, since half a text answers another request.
    instruction_prompt, grade_prompt: templates. writing, grading: how each is asked.
    """

    name: ClassVar[str] = "back_translation"
    version: ClassVar[int] = 1

    instructions: int = Field(default=1, ge=1, le=64)
    min_grade: float = Field(default=4.0, ge=1, le=5)
    grades: int = Field(default=1, ge=1, le=16)
    max_characters: int = Field(default=20_000, ge=1)
    instruction_prompt: Annotated[str, given("text")] = "back_translation_instruction"
    grade_prompt: Annotated[str, given("instruction", "text")] = "back_translation_rating"
    writing: Asking = Field(default_factory=lambda: Asking(max_tokens=1024))
    grading: Deciding = Field(default_factory=lambda: Deciding(max_tokens=1024))

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        if not item.text.strip():
            return [Candidate().rejected("item.no_text").sample(item, 0)]
        if len(item.text) > self.max_characters:
            return [Candidate().rejected("item.too_long").sample(item, 0)]
        messages = filled(self.instruction_prompt, text=item.text)
        made = [Candidate(at=number) for number in range(self.instructions)]
        made = yield from ask(made, self.writing, lambda one: self.writing.request(messages, rollout=one.at))
        made = [_copying(taken(one, "task"), item.text) for one in made]
        # Equal instructions of one text are graded apart: the number of the grade tells the requests apart.
        asked = [replace(one, at=one.at * self.grades + grade) for one in made for grade in range(self.grades)]
        graded = yield from ask(asked, self.grading, lambda one: self._grade(item, one))
        made = [self._graded(one, graded[at * self.grades :][: self.grades]) for at, one in enumerate(made)]
        best = max((one for one in made if one.open), key=lambda one: (one.figures["score"], -one.at), default=None)
        made = [one if one is best else one.rejected("choice.not_best") for one in made]
        return [_paired(one, item) for one in made]

    def _grade(self, item: Item, one: Candidate) -> Request:
        return self.grading.request(filled(self.grade_prompt, instruction=one.text, text=item.text), rollout=one.at)

    def _graded(self, made: Candidate, graded: list[Candidate]) -> Candidate:
        """With the mean of the grades that could be read; where none could, it is unscored and not a bad one."""
        if not made.open:
            return made
        keys = (*made.keys, *(one.keys[-1] for one in graded))
        told = [grade_of(one.answer, 1, 5) for one in graded if one.open]
        grades = [grade for grade in told if grade is not None]
        made = replace(made, keys=keys)
        if not grades:
            return made.failed("judge.unscored")
        made = made.told(score=sum(grades) / len(grades), grades=len(grades))
        return made if made.figures["score"] >= self.min_grade else made.rejected("judge.low_grade")


def _copying(made: Candidate, text: str) -> Candidate:
    """An instruction that quotes the whole text or most of it gives its answer away."""
    if not made.open:
        return made
    if made.text in text or text in made.text:
        return made.rejected("instruction.copies_text")
    return made.rejected("instruction.too_long") if len(made.text) > max(len(text), 200) else made


def _paired(made: Candidate, item: Item) -> Sample:
    """The instruction, and the text as its answer. Its tokens are not the teacher's, and are counted at export."""
    turns = ({"role": "user", "content": made.text}, {"role": "assistant", "content": item.text}) if made.text else ()
    sample = replace(made, reply=None, parsed=None).sample(item, made.at)
    return replace(sample, messages=turns)
