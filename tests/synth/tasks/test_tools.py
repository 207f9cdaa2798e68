"""Trajectories with tools are kept where the state that they leave is the one that was wanted."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.flows import Desk
from synth.items import Item, Outcome
from synth.requests import Request
from synth.simulator import SimulatorProcess, SimulatorSettings
from synth.simulator.settings import Rule
from synth.tasks.multi_turn_talk import User
from synth.tasks.tools import Tools
from synth.tasks.tools_calls import calls_of
from synth.tasks.tools_machine import MOST_CHARACTERS, World, machine_of
from synth.tasks.tools_results import Simulator
from synth.teachers import open_teacher
from synth.teachers.parsing import parse
from synth.teachers.settings import TeacherSettings
from synth.verdicts import Check, Verdict
from synth.verifiers import verify
from tests.synth.tasks.flow_driver import Run, Said, drive, failure, lost, reply, text_of


def function(name: str, **properties: str) -> dict[str, Any]:
    schema = {
        "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties), "additionalProperties": False,
    }  # fmt: skip
    return {"type": "function", "function": {"name": name, "parameters": schema}}


OPTIONS: dict[str, Any] = {
    "tools": [function("find", customer="string"), function("cancel", order="string"), function("note", text="string")],
    "state": {"orders": {"a1": {"status": "open", "customer": "Ida"}}, "notes": [], "cancelled": 0},
    "behaviour": {
        "find": [
            {"when": [{"path": "orders.a1.customer", "is": "$customer"}], "result": {"order": "a1"}},
            {"result": {"error": "no such customer"}},
        ],
        "cancel": [
            {
                "when": [{"path": "orders.$order.status", "is": "open"}],
                "do": [
                    {"path": "orders.$order.status", "set": "cancelled"},
                    {"path": "cancelled", "add": 1},
                ],
                "result": {"order": "$order", "status": "$state.orders.$order.status"},
            },
        ],
        "note": [{"do": [{"path": "notes", "append": "$text"}]}],
    },
    "goal": [{"path": "orders.a1.status", "is": "cancelled"}, {"calls": "note", "at_most": 1}],
}  # fmt: skip
ASKED = Item(id="t", prompt="Cancel the order of Ida.", options=OPTIONS)


def calls(*told: tuple[str, Any]) -> str:
    return json.dumps(
        [
            {"id": "x", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for name, arguments in told
        ]
    )


class Agent:
    """Says its steps one after the other: a list of calls, or a text."""

    def __init__(self, *steps: Any) -> None:
        self.steps = steps

    def __call__(self, request: Request) -> Said:
        step = self.steps[min(len(self.steps) - 1, sum(one["role"] == "assistant" for one in request.messages))]
        if callable(step):
            return step(request)  # type: ignore[no-any-return]
        return step if isinstance(step, str) else reply(request, "", "tool_calls", tool_calls=calls(*step))


RIGHT = [("find", {"customer": "Ida"})], [("cancel", {"order": "a1"})], "It is cancelled."


def judged(check: Check) -> Verdict:
    """By the verifiers themselves."""
    return verify(check.kind, check.gold, check.answer, **check.options)


def done(said: Any, item: Item = ASKED, **more: Any) -> Run:
    return drive(Tools(**{"train": "last", **more}), item, said, judged)


def row(**options: Any) -> Item:
    told = {**OPTIONS, **options}
    return Item(id="t", prompt="Do it.", options={key: value for key, value in told.items() if value is not None})


def test_a_trajectory_that_reaches_the_goal_is_kept_with_its_calls_and_results() -> None:
    run = done(Agent(*RIGHT))
    (sample,) = run.accepted()
    assert [one["role"] for one in sample.messages] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    first, second = sample.messages[1], sample.messages[3]
    assert first["tool_calls"] == [
        {"id": "call00000", "type": "function", "function": {"name": "find", "arguments": '{"customer": "Ida"}'}}
    ]
    assert second["tool_calls"][0]["id"] == sample.messages[4]["tool_call_id"] == "call00001"
    assert json.loads(sample.messages[2]["content"]) == {"order": "a1"}
    assert json.loads(sample.messages[4]["content"]) == {"order": "a1", "status": "cancelled"}
    assert (sample.figures["steps"], sample.figures["calls"], sample.figures["errors"]) == (3, 2, 0)
    assert json.loads(sample.facts["tools"]) == OPTIONS["tools"]
    assert all(request.tools == tuple(OPTIONS["tools"]) for request in run.requests)
    assert not lost(run, run.requests)


def test_each_turn_may_be_a_sample_of_its_own() -> None:
    run = done(Agent(*RIGHT), train="each")
    assert [len(one.messages) for one in run.accepted()] == [2, 4, 6]
    assert all(one.messages[-1]["role"] == "assistant" for one in run.accepted())
    assert run.samples[-1].keys == tuple(run.keys)


def test_calls_in_text_are_read_where_the_server_does_not_split_them_off() -> None:
    text = 'I look.\n<tool_call>\n{"name": "cancel", "arguments": {"order": "a1"}}\n</tool_call>'
    run = done(Agent(text, "Done."))
    (sample,) = run.accepted()
    assert sample.messages[1]["content"] == "I look."
    assert sample.messages[1]["tool_calls"][0]["function"]["name"] == "cancel"


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (["I did it."], "check.goal"),
        ([[("cancel", {"order": "a2"})], "Done."], "check.goal"),
        ([[("cancel", {"order": "a1"}), ("note", {"text": "x"}), ("note", {"text": "x"})], "Done."], "check.goal"),
        ([[("find", {"customer": "Ida"})]], "steps.too_many"),
        ([[("burn", {})], "Done."], "check.goal"),
        ([[("burn", {})]], "call.too_many_errors"),
        ([[("cancel", {"order": 7})]], "call.too_many_errors"),
        ([[("note", {"text": "x"})] * 9], "call.too_many"),
        ([lambda one: reply(one, "", "tool_calls", tool_calls="[{")], "call.unreadable"),
        ([lambda one: reply(one, "", "tool_calls", tool_calls='{"a": 1}')], "call.unreadable"),
        ([lambda one: reply(one, "", "tool_calls", tool_calls='[{"function": {"name": 3}}]')], "call.unreadable"),
        ([lambda one: reply(one, "", "tool_calls", tool_calls=calls(("cancel", "not an object")))], "call.unreadable"),
        (['<tool_call>{"name": "cancel"'], "call.unreadable"),
        (["<tool_call>cancel</tool_call>"], "call.unreadable"),
        ([""], "answer.empty"),
        (["Done.\nUser: thanks"], "assistant.speaks_for_others"),
        ([failure], "teacher.send"),
        ([lambda one: reply(one, "I", "length")], "finish.truncated_in_answer"),
    ],
)
def test_each_way_to_miss_the_goal_has_its_reason(steps: list[Any], reason: str) -> None:
    run = done(Agent(*steps))
    assert run.reasons() == [reason]
    assert not lost(run, run.requests)


def test_mistakes_are_told_to_the_assistant_who_may_mend_them() -> None:
    run = done(Agent([("burn", {})], [("cancel", {"order": 7})], [("cancel", {"order": "a1"})], "Done."))
    (sample,) = run.accepted()
    told = [json.loads(one["content"]) for one in sample.messages if one["role"] == "tool"]
    assert told[0] == {"error": "no such function"}
    assert told[1]["error"].startswith("invalid arguments (schema.type")
    assert sample.figures["errors"] == 2
    assert done(Agent([("burn", {})], "Done."), max_errors=0).reasons() == ["call.too_many_errors"]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (row(goal=[{"path": "orders.a1.status", "is": "open"}]), "checker.passes_empty"),
        (row(goal=[]), "item.no_checker"),
        (row(goal=None), "item.no_checker"),
        (row(goal=[{"path": "a"}]), "item.bad_goal"),
        (row(goal=[{"path": "a", "is": 1, "is_not": 2}]), "item.bad_goal"),
        (row(goal=[{"path": "a", "runs": "rm"}]), "item.bad_goal"),
        (row(goal=[{"calls": "burn", "at_most": 0}]), "item.bad_goal"),
        (row(tools=None), "item.bad_tools"),
        (row(tools=[]), "item.bad_tools"),
        (row(tools=[function("a"), function("a")], behaviour={"a": []}), "item.bad_tools"),
        (row(behaviour={}), "item.no_behaviour"),
        (row(behaviour={"find": [{"when": [{"path": "a", "set": 1}]}]}), "item.bad_behaviour"),
        (row(behaviour={"find": [{"python": "x"}]}), "item.bad_behaviour"),
        (row(state=[]), "item.bad_state"),
        (Item(id="t", options=OPTIONS), "item.no_prompt"),
    ],
)
def test_a_row_whose_checker_checks_nothing_is_failed_before_anything_is_asked(item: Item, reason: str) -> None:
    run = done(Agent("x"), item=item)
    assert (run.reasons(), run.samples[0].outcome, run.requests) == ([reason], Outcome.FAILED, [])


@pytest.mark.parametrize(
    ("gold", "goal", "reason"),
    [
        ("a1", [], ""),
        ("a2", [], "verify.wrong"),
        ("a1", OPTIONS["goal"], "check.goal"),
        (None, [], "checker.error"),
        ("", [], "checker.passes_empty"),
    ],
)
def test_a_rows_verifier_checks_the_last_answer(gold: Any, goal: Any, reason: str) -> None:
    item = Item(id="t", prompt="Which order?", gold=gold, verifier="exact", options={**OPTIONS, "goal": goal})

    def by_text(check: Check) -> Verdict:
        if check.kind == "json_schema":
            return judged(check)
        from synth.verdicts import Outcome as Says

        said = Says.ERROR if check.gold is None else Says.RIGHT if check.gold == check.answer else Says.WRONG
        return Verdict(outcome=said)

    run = drive(Tools(train="last"), item, Agent([("find", {"customer": "Ida"})], "a1"), by_text)
    assert run.reasons() == [reason]


def machine_world(**options: Any) -> tuple[Any, World]:
    machine = machine_of(row(**options), needs_behaviour=False)
    assert not isinstance(machine, str), machine
    return machine, World.of(machine)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"path": "n", "is": 3}, True),
        ({"path": "n", "is": 3.0}, True),
        ({"path": "n", "is": "3"}, False),
        ({"path": "yes", "is": 1}, False),
        ({"path": "yes", "is": True}, True),
        ({"path": "gone", "is": None}, False),
        ({"path": "gone", "is_not": 1}, True),
        ({"path": "n", "at_least": 3}, True),
        ({"path": "n", "at_least": 4}, False),
        ({"path": "n", "at_most": 3}, True),
        ({"path": "n", "at_most": 2}, False),
        ({"path": "word", "at_least": 3}, False),
        ({"path": "list", "contains": 2}, True),
        ({"path": "list", "contains": 9}, False),
        ({"path": "word", "contains": "el"}, True),
        ({"path": "word", "contains": 1}, False),
        ({"path": "list.1", "is": 2}, True),
        ({"path": "list.9", "exists": True}, False),
        ({"path": "list.x", "exists": False}, True),
        ({"path": "n.deeper", "exists": True}, False),
        ({"path": "deep.$who", "is": 1}, True),
        ({"path": "n", "is": "$three"}, True),
        ({"calls": "find", "is": 0}, True),
        ({"calls": "find", "at_least": 1}, False),
    ],
)
def test_conditions_have_two_sides(condition: dict[str, Any], holds: bool) -> None:
    state = {"n": 3, "yes": True, "word": "hello", "list": [1, 2], "deep": {"a.b": 1}}
    _, world = machine_world(state=state)
    assert world.holds(condition, {"who": "a.b", "three": 3}) is holds


@pytest.mark.parametrize(
    ("effect", "state"),
    [
        ({"path": "a", "set": {"x": "$v"}}, {"a": {"x": 7}, "n": 1, "l": [1]}),
        ({"path": "new.deep", "set": 1}, {"new": {"deep": 1}, "n": 1, "l": [1]}),
        ({"path": "n", "add": 2}, {"n": 3, "l": [1]}),
        ({"path": "n", "add": "x"}, {"n": 1, "l": [1]}),
        ({"path": "gone", "add": 2}, {"n": 1, "l": [1]}),
        ({"path": "l", "append": "$v"}, {"n": 1, "l": [1, 7]}),
        ({"path": "m", "append": 1}, {"n": 1, "l": [1], "m": [1]}),
        ({"path": "n", "append": 1}, {"n": 1, "l": [1]}),
        ({"path": "n", "remove": True}, {"l": [1]}),
        ({"path": "gone", "remove": True}, {"n": 1, "l": [1]}),
        ({"path": "n.x.y", "set": 1}, {"n": 1, "l": [1]}),
    ],
)
def test_effects_change_what_fits_and_nothing_else(effect: dict[str, Any], state: dict[str, Any]) -> None:
    _, world = machine_world(state={"n": 1, "l": [1]})
    assert world.call("f", {"v": 7}, ({"do": [effect]},)) == {"ok": True}
    assert world.state == state


def test_an_argument_is_one_part_of_a_path_and_a_price_is_none() -> None:
    _, world = machine_world(state={"items": {"a.b": {"price": "$5.00"}}})
    case = {"do": [{"path": "seen.$name", "set": "$5"}], "result": ["$state.items.$name.price", "$name", "$none", "$7"]}
    assert world.call("f", {"name": "a.b"}, (case,)) == ["$5.00", "a.b", None, "$7"]
    assert world.state["seen"] == {"a.b": "$5"}


def test_a_row_is_not_changed_by_what_is_done_to_its_state() -> None:
    before = json.dumps(OPTIONS)
    done(Agent([("cancel", {"order": "a1"}), ("note", {"text": "x"})], "Done."), trajectories=2)
    assert json.dumps(OPTIONS) == before


def test_a_state_does_not_outgrow_its_bound() -> None:
    _, world = machine_world(state={"notes": []})
    case = {"do": [{"path": "notes", "append": "$text"}]}
    text = "x" * (MOST_CHARACTERS // 2)
    results = [world.call("note", {"text": text}, (case,)) for _ in range(40)]
    assert results[0] == {"ok": True}
    assert results[-1] == {"error": "too large"}
    assert len(json.dumps(world.state)) <= 10 * MOST_CHARACTERS
    assert world.call("note", {"text": "x" * 30_000}, ({"result": "$text"},)) == {"error": "too large"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["find", "cancel", "note", "?"]), JSON), max_size=4), st.text(max_size=20))
def test_any_calls_end_as_samples_and_none_is_lost(told: list[tuple[str, Any]], text: str) -> None:
    run = done(Agent(told, text) if told else Agent(text))
    assert run.samples
    assert not lost(run, run.requests)
    assert all(one.reason.count(".") == 1 for one in run.samples if one.outcome is not Outcome.ACCEPTED)


@given(st.text(), st.text())
def test_any_text_of_calls_gets_an_answer(text: str, native: str) -> None:
    from synth.replies import Reply

    told = Reply(key="k", text=f"<tool_call>{text}</tool_call>", finish_reason="stop", tool_calls=native)
    calls_of(told, parse(told), 0)


class Playing(Agent):
    """Plays the tools, too: says `results` one after the other."""

    def __init__(self, results: list[Any], *steps: Any) -> None:
        super().__init__(*steps)
        self.results = results

    def __call__(self, request: Request) -> Said:
        if "You are the machine behind a tool" in text_of(request):
            told = self.results.pop(0)
            return told(request) if callable(told) else told  # type: ignore[no-any-return]
        return super().__call__(request)


CANCELLED = json.dumps({"result": {"ok": 1}, "state": {"orders": {"a1": {"status": "cancelled"}}}})


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        ([CANCELLED], ""),
        ([f"```json\n{CANCELLED}\n```"], ""),
        (["hm", CANCELLED], ""),
        (["hm", "hm"], "tool.unreadable"),
        (['{"result": 1}', '{"result": 1, "state": []}'], "tool.unreadable"),
        ([failure], "teacher.send"),
        ([json.dumps({"result": {"error": "closed"}, "state": OPTIONS["state"]})], "check.goal"),
    ],
)
def test_a_simulator_says_results_and_states(results: list[Any], reason: str) -> None:
    said = Playing(list(results), [("cancel", {"order": "a1"})], "Done.")
    run = done(said, item=row(behaviour=None), simulator=Simulator())
    assert run.reasons() == [reason]
    assert not lost(run, run.requests)


def test_a_simulated_user_has_the_prompt_for_a_goal() -> None:
    asks = iter(["<message>Please cancel it.</message>", "<message>Order a1.</message>", "<done>"])

    def said(request: Request) -> Said:
        if "You play a person" in text_of(request):
            return next(asks)
        return Agent("Which?", [("cancel", {"order": "a1"})], "Done.")(request)

    run = done(said, user=User())
    (sample,) = run.accepted()
    roles = [one["role"] for one in sample.messages]
    assert roles == ["user", "assistant", "user", "assistant", "tool", "assistant"]
    assert all(ASKED.prompt not in text_of(one) for one in run.requests if "You play" not in text_of(one))
    assert not lost(run, run.requests)


def test_a_simulated_teacher_calls_tools_over_http() -> None:
    rules = (
        Rule(match="Cancel the order", reply=('{"order": "a1"}',), tool="cancel"),
        Rule(match="cancelled", reply=("It is cancelled.",)),
    )

    async def asked(url: str) -> list[Any]:
        teacher = open_teacher(TeacherSettings(model="simulated", urls=(url,)))
        await teacher.open()
        try:
            flow, answers = Tools(train="last").flow(ASKED, Desk()), None
            while True:
                try:
                    effect = flow.send(answers)
                except StopIteration as stop:
                    return stop.value  # type: ignore[no-any-return]
                answers = [
                    judged(one) if isinstance(one, Check) else await teacher.generate(one) for one in effect
                ]  # fmt: skip
        finally:
            await teacher.close()

    with SimulatorProcess(SimulatorSettings(rules=rules)) as simulator:
        (sample,) = asyncio.run(asked(simulator.url))
    assert sample.outcome is Outcome.ACCEPTED, sample.reason
    assert sample.messages[-1]["content"] == "It is cancelled."
