"""Questions with answers, solved by a teacher that reasons: rollouts in waves, each verified, the best traces kept.

Source: rejection sampling as of DeepSeek-R1's third stage (arXiv:2501.12948); what is rejected is kept with its
reason, since OpenThoughts3 (arXiv:2506.04178) found no filter on answers that beat keeping all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item
from synth.rollouts.settings import Rollouts
from synth.tasks.answering import posed
from synth.tasks.asking import Asking, given
from synth.tasks.candidates import Candidate
from synth.tasks.choice import Choice, chosen
from synth.tasks.rolling import allocation, check_heat, rolled, verified_by


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Distill:
    """Solve each row's prompt some times, verify the answers, and keep the traces that `choice` takes.

    prompt: the template that the question is asked with; it is given `question` and the row's options.
    train_on: the prompt of a kept conversation: asked, as the teacher saw it; question, the row's own words alone, so
        that what the template demands becomes what the student does by itself.
    rollouts: how many, at which temperatures, and when to stop. answering: how the teacher is asked.
    choice: which right traces are kept.
    Rows without a verifier are not verified: every answer that ended well counts as right.
    """

    name: ClassVar[str] = "distill"
    version: ClassVar[int] = 1

    prompt: Annotated[str, given()] = "solve_boxed"
    train_on: Literal["asked", "question"] = "asked"
    rollouts: Rollouts = Field(default_factory=Rollouts)
    answering: Asking = Field(default_factory=lambda: Asking(max_tokens=8192))
    choice: Choice = Field(default_factory=Choice)

    @model_validator(mode="after")
    def _heated(self) -> Distill:
        check_heat(self.rollouts, self.answering)
        return self

    @property
    def pilot_rollouts(self) -> int | None:
        """Of every item in a first pass, where rollouts are shared out over all of them; None where they are not."""
        return self.rollouts.pilot_rollouts

    def allocate(self, pilots: Sequence[tuple[int, int]], seed: int) -> Sequence[int]:
        """Of each pilot's trials and right ones, the rollouts that its item gets in all."""
        return allocation(self.rollouts, pilots, seed)

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        if not item.prompt.strip():
            return [Candidate().rejected("item.no_prompt").sample(item, 0)]
        plain = item.prompt if self.train_on == "question" else ""
        start = posed(Candidate(), self.prompt, {**item.options, "question": item.prompt}, item.messages, plain)
        made = yield from rolled(start, self.rollouts, self.answering, desk, verified_by(item))
        return [one.sample(item, one.at) for one in chosen(made, self.choice)]
