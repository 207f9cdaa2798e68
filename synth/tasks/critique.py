"""Answers criticised and revised by a constitution, round after round, with the provenance of every step.

Source: Constitutional AI, Bai et al. 2022 (arXiv:2212.08073), section 3: a principle is drawn for each round, the
model criticises its answer by it and revises it; the final revision is trained on. Differs from it: a principle is not
drawn twice before all were; an answer that a principle finds no fault with stays as it is; the original and the
revision make a pair of preference, too.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field, computed_field
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item, Outcome, Sample, SampleKind
from synth.judges.judging import fence
from synth.replies import Finish, Parsed
from synth.requests import Message, digest
from synth.tasks.answering import posed
from synth.tasks.asking import Asking, filled, given
from synth.tasks.candidates import Candidate, ask
from synth.tasks.critique_constitution import Principle, principles
from synth.tasks.critique_revision import revised, same, told

Step = dict[str, Any]


def _readable(file: str) -> str:
    principles(file)
    return file


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Critique:
    """Answer each row's prompt (or take its text for the answer), then criticise and revise it `rounds` times.

    rounds: 4 as in the paper. principles: a YAML file of your own; "" takes the shipped one.
    prompt: the template that the row is asked with. critique_prompt, revise_prompt: see the shipped ones.
    answering, criticising, revising: how each is asked.
    Samples: the conversation with the last revision, and the pair of it (chosen) and the original (rejected).
    facts.steps tells of each round the principle, whether the answer changed and why not, and the requests.
    """

    name: ClassVar[str] = "critique"
    version: ClassVar[int] = 1

    rounds: int = Field(default=4, ge=1, le=100)
    principles: Annotated[str, AfterValidator(_readable)] = ""
    prompt: Annotated[str, given()] = "question"
    critique_prompt: Annotated[str, given("question", "answer", "critique", "fence")] = "critique_find"
    revise_prompt: Annotated[str, given("question", "answer", "critique", "revision", "fence")] = "critique_revise"
    answering: Asking = Field(default_factory=Asking)
    criticising: Asking = Field(default_factory=Asking)
    revising: Asking = Field(default_factory=Asking)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def principles_digest(self) -> str:
        """Of the file's content: with another one, items are concluded anew."""
        return digest([[one.id, one.critique, one.revision] for one in principles(self.principles)])

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        if not item.prompt.strip():
            return [Candidate().rejected("item.no_prompt").sample(item, 0)]
        made = yield from self._original(item)
        original, steps = made, list[Step]()
        for principle in self._drawn(desk.seed) if made.open else ():
            made, step = yield from self._round(item, made, principle)
            steps.append(step)
            if not made.open:
                break
        return self._samples(item, original, made, steps)

    def _original(self, item: Item) -> Generator[Any, Any, Candidate]:
        start = posed(Candidate(), self.prompt, {**item.options, "question": item.prompt}, item.messages)
        if item.text.strip() and start.open:
            return replace(start, parsed=Parsed(reasoning=None, answer=item.text.strip(), finish=Finish.STOP))
        asked = yield from ask([start], self.answering, lambda one: self.answering.request(one.asked))
        return asked[0]

    def _drawn(self, seed: int) -> list[Principle]:
        all_ = principles(self.principles)
        rng = np.random.default_rng([seed])
        drawn: list[Principle] = []
        while len(drawn) < self.rounds:
            drawn += [all_[at] for at in rng.permutation(len(all_))]
        return drawn[: self.rounds]

    def _round(
        self, item: Item, before: Candidate, principle: Principle
    ) -> Generator[Any, Any, tuple[Candidate, Step]]:
        """The answer after a round, and what happened. It is closed where a reply did not come or did not end: what a
        revision says that cannot be taken leaves the answer as it was."""
        found = yield from self._criticised(item, before, principle)
        step: Step = {"principle": principle.id, "changed": False, "requests": list(found.keys[len(before.keys) :])}
        unchanged = replace(before, keys=found.keys)
        if not found.open:
            return _closed(unchanged, found), {**step, "reason": found.reason}
        if same(found.answer, "none"):
            return unchanged, {**step, "reason": "critique.no_fault"}
        after = yield from self._mended(item, unchanged, principle, found.answer)
        step["requests"] = list(after.keys[len(before.keys) :])
        if after.open:
            return after, {**step, "changed": True, "reason": ""}
        lost = after.reason.startswith(("finish.", "teacher.", "answer."))
        unchanged = replace(unchanged, keys=after.keys)
        return _closed(unchanged, after) if lost else unchanged, {**step, "reason": after.reason}

    def _criticised(self, item: Item, before: Candidate, principle: Principle) -> Generator[Any, Any, Candidate]:
        messages = filled(
            self.critique_prompt, question=item.prompt, answer=before.answer, critique=principle.critique,
            fence=fence(item.prompt, before.answer),
        )  # fmt: skip
        asked = yield from ask([before], self.criticising, lambda one: self.criticising.request(messages))
        return asked[0]

    def _mended(
        self, item: Item, before: Candidate, principle: Principle, found: str
    ) -> Generator[Any, Any, Candidate]:
        mark = fence(item.prompt, before.answer, found)
        values = {"question": item.prompt, "answer": before.answer, "critique": found, "revision": principle.revision}
        messages = filled(self.revise_prompt, **values, fence=mark)
        blank = filled(self.revise_prompt, **{**values, "question": "", "answer": "", "critique": ""}, fence=mark)
        known = f"{item.prompt}\n{before.answer}"
        return (yield from revised(before, self.revising, messages, hidden=_said(blank), known=known))

    def _samples(self, item: Item, original: Candidate, made: Candidate, steps: Sequence[Step]) -> list[Sample]:
        changed = sum(step["changed"] for step in steps)
        faultless = sum(step["reason"] == "critique.no_fault" for step in steps)
        if made.open and not changed and faultless < len(steps):
            made = made.rejected("critique.no_revision")
        facts = {**made.facts, "steps": json.dumps(steps), "principles": ",".join(step["principle"] for step in steps)}
        made = replace(made.told(rounds=len(steps), changed=changed), facts=facts)
        final = told(made, item, 0)
        if not made.open or not changed:
            return [final]
        alike = same(made.answer, original.answer)
        pair = replace(
            final, number=1, kind=SampleKind.PAIR, messages=made.messages, chosen=made.turn(),
            rejected=original.turn(), outcome=Outcome.REJECTED if alike else Outcome.ACCEPTED,
            reason="critique.unchanged" if alike else "",
            tokens=final.tokens + (original.reply.completion_tokens if original.reply else 0),
        )  # fmt: skip
        return [final, pair]


def _closed(before: Candidate, by: Candidate) -> Candidate:
    """The answer as it was, with the reason why there is no further one."""
    return replace(before, outcome=by.outcome, reason=by.reason, facts={**before.facts, **by.facts})


def _said(messages: Sequence[Message]) -> str:
    return "\n".join(str(message["content"]) for message in messages)
