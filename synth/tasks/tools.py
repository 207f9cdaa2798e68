"""Tasks that are done with tools whose state is simulated, kept only where a checker finds the goal reached.

Sources: Kimi K2 (arXiv:2507.20534): simulated tools with state and simulated users, trajectories kept by a judge;
SkillGym (arXiv:2609.27717): a checker that passes an empty trajectory checks nothing. Differs from them: the checker
is no model and no program, but conditions on the final state and the row's own verifier; a row whose checker passes
when nothing was done is failed before anything is asked.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item, Outcome, Sample
from synth.tasks.asking import Asking
from synth.tasks.candidates import Candidate, check_of
from synth.tasks.multi_turn_talk import (
    Train,
    Turn,
    User,
    assistant_fault,
    heard,
    samples_of,
    turn_of,
    user_turn,
)
from synth.tasks.tools_calls import Call, calls_of, spoken
from synth.tasks.tools_machine import Machine, World, machine_of
from synth.tasks.tools_results import Simulator, called
from synth.teachers.finishing import reply_with_policy

Made = Generator[Any, Any, Candidate]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Tools:
    """Let the assistant do what each row's prompt asks, with the row's tools; see synth.tasks.tools_machine for what a
    row's options say of them.

    trajectories: of each row. max_steps: replies of the assistant; max_calls: in one reply; max_errors: calls of
        unknown functions or with wrong arguments, which are told to the assistant, before a trajectory is rejected.
    simulator: plays the tools; None for the row's state machine.
    user: plays a user whose goal is the row's prompt, in at most user_turns messages; None for one who says the
        prompt, and nothing more.
    train: each, a sample for each of the assistant's turns; last, one of the whole.
    answering: how the assistant is asked.
    The goal's conditions must hold in the end, and the row's verifier, where it has one, must find the last answer
    right. facts.tools are the declarations.
    """

    name: ClassVar[str] = "tools"
    version: ClassVar[int] = 1

    trajectories: int = Field(default=1, ge=1, le=1024)
    max_steps: int = Field(default=12, ge=1, le=1000)
    max_calls: int = Field(default=8, ge=1, le=100)
    max_errors: int = Field(default=2, ge=0)
    simulator: Simulator | None = None
    user: User | None = None
    user_turns: int = Field(default=4, ge=1, le=100)
    train: Train = "each"
    answering: Asking = Field(default_factory=Asking)

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        machine = machine_of(item, needs_behaviour=self.simulator is None)
        if isinstance(machine, str) or not item.prompt.strip():
            reason = machine if isinstance(machine, str) else "item.no_prompt"
            return [Candidate().failed(reason).sample(item, 0)]
        empty = yield from _checked(item, machine, World.of(machine), Candidate(), "")
        if empty.outcome is not Outcome.REJECTED:
            reason = "checker.passes_empty" if empty.open else empty.reason.replace("verify.", "checker.")
            return [replace(empty, outcome=Outcome.FAILED, reason=reason).sample(item, 0)]
        samples: list[Sample] = []
        for at in range(desk.rollouts or self.trajectories):
            turns: list[Turn] = []
            start = Candidate(at=at, messages=item.messages, facts={"tools": json.dumps(machine.tools)})
            made = yield from self._trajectory(item, machine, start, turns)
            samples += samples_of(item, len(samples), made.told(steps=len(turns)), turns, self.train)
        return samples

    def _trajectory(self, item: Item, machine: Machine, made: Candidate, turns: list[Turn]) -> Made:
        """A conversation to its end. Between two messages of the user the assistant calls tools as long as it likes."""
        world, answer, errors, number = World.of(machine), "", 0, 0
        for said in range(self.user_turns if self.user else 1):
            made, message = yield from self._message(item, made, said)
            if message is None:
                break
            made = replace(made, messages=(*made.messages, {"role": "user", "content": message}))
            answer = ""
            while made.open and not answer:
                if len(turns) == self.max_steps:
                    return made.rejected("steps.too_many")
                made, calls, answer = yield from self._step(made, machine, number, turns)
                number += len(calls)
                for call in calls:
                    if made.open:
                        made, wrong = yield from called(made, machine, world, call, self.simulator)
                        errors += wrong
                if errors > self.max_errors:
                    made = made.rejected("call.too_many_errors")
            if not made.open:
                break
        made = made.told(errors=errors, calls=sum(world.calls.values()))
        return (yield from _checked(item, machine, world, made, answer)) if made.open else made

    def _message(self, item: Item, made: Candidate, said: int) -> Generator[Any, Any, tuple[Candidate, str | None]]:
        if self.user is None:
            return made, item.prompt
        persona = item.text or str(item.options.get("persona", ""))
        return (yield from user_turn(made, item, self.user, persona))

    def _step(
        self, made: Candidate, machine: Machine, number: int, turns: list[Turn]
    ) -> Generator[Any, Any, tuple[Candidate, tuple[Call, ...], str]]:
        """The conversation with the assistant's next message, its calls, and its answer where it calls nothing."""
        request = replace(self.answering.request(heard(made.messages), rollout=made.at), tools=machine.tools)
        answers = yield from reply_with_policy([request], self.answering.finish, self.answering.tags)
        asked = made.answered(answers[0], self.answering)
        after = replace(asked, reply=None, parsed=None)
        if asked.reply is None or asked.parsed is None or not (asked.open or asked.reason == "answer.empty"):
            return after, (), ""
        calls, said = calls_of(asked.reply, asked.parsed, number), spoken(asked.reply, asked.parsed)
        if calls is None:
            return replace(after, outcome=Outcome.REJECTED, reason="call.unreadable"), (), ""
        if not calls and not said:
            return after, (), ""
        # A turn with calls need not say anything.
        after = replace(after, outcome=Outcome.ACCEPTED, reason="")
        if reason := "call.too_many" if len(calls) > self.max_calls else assistant_fault(said):
            return after.rejected(reason), (), ""
        turn = {**asked.turn(), "content": said}
        turn = {**turn, "tool_calls": [call.message() for call in calls]} if calls else turn
        after = replace(after, messages=(*made.messages, turn))
        turns.append(turn_of(after, asked))
        return after, calls, "" if calls else said


def _checked(item: Item, machine: Machine, world: World, made: Candidate, answer: str) -> Made:
    """Open where the goal is reached and the answer right."""
    if not all(world.holds(condition) for condition in machine.goal):
        return made.rejected("check.goal")
    if item.verifier:
        verdicts = yield [check_of(item, answer)]
        made = made.judged(verdicts[0])
    return made
