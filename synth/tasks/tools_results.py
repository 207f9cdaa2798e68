"""What a call gives back: by the row's state machine, or by a teacher that plays the system behind the tool."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.items import Outcome
from synth.judges.judging import fence
from synth.tasks.asking import Deciding, filled, given
from synth.tasks.candidates import Candidate
from synth.tasks.tools_calls import Call
from synth.tasks.tools_machine import MOST_CHARACTERS, Machine, World, size
from synth.teachers.finishing import reply_with_policy
from synth.verdicts import Check
from synth.verdicts import Outcome as Says
from synth.verifiers.json_schema import NotJson, json_part, strict_json

RETRY_TEMPERATURE: Final = 0.7
"""Of the one further try where a result cannot be read: at 0 it would come again."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Simulator:
    """A teacher that is shown a function's declaration, the state and a call, and says the result and the new state.

    prompt: is given tool, state, call and fence, and asks for JSON of result and state. asking: how it is asked.
    """

    prompt: Annotated[str, given("tool", "state", "call", "fence")] = "tools_result"
    asking: Deciding = Field(default_factory=Deciding)


def called(
    made: Candidate, machine: Machine, world: World, call: Call, simulator: Simulator | None
) -> Generator[Any, Any, tuple[Candidate, bool]]:
    """The conversation with the call's result, or closed; and whether the call was a mistake, which the result says."""
    made, wrong = yield from _mistake(made, machine, call)
    result: Any = {"error": wrong}
    if made.open and not wrong:
        if simulator is None:
            result = world.call(call.name, call.arguments, machine.behaviour[call.name])
        else:
            made, result = yield from _simulated(made, machine, world, call, simulator)
    if made.open:
        made = replace(made, messages=(*made.messages, call.result(result)))
    return made, bool(wrong)


def _mistake(made: Candidate, machine: Machine, call: Call) -> Generator[Any, Any, tuple[Candidate, str]]:
    """What is wrong with a call, "" for nothing."""
    schema = machine.schemas.get(call.name)
    if schema is None:
        return made, "no such function"
    if not schema:
        return made, ""
    # A verifier's work: a schema's pattern may run away, and a worker that hangs is killed.
    answer = json.dumps(call.arguments, ensure_ascii=False)
    verdicts = yield [Check(kind="json_schema", gold=schema, answer=answer, options={"part": "whole"})]
    match verdicts[0].outcome:
        case Says.RIGHT:
            return made, ""
        case Says.WRONG:
            return made, f"invalid arguments ({verdicts[0].reason})"
        case _:
            return made.failed("schema.error", verdicts[0].reason), ""


def _simulated(
    made: Candidate, machine: Machine, world: World, call: Call, simulator: Simulator
) -> Generator[Any, Any, tuple[Candidate, Any]]:
    tool = next(one for one in machine.tools if one["function"]["name"] == call.name)
    told = {
        "tool": json.dumps(tool, ensure_ascii=False), "state": json.dumps(world.state, ensure_ascii=False),
        "call": json.dumps(call.message()["function"], ensure_ascii=False),
    }  # fmt: skip
    messages = filled(simulator.prompt, **told, fence=fence(*told.values()))
    asking = simulator.asking
    for attempt in range(2):
        hotter = max(asking.temperature, RETRY_TEMPERATURE) if attempt else None
        request = asking.request(messages, rollout=2 * made.at + attempt, temperature=hotter)
        answers = yield from reply_with_policy([request], asking.finish, asking.tags)
        asked = replace(made, parsed=None, reply=None).answered(answers[0], asking)
        made = replace(made, keys=asked.keys)
        if asked.outcome is Outcome.FAILED:
            return made.failed(asked.reason, asked.facts.get("error", "")), None
        read = _read(asked.answer) if asked.open else None
        if read is not None:
            world.state, result = read
            world.count(call.name, result)
            return made, result
    return made.failed("tool.unreadable"), None


def _read(answer: str) -> tuple[dict[str, Any], Any] | None:
    """State and result."""
    try:
        told = strict_json(json_part(answer, "fenced"))
    except NotJson:
        return None
    if not isinstance(told, dict) or set(told) != {"result", "state"} or not isinstance(told["state"], dict):
        return None
    fits = size(told["state"]) <= 10 * MOST_CHARACTERS and size(told["result"]) <= MOST_CHARACTERS
    return (told["state"], told["result"]) if fits else None
