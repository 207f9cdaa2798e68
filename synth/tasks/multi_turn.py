"""Conversations of an assistant with a simulated user, who has a persona, a goal and an end.

Neither side sees what is the other's: the assistant not the persona and the goal, the user not the assistant's
reasoning; and a message in which one speaks for the other ends the conversation with a reason.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item, Sample
from synth.tasks.asking import Asking
from synth.tasks.candidates import Candidate, check_of
from synth.tasks.multi_turn_talk import Train, Turn, User, assistant_turn, samples_of, user_turn


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class MultiTurn:
    """Let a simulated user talk with the assistant about each row's goal, its prompt.

    A row's text (else options.persona) is the persona; its messages, such as a system's text, stand before the
        conversation and are the assistant's alone; options.opening is the user's first message, where it has one.
    conversations: of each row. max_turns: of the assistant; min_turns: before which the user may not be done.
    finished: only conversations that the user ended count; else one that came to max_turns does, too.
    train: each, a sample for each of the assistant's turns, which an export trains on one by one; last, one sample.
    A row with a verifier has the last answer checked by it.
    user: who plays the user. answering: how the assistant is asked.
    """

    name: ClassVar[str] = "multi_turn"
    version: ClassVar[int] = 1

    conversations: int = Field(default=1, ge=1, le=1024)
    max_turns: int = Field(default=4, ge=1, le=100)
    min_turns: int = Field(default=2, ge=1)
    finished: bool = False
    train: Train = "each"
    user: User = Field(default_factory=User)
    answering: Asking = Field(default_factory=Asking)

    @model_validator(mode="after")
    def _reachable(self) -> MultiTurn:
        if self.min_turns > self.max_turns:
            raise ValueError("min_turns: more than max_turns, so that nothing would be kept")
        return self

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        if not item.prompt.strip():
            return [Candidate().rejected("item.no_prompt").sample(item, 0)]
        samples: list[Sample] = []
        for at in range(desk.rollouts or self.conversations):
            turns: list[Turn] = []
            made = yield from self._conversation(item, Candidate(at=at, messages=item.messages), turns)
            made = made.told(turns=len(turns))
            samples += samples_of(item, len(samples), made, turns, self.train)
        return samples

    def _conversation(self, item: Item, made: Candidate, turns: list[Turn]) -> Generator[Any, Any, Candidate]:
        persona = item.text or str(item.options.get("persona", ""))
        message: str | None = str(item.options.get("opening", "")) or None
        stopped = "max_turns"
        while len(turns) < self.max_turns:
            if turns or message is None:
                made, message = yield from user_turn(made, item, self.user, persona)
            if message is None:
                stopped = "user"
                break
            made = replace(made, messages=(*made.messages, {"role": "user", "content": message}))
            made = yield from assistant_turn(made, self.answering, turns)
            if not made.open:
                break
        made = replace(made, facts={**made.facts, "stopped": stopped})
        if len(turns) < self.min_turns:
            return made.rejected("conversation.too_short")
        if self.finished and stopped != "user":
            return made.rejected("conversation.unfinished")
        if made.open and item.verifier:
            verdicts = yield [check_of(item, str(made.messages[-1]["content"]))]
            made = made.judged(verdicts[0])
        return made
