"""Instructions that a given person would write, answered: as diverse as the personas are.

Source: Persona Hub, Ge et al. 2024 (arXiv:2406.20094); Tuelu 3 (arXiv:2411.15124) makes its mathematics, code and
instruction data so. Each row is a persona; each prompt template makes another kind of task of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item
from synth.tasks.answering import answer, refused
from synth.tasks.asking import Asking, filled, given
from synth.tasks.candidates import Candidate, ask
from synth.tasks.tagged import taken


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Persona:
    """For each row, a persona (its text, else its prompt), and each template: tasks, and an answer to each.

    prompts: templates that are given the persona. tasks: made of each persona and template.
    answer_prompt: the template that a task is answered with. writing, answering: how each is asked.
    max_words: of a task that is taken.
    """

    name: ClassVar[str] = "persona"
    version: ClassVar[int] = 1

    prompts: Annotated[tuple[Annotated[str, given("persona")], ...], Field(min_length=1)] = ("persona_instruction",)
    tasks: int = Field(default=1, ge=1, le=1000)
    answer_prompt: Annotated[str, given("question")] = "question"
    max_words: int = Field(default=400, ge=1)
    writing: Asking = Field(default_factory=Asking)
    answering: Asking = Field(default_factory=Asking)

    def items(self, rows: Iterable[Item]) -> Iterator[Item]:
        """Persona by template, one after the other."""
        for row in rows:
            for prompt in dict.fromkeys(self.prompts):
                options = {**row.options, "prompt": prompt}
                made = replace(row, id=f"{row.id}/{prompt}", options=options, skill=row.skill or prompt)
                yield replace(made, gold=None, verifier="")  # of the row's own question, which nobody answers here

    def flow(self, item: Item, desk: Desk) -> Flow:
        persona, prompt = item.text or item.prompt, str(item.options["prompt"])
        if not persona.strip():
            return [Candidate().rejected("item.no_persona").sample(item, 0)]
        messages = filled(prompt, persona=persona)
        made = [Candidate(at=number, facts={"persona_prompt": prompt}) for number in range(self.tasks)]
        made = yield from ask(made, self.writing, lambda one: self.writing.request(messages, rollout=one.at))
        made = [self._short(taken(one, "task")) for one in made]
        made = _once(made)
        made = yield from answer(made, self.answering, self.answer_prompt)
        return [refused(one).sample(item, one.at) for one in made]

    def _short(self, made: Candidate) -> Candidate:
        return made.rejected("task.too_long") if made.open and len(made.text.split()) > self.max_words else made


def _once(made: list[Candidate]) -> list[Candidate]:
    """Tasks that repeat an earlier one of the same persona and template are rejected: cold teachers repeat."""
    seen: set[str] = set()
    kept: list[Candidate] = []
    for one in made:
        words = " ".join(one.text.casefold().split())
        kept.append(one.rejected("task.repeated") if one.open and words in seen else one)
        if one.open:
            seen.add(words)
    return kept
