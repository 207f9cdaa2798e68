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
from synth.tasks.asking import Asking, filled, given
from synth.tasks.candidates import Candidate, ask
from synth.tasks.grading import Grading, graded
from synth.tasks.tagged import taken


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class BackTranslation:
    """For each row's text an instruction, kept where the pair is graded `min_grade` or better.

    instructions: made for each text; each is graded, and the best one kept. min_grade: that it needs.
    max_characters: of a text; what is longer is rejected, since half a text answers another request.
    prompt: the template of the instruction. writing: how it is asked for. grading: how the pairs are graded.
    """

    name: ClassVar[str] = "back_translation"
    version: ClassVar[int] = 1

    instructions: int = Field(default=1, ge=1, le=64)
    min_grade: float = Field(default=4.0, allow_inf_nan=False)
    max_characters: int = Field(default=20_000, ge=1)
    prompt: Annotated[str, given("text")] = "back_translation_instruction"
    writing: Asking = Field(default_factory=lambda: Asking(max_tokens=1024))
    grading: Grading = Field(default_factory=lambda: Grading(prompt="back_translation_rating", high=5))

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        if not item.text.strip():
            return [Candidate().rejected("item.no_text").sample(item, 0)]
        if len(item.text) > self.max_characters:
            return [Candidate().rejected("item.too_long").sample(item, 0)]
        messages = filled(self.prompt, text=item.text)
        made = [Candidate(at=number) for number in range(self.instructions)]
        made = yield from ask(made, self.writing, lambda one: self.writing.request(messages, rollout=one.at))
        made = [_copying(taken(one, "task"), item.text) for one in made]
        made = yield from graded(made, self.grading, lambda one: (one.text, item.text))
        made = [
            one if one.figures.get("score", 0) >= self.min_grade else one.rejected("judge.low_grade") for one in made
        ]
        best = max((one for one in made if one.open), key=lambda one: (one.figures["score"], -one.at), default=None)
        made = [one if one is best else one.rejected("choice.not_best") for one in made]
        return [_paired(one, item) for one in made]


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
