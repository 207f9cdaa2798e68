"""What a flow carries from stage to stage: a candidate, still open or with the reason why not, so that none is lost.

Stages are functions over lists of candidates that leave the closed ones as they are:

    made = yield from ask(made, self.writing, lambda candidate: ...)
    made = [taken(candidate, "task") for candidate in made]
    return [candidate.sample(item, number) for number, candidate in enumerate(made)]
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from synth.flows import Effect
from synth.items import Item, Outcome, Sample, SampleKind
from synth.replies import UNWRITABLE, Failure, Parsed, Reply
from synth.requests import Message, Request
from synth.tasks.asking import Asking
from synth.teachers.finishing import Answered, reply_with_policy
from synth.verdicts import Check, Verdict
from synth.verdicts import Outcome as Says

Stage = Generator[Effect, Any, "list[Candidate]"]
"""A part of a flow that candidates go through."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A row in the making.

    keys: the requests so far; the one whose reply is trained on stands last, as costs are counted by it. at: number of
    whatever it came from, free for the flow's use. text: what was made last (an instruction, a translation). asked:
    the conversation that is answered. messages: the prompt that it is trained on. reply, parsed: of the last request.
    outcome: accepted while nothing speaks against it.
    """

    keys: tuple[str, ...] = ()
    at: int = 0
    text: str = ""
    asked: tuple[Message, ...] = ()
    messages: tuple[Message, ...] = ()
    reply: Reply | None = None
    parsed: Parsed | None = None
    verdict: Verdict | None = None
    outcome: Outcome = Outcome.ACCEPTED
    reason: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def open(self) -> bool:
        return self.outcome is Outcome.ACCEPTED

    @property
    def answer(self) -> str:
        return self.parsed.answer if self.parsed else ""

    @property
    def length(self) -> int:
        """Of its last reply in tokens; in characters where the backend counts none."""
        return (self.reply.completion_tokens or len(self.reply.text)) if self.reply else 0

    def rejected(self, reason: str) -> Candidate:
        """Closed with a reason; a candidate that is closed already keeps its own."""
        return replace(self, outcome=Outcome.REJECTED, reason=reason) if self.open else self

    def failed(self, reason: str, error: str = "") -> Candidate:
        facts = {**self.facts, "error": error} if error else self.facts
        return replace(self, outcome=Outcome.FAILED, reason=reason, facts=facts) if self.open else self

    def told(self, **figures: float) -> Candidate:
        """With further figures."""
        return replace(self, figures={**self.figures, **figures})

    def answered(self, answered: Answered, asking: Asking) -> Candidate:
        """With a reply or a failure to its last request: how it ended decides whether it stays open."""
        if isinstance(answered, Failure):
            without = replace(self, keys=(*self.keys, answered.key), reply=None, parsed=None)
            return without.failed(f"teacher.{answered.stage}", answered.error)
        reply, parsed = answered
        with_it = replace(
            self, keys=(*self.keys, reply.key), reply=reply, parsed=parsed,
            figures={**self.figures, "temperature": reply.temperature},
            facts={**self.facts, "finish": parsed.finish.value},
        )  # fmt: skip
        if reason := asking.reason(parsed.finish):
            return with_it.rejected(reason)
        if UNWRITABLE.search(parsed.answer) or UNWRITABLE.search(parsed.reasoning or ""):
            return with_it.rejected("answer.invalid_text")
        return with_it if parsed.answer else with_it.rejected("answer.empty")

    def judged(self, verdict: Verdict, stage: str = "verify") -> Candidate:
        """With what a verifier said. Its own errors, and no score, are failures and never a wrong answer."""
        judged = replace(self, verdict=verdict)
        match verdict.outcome:
            case Says.RIGHT:
                return judged
            case Says.WRONG:
                return judged.rejected(f"{stage}.wrong")
            case _:
                return judged.failed(f"{stage}.{verdict.outcome.value}", verdict.reason)

    def turn(self) -> Message:
        """Its answer as the assistant's message."""
        reasoning = self.parsed.reasoning if self.parsed else None
        message = {"role": "assistant", "content": self.answer}
        return message if reasoning is None else {**message, "reasoning_content": reasoning}

    def sample(self, item: Item, number: int, kind: SampleKind = SampleKind.CONVERSATION) -> Sample:
        """As a conversation: its messages, and its answer where it came to one."""
        told = (*self.messages, self.turn()) if self.messages and self.parsed else self.messages
        return Sample(
            item=item.id, number=number, kind=kind, keys=self.keys, outcome=self.outcome, reason=self.reason,
            messages=told, verdict=self.verdict.outcome.value if self.verdict else "", figures=self.figures,
            facts=self.facts, tokens=self.reply.completion_tokens if self.reply else 0,
        )  # fmt: skip


def ask(candidates: Sequence[Candidate], asking: Asking, request_of: Callable[[Candidate], Request]) -> Stage:
    """Ask for each open candidate, all in one effect; none is yielded where none is open."""
    asked = [request_of(candidate) for candidate in candidates if candidate.open]
    if not asked:
        return list(candidates)
    answers = iter((yield from reply_with_policy(asked, asking.finish, asking.tags)))
    return [candidate.answered(next(answers), asking) if candidate.open else candidate for candidate in candidates]


def check_of(item: Item, answer: str) -> Check:
    """Of an answer to an item, by the item's own verifier."""
    return Check(kind=item.verifier, gold=item.gold, answer=answer, options=item.options)


def verify(candidates: Sequence[Candidate], check_of: Callable[[Candidate], Check], stage: str = "verify") -> Stage:
    """Check each open candidate, all in one effect."""
    checks = [check_of(candidate) for candidate in candidates if candidate.open]
    if not checks:
        return list(candidates)
    verdicts = iter((yield checks))
    return [candidate.judged(next(verdicts), stage) if candidate.open else candidate for candidate in candidates]


def tokens_of(reply: Reply | None, text: str) -> int:
    """Tokens of a part of a reply, by its share of the characters: what it was made in carries no loss."""
    if reply is None or not reply.text:
        return 0
    return min(reply.completion_tokens, round(reply.completion_tokens * len(text) / len(reply.text)))
