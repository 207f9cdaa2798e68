"""The best of N answers by a grader or by the row's verifier, kept where it is good enough and clearly the best.

Source: best of N by a reward model, as Llama 3 (arXiv:2407.21783) and Qwen2.5 (arXiv:2412.15115) choose their
fine-tuning data. Every other answer is kept, too, as rejected with its score.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item
from synth.tasks.asking import Asking, given
from synth.tasks.candidates import Candidate
from synth.tasks.grading import Grading
from synth.tasks.scoring import scored, starts


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class BestOf:
    """Answer each row's prompt `replies` times and keep the answer of the highest score.

    score_by: grader, by `grading`; verifier, by the row's: its score where it gives degrees, else 1 for right and 0
        for wrong. Rows with a verifier have wrong answers rejected before they are graded, too.
    min_score: that the best one needs; None for no bound. min_margin: by how much it must lead the next of another
        text; 0 takes the first of equals.
    prompt: the template that the row is asked with. answering: how. grading: how answers are graded.
    """

    name: ClassVar[str] = "best_of"
    version: ClassVar[int] = 1

    replies: int = Field(default=8, ge=1, le=1024)
    score_by: Literal["grader", "verifier"] = "grader"
    min_score: float | None = Field(default=None, allow_inf_nan=False)
    min_margin: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    prompt: Annotated[str, given()] = "question"
    answering: Asking = Field(default_factory=Asking)
    grading: Grading = Field(default_factory=Grading)

    @model_validator(mode="after")
    def _reachable(self) -> BestOf:
        if self.score_by == "grader" and self.min_score is not None and self.min_score > self.grading.high:
            raise ValueError("min_score: above grading.high, so that nothing would be kept")
        return self

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        grading = self.grading if self.score_by == "grader" else None
        made = starts(item, self.prompt, desk.rollouts or self.replies)
        made = yield from scored(item, made, self.answering, grading)
        return [one.sample(item, one.at) for one in self._best(made)]

    def _best(self, made: Sequence[Candidate]) -> list[Candidate]:
        ranked = sorted((one for one in made if one.open), key=lambda one: (-one.figures["score"], one.at))
        if not ranked:
            return list(made)
        best = ranked[0]
        others = [one.figures["score"] for one in ranked if one.answer != best.answer]
        if others:
            best = best.told(margin=best.figures["score"] - others[0])
        if self.min_score is not None and best.figures["score"] < self.min_score:
            best = best.rejected("choice.low_score")
        elif best.figures.get("margin", self.min_margin) < self.min_margin:
            best = best.rejected("choice.small_margin")
        return [best if one.at == best.at else one.rejected("choice.not_best") for one in made]
