"""Generate, verify, then take it, mend it or start again: a loop that ends.

Source: Aletheia's generator, verifier and reviser: the verifier shares no context with the generator, so that it cannot
be led along the same way; small faults are mended, critical ones begin anew; all within a budget. Every attempt is
kept with what was said of it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item
from synth.judges.judging import Judge, Opinion, fence, verdict_of
from synth.judges.judging import ask as ask_judge
from synth.tasks.answering import posed
from synth.tasks.asking import Asking, filled, given
from synth.tasks.candidates import Candidate, Stage, ask, check_of, verify
from synth.tasks.critique_revision import revised, told

SAYS: Final = ("correct", "minor", "critical")
SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"verdict": {"enum": list(SAYS)}, "issues": {"type": "string"}},
    "required": ["verdict", "issues"],
    "additionalProperties": False,
}
MOST_ISSUES: Final = 4_000
"""Characters of what the verifier says that the reviser is shown."""

Finding = tuple[str, str]
"""What the verifier says, and which faults."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class VerifyRevise:
    """Answer each row's prompt until the verifier finds no fault, or the budget is spent.

    restarts: after the first answer, where the verifier finds a critical fault, or an answer cannot be mended.
    revisions: of one answer. Both together bound the requests: at most (restarts + 1) * (revisions + 1) answers.
    A row with a verifier of its own has the accepted answer checked by it, too.
    prompt: the template that the row is asked with. verify_prompt: is given question, answer and fence, and asks for
        JSON of a verdict (correct, minor, critical) and issues. revise_prompt: is given the issues, too.
    answering, revising: how the two are asked. judge: who verifies, and how.
    """

    name: ClassVar[str] = "verify_revise"
    version: ClassVar[int] = 1

    restarts: int = Field(default=2, ge=0, le=100)
    revisions: int = Field(default=2, ge=0, le=100)
    prompt: Annotated[str, given()] = "question"
    verify_prompt: Annotated[str, given("question", "answer", "fence")] = "verify_answer"
    revise_prompt: Annotated[str, given("question", "answer", "issues", "fence")] = "revise_answer"
    answering: Asking = Field(default_factory=Asking)
    revising: Asking = Field(default_factory=Asking)
    judge: Judge = Field(default_factory=Judge)

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        if not item.prompt.strip():
            return [Candidate().rejected("item.no_prompt").sample(item, 0)]
        start = posed(Candidate(), self.prompt, {**item.options, "question": item.prompt}, item.messages)
        if not start.open:
            return [start.sample(item, 0)]
        made: list[Candidate] = []
        for attempt in range(self.restarts + 1):
            made += yield from self._attempt(item, replace(start, at=attempt))
            # A teacher that is gone is asked again by the next run.
            if made[-1].open or made[-1].reason.startswith("teacher."):
                break
        if made[-1].open and item.verifier:
            made[-1:] = yield from verify(made[-1:], lambda one: check_of(item, one.answer))
        return [told(one, item, number) for number, one in enumerate(made)]

    def _attempt(self, item: Item, start: Candidate) -> Stage:
        """An answer and its revisions, in order; at most the last is open."""
        asked = yield from ask([start], self.answering, lambda one: self.answering.request(one.asked, rollout=one.at))
        made = [asked[0].told(attempt=start.at, revision=0)]
        for revision in range(1, self.revisions + 2):
            if not made[-1].open:
                break
            made[-1], issues = yield from self._verified(item, made[-1])
            if made[-1].reason != "review.minor" or revision > self.revisions:
                break
            before = replace(made[-1], outcome=start.outcome, reason="").told(revision=revision)
            made.append((yield from self._revised(item, before, issues, [one.answer for one in made])))
        return made

    def _verified(self, item: Item, made: Candidate) -> Generator[Any, Any, tuple[Candidate, str]]:
        # The question and the answer, and nothing of how it was come to.
        messages = filled(
            self.verify_prompt, question=item.prompt, answer=made.answer, fence=fence(item.prompt, made.answer)
        )
        opinions: list[Opinion[Finding]]
        opinions = yield from ask_judge(self.judge, [messages], _read, schema=SCHEMA)
        opinion = opinions[0]
        made = replace(made, keys=(*made.keys, *opinion.keys))
        if opinion.value is None:
            return made.failed("review.unscored", opinion.reason), ""
        says, issues = opinion.value
        return (made if says == "correct" else made.rejected(f"review.{says}")), issues

    def _revised(self, item: Item, before: Candidate, issues: str, seen: list[str]) -> Generator[Any, Any, Candidate]:
        mark = fence(item.prompt, before.answer, issues)
        values = {"question": item.prompt, "answer": before.answer, "issues": issues, "fence": mark}
        messages = filled(self.revise_prompt, **values)
        hidden = "\n".join(
            str(message["content"])
            for message in filled(self.revise_prompt, question="", answer="", issues="", fence=mark)
        )
        known = f"{item.prompt}\n{before.answer}"
        return (yield from revised(before, self.revising, messages, hidden=hidden, known=known, seen=seen))


def _read(answer: str) -> Finding | None:
    said, issues = verdict_of(answer, "verdict"), verdict_of(answer, "issues")
    if not isinstance(said, str) or said.strip().lower() not in SAYS:
        return None
    return said.strip().lower(), issues.strip()[:MOST_ISSUES] if isinstance(issues, str) else ""
