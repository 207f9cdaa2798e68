"""Answers given with a specification in sight, and exported without it: deliberation that is to become a habit.

Source: deliberative alignment, Guan et al. 2024 (arXiv:2412.16339): the specification stands in the prompt of the
generation, a judge that sees it grades the answers (the lowest of several grades counts), and training is on prompts
without it. Differs from it: that it is gone is checked, in runs of eight words, in the prompt and in the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final

from pydantic import AfterValidator, ConfigDict, Field, computed_field, model_validator
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item
from synth.judges.judging import Judge, fence, number, verdict_of
from synth.judges.judging import ask as ask_judge
from synth.requests import digest
from synth.tasks.answering import posed
from synth.tasks.asking import Asking, filled, given
from synth.tasks.candidates import Candidate, Stage, ask
from synth.tasks.critique_constitution import specification
from synth.tasks.rephrase_fidelity import leaks

LOW: Final = 1
HIGH: Final = 10
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"grade": {"type": "integer", "minimum": LOW, "maximum": HIGH}},
    "required": ["grade"],
    "additionalProperties": False,
}


def _readable(file: str) -> str:
    specification(file)
    return file


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Deliberate:
    """Answer each row's prompt with a specification in sight, grade the answers by it, and export them without it.

    specification: a text file of your own; "" takes the short one that is shipped. replies: to each prompt.
    grades: of each answer, by a judge that sees the specification; the lowest counts, and must be min_grade of 10.
        0 grades for no judge.
    answer_may_quote: of the specification, eight words in a row. The reasoning always may: it is to learn to recall.
    prompt: is given question and specification. grade_prompt: answer and fence, too. answering, judge: how each is
        asked.
    facts.specification is the digest of its text.
    """

    name: ClassVar[str] = "deliberate"
    version: ClassVar[int] = 1

    specification: Annotated[str, AfterValidator(_readable)] = ""
    replies: int = Field(default=1, ge=1, le=1024)
    grades: int = Field(default=2, ge=0, le=100)
    min_grade: int = Field(default=8, ge=LOW, le=HIGH)
    answer_may_quote: bool = False
    prompt: Annotated[str, given("question", "specification")] = "deliberate_answer"
    grade_prompt: Annotated[str, given("question", "answer", "specification", "fence")] = "deliberate_grade"
    answering: Asking = Field(default_factory=lambda: Asking(max_tokens=4096))
    judge: Judge = Field(default_factory=lambda: Judge(temperature=0.7))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def specification_digest(self) -> str:
        """Of the file's content: with another one, items are concluded anew."""
        return digest(specification(self.specification))

    @model_validator(mode="after")
    def _warm(self) -> Deliberate:
        if self.grades > 1 and not self.judge.temperature:
            raise ValueError("grades: at temperature 0 they are all the same; give judge.temperature, or one grade")
        return self

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        if not item.prompt.strip():
            return [Candidate().rejected("item.no_prompt").sample(item, 0)]
        text = specification(self.specification)
        values = {"question": item.prompt, "specification": text}
        start = posed(
            Candidate(facts={"specification": self.specification_digest}),
            self.prompt,
            values,
            item.messages,
            item.prompt,
        )
        made = [replace(start, at=at) for at in range(desk.rollouts or self.replies)]
        made = yield from ask(made, self.answering, lambda one: self.answering.request(one.asked, rollout=one.at))
        made = [self._without(one, item.prompt, text) for one in made]
        if self.grades:
            made = yield from self._graded(item, made, text)
        return [one.sample(item, one.at) for one in made]

    def _without(self, one: Candidate, question: str, text: str) -> Candidate:
        """Rejected where the specification stands in what is exported."""
        if leaks("\n".join(str(message["content"]) for message in one.messages), text):
            return one.rejected("leak.specification_in_prompt")
        quotes = one.open and not self.answer_may_quote and leaks(one.answer, text, question)
        return one.rejected("leak.specification_in_answer") if quotes else one

    def _graded(self, item: Item, made: Sequence[Candidate], text: str) -> Stage:
        graded = [one for one in made if one.open for _ in range(self.grades)]
        asked = [
            filled(
                self.grade_prompt, question=item.prompt, answer=one.answer, specification=text,
                fence=fence(item.prompt, one.answer),
            )
            for one in graded
        ]  # fmt: skip
        votes = [vote for _ in range(len(graded) // self.grades) for vote in range(self.grades)]
        opinions = yield from ask_judge(self.judge, asked, _read, schema=SCHEMA, rollouts=votes)
        told: list[Candidate] = []
        at = 0
        for one in made:
            if one.open:
                own, at = opinions[at : at + self.grades], at + self.grades
                one = replace(one, keys=(*one.keys, *(key for opinion in own for key in opinion.keys)))
                one = self._judged(one, [opinion.value for opinion in own])
            told.append(one)
        return told

    def _judged(self, one: Candidate, grades: Sequence[float | None]) -> Candidate:
        read = [grade for grade in grades if grade is not None]
        if len(read) < len(grades):
            return one.failed("judge.unscored")
        one = one.told(score=min(read))
        return one if min(read) >= self.min_grade else one.rejected("judge.low_grade")


def _read(answer: str) -> float | None:
    return number(verdict_of(answer, "grade"), LOW, HIGH)
