"""Documents labelled by how much they teach, from 0 to 5, by several votes of a judge: what a classifier learns from.

Source: FineWeb-Edu, Penedo et al. 2024 (arXiv:2406.17557), section 4: labels of 0 to 5 by a language model for some
hundred thousand pages, on which a small classifier is trained; 3 is its bound. Differs from it: the levels are our
own words; a document has several votes, and one that they do not agree on, or that too few can be read of, has no
label instead of a wrong one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Final

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item, Outcome, Sample, SampleKind
from synth.judges.judging import Judge, ask, fence, number, verdict_of
from synth.prompts import template
from synth.tasks.asking import filled, given
from synth.tasks.rephrase_text import beginning

TOP: Final = 5
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"score": {"enum": list(range(TOP + 1))}},
    "required": ["score"],
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Education:
    """Label each row's text with the mean of the votes on it.

    votes: of each text; more than one needs a warm judge. min_votes: that must be read. max_spread: between the
        lowest and the highest vote.
    excerpt_characters: a longer text is judged by its beginning, and that is what the label is of.
    prompt: a template with the levels, which asks for JSON with a score of 0 to 5. judge: who votes, and how.
    """

    name: ClassVar[str] = "education"
    version: ClassVar[int] = 1

    votes: int = Field(default=3, ge=1, le=100)
    min_votes: int = Field(default=2, ge=1)
    max_spread: int = Field(default=2, ge=0, le=TOP)
    excerpt_characters: int = Field(default=4_000, ge=100)
    prompt: Annotated[str, given("text", "fence")] = "education_score"
    judge: Judge = Field(default_factory=lambda: Judge(temperature=0.7))

    @model_validator(mode="after")
    def _sound(self) -> Education:
        if self.min_votes > self.votes:
            raise ValueError("min_votes: more than the votes, so that nothing would be labelled")
        if self.votes > 1 and not self.judge.temperature:
            raise ValueError("votes: at temperature 0 they are all the same; give judge.temperature, or one vote")
        return self

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        if not item.text.strip():
            return [
                Sample(
                    item=item.id, number=0, kind=SampleKind.LABEL, keys=(), outcome=Outcome.REJECTED,
                    reason="item.no_text",
                )
            ]  # fmt: skip
        excerpt = beginning(item.text, self.excerpt_characters)
        messages = filled(self.prompt, text=excerpt, fence=fence(excerpt))
        opinions = yield from ask(
            self.judge, [messages] * self.votes, _read, schema=SCHEMA, rollouts=range(self.votes)
        )  # fmt: skip
        said = [opinion.value for opinion in opinions if opinion.value is not None]
        outcome, reason = self._concluded(said)
        figures = {"votes": float(len(said))}
        if said:
            figures |= {"score": sum(said) / len(said), "spread": max(said) - min(said)}
        facts = {"prompt": template(self.prompt).title, "characters": f"{len(excerpt)} of {len(item.text)}"}
        if unread := sorted({opinion.reason for opinion in opinions if opinion.value is None}):
            facts["unscored"] = ", ".join(unread)
        keys = tuple(key for opinion in opinions for key in opinion.keys)
        return [
            Sample(
                item=item.id, number=0, kind=SampleKind.LABEL, keys=keys, outcome=outcome, reason=reason,
                text=excerpt, figures=figures, facts=facts,
            )
        ]  # fmt: skip

    def _concluded(self, said: list[float]) -> tuple[Outcome, str]:
        if len(said) < self.min_votes:
            return Outcome.FAILED, "judge.unscored"
        if max(said) - min(said) > self.max_spread:
            return Outcome.REJECTED, "label.votes_differ"
        return Outcome.ACCEPTED, ""


def _read(answer: str) -> float | None:
    said = number(verdict_of(answer, "score"), 0, TOP)
    return said if said is not None and said.is_integer() else None
