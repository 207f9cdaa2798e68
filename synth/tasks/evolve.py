"""Instructions made harder or rarer step by step, each step judged before the next starts from it.

Source: Evol-Instruct, Xu et al. 2023 (WizardLM, arXiv:2304.12244), section 3.2: operations in depth and breadth, and
four rules that eliminate. Differs from it: a step that fails starts again from the instruction before it, in the same
row; the prompts are our own; and an evolved text that is no instruction of its own is caught by its length as well.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item, Sample
from synth.requests import Request
from synth.tasks.answering import answer, refused
from synth.tasks.asking import Asking, Deciding, filled, given
from synth.tasks.candidates import Candidate, ask
from synth.tasks.tagged import taken, word_of

Operation = Annotated[str, given("instruction", "words")]
COPIED: Final = ("given task", "given prompt", "rewritten prompt", "rewritten task", "new task", "<task>", "</task>")
"""What an evolved instruction says that took over words of the prompt that asked for it."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Evolve:
    """Evolve each row's prompt for `rounds` steps, and answer what each step came to.

    rounds: steps a row; 4 as in the paper. deeper, broader: templates of operations; each step draws one of all,
        breadth with probability broader_share. words: by how many words a step may lengthen an instruction;
        max_words: of an evolved instruction.
    equal_prompt: the template that asks whether a step changed anything; None takes all steps.
    answer_prompt: the template that the evolved instruction is answered with.
    evolving, deciding, answering: how each is asked.
    """

    name: ClassVar[str] = "evolve"
    version: ClassVar[int] = 1

    rounds: int = Field(default=4, ge=1, le=20)
    deeper: Annotated[tuple[Operation, ...], Field(min_length=1)] = (
        "evolve_constraint", "evolve_deepen", "evolve_concretize", "evolve_reasoning", "evolve_input",
    )  # fmt: skip
    broader: tuple[Operation, ...] = ("evolve_breadth",)
    broader_share: float = Field(default=1 / 6, ge=0, le=1)
    words: int = Field(default=30, ge=1)
    max_words: int = Field(default=400, ge=1)
    equal_prompt: Annotated[str, given("before", "after")] | None = "evolve_equal"
    answer_prompt: Annotated[str, given("question")] = "question"
    evolving: Asking = Field(default_factory=Asking)
    deciding: Deciding = Field(default_factory=lambda: Deciding(max_tokens=512))
    answering: Asking = Field(default_factory=Asking)

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        if not item.prompt.strip():
            return [Candidate().rejected("item.no_prompt").sample(item, 0)]
        current = item.prompt
        samples: list[Sample] = []
        for number in range(self.rounds):
            made = yield from self._step(current, number, desk.seed)
            samples.append(made.sample(item, number))
            if made.open:
                current = made.text
        return samples

    def _step(self, current: str, number: int, seed: int) -> Generator[Any, Any, Candidate]:
        operation = self._operation(seed, number)
        start = Candidate(at=number, figures={"round": number}, facts={"operation": operation})
        made = yield from ask([start], self.evolving, lambda one: self._evolve(current, operation, one))
        made = [self._acceptable(taken(made[0], "task"), current)]
        if self.equal_prompt is not None:
            before = made[0].text
            asked = yield from ask(made, self.deciding, lambda one: self._compare(current, one))
            made = [_differs(replace(asked[0], text=before))]
        made = yield from answer(made, self.answering, self.answer_prompt)
        return refused(made[0])

    def _operation(self, seed: int, number: int) -> str:
        rng = np.random.default_rng([seed, number])
        broad = bool(self.broader) and rng.random() < self.broader_share
        of = self.broader if broad else self.deeper
        return of[int(rng.integers(len(of)))]

    def _evolve(self, current: str, operation: str, one: Candidate) -> Request:
        return self.evolving.request(filled(operation, instruction=current, words=self.words), rollout=one.at)

    def _compare(self, current: str, one: Candidate) -> Request:
        assert self.equal_prompt is not None
        return self.deciding.request(filled(self.equal_prompt, before=current, after=one.text), rollout=one.at)

    def _acceptable(self, made: Candidate, current: str) -> Candidate:
        if not made.open:
            return made
        said = made.text.casefold()
        if any(words in said and words not in current.casefold() for words in COPIED):
            return made.rejected("evolve.copied_words")
        if said.split() == current.casefold().split():
            return made.rejected("evolve.unchanged")
        return made.rejected("evolve.too_long") if len(said.split()) > self.max_words else made


def _differs(made: Candidate) -> Candidate:
    """Rejected unless the teacher said that the two differ; what said neither is no judgement."""
    if not made.open:
        return made
    said = word_of(made.answer, ("same", "different"))
    if said is None:
        return made.failed("judge.unscored")
    return made if said == "different" else made.rejected("evolve.no_gain")
