"""What becomes of each end of a reply, asked of a simulated teacher where it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from typing import Any

import pytest

from synth.replies import Failure, Finish, Reply, TeacherError
from synth.requests import Request, Sampling
from synth.simulator import Known, SimulatorProcess, SimulatorSettings, Speech, decode
from synth.teachers import FinishPolicy, Tags, TeacherSettings, open_teacher, opened, parse, reply_with_policy

SHORT = Request(messages=({"role": "user", "content": "[item a] how many?"},), sampling=Sampling(max_tokens=20))


def answered(
    flow: Generator[Sequence[Request], Any, list[Any]], speech: Speech
) -> tuple[list[Any], list[Sequence[Request]]]:
    """What a sub-flow returns when a simulated teacher answers it, and what it asked."""

    async def run() -> tuple[list[Any], list[Sequence[Request]]]:
        asked: list[Sequence[Request]] = []
        settings = SimulatorSettings(known={"a": Known(gold="12", skill=1.0)}, speech=speech)
        async with SimulatorProcess(settings) as simulator:
            teacher = open_teacher(TeacherSettings(model="simulated", urls=(simulator.url,)))
            async with opened(teacher):
                effect = next(flow)
                while True:
                    asked.append(effect)
                    replies = [await teacher.generate(request) for request in effect]
                    try:
                        effect = flow.send(replies)
                    except StopIteration as end:
                        return end.value, asked

    return asyncio.run(run())


def test_reasons_are_those_of_samples() -> None:
    policy = FinishPolicy()
    assert policy.reason(Finish.STOP) == policy.reason(Finish.TOOL) == policy.reason(Finish.FORCED_END) == ""
    assert policy.reason(Finish.TRUNCATED_IN_ANSWER) == "finish.truncated_in_answer"
    assert policy.reason(Finish.FILTERED) == "finish.filtered"
    assert FinishPolicy(truncated_in_answer="escalate").reason(Finish.TRUNCATED_IN_ANSWER) != ""


def test_rejected_and_accepted_ends_are_asked_for_once() -> None:
    [(reply, parsed)], asked = answered(reply_with_policy([SHORT]), Speech(words=40, sigma=0))
    assert parsed.finish is Finish.TRUNCATED_IN_REASONING
    assert reply.finish_reason == "length"
    assert len(asked) == 1


def test_escalation_asks_once_more_with_more_room() -> None:
    policy = FinishPolicy(truncated_in_reasoning="escalate", escalate_factor=20)
    [(_, parsed)], asked = answered(reply_with_policy([SHORT], policy), Speech(words=40, sigma=0))
    assert [effect[0].sampling.max_tokens for effect in asked] == [20, 400]
    assert (parsed.answer, parsed.finish) == ("The answer is \\boxed{12}.", Finish.STOP)
    small = FinishPolicy(truncated_in_reasoning="escalate", escalate_factor=2)
    [(_, parsed)], asked = answered(reply_with_policy([SHORT], small), Speech(words=40, sigma=0))
    assert small.reason(parsed.finish) == "finish.truncated_in_reasoning"
    assert len(asked) == 2


@pytest.mark.parametrize("reasoning", ["tags", "closing", "split"])
def test_a_forced_end_closes_the_reasoning_and_goes_on_to_the_answer(reasoning: str) -> None:
    speech = Speech(words=40, sigma=0, reasoning=reasoning)  # type: ignore[arg-type]
    tags = Tags(opened_by="template") if reasoning == "closing" else Tags()
    policy = FinishPolicy(truncated_in_reasoning="force_end")
    [(reply, parsed)], asked = answered(reply_with_policy([SHORT], policy, tags), speech)
    assert parsed.finish is Finish.FORCED_END
    assert parsed.answer == "Final answer:The answer is \\boxed{12}."
    assert parsed.reasoning
    turn = asked[1][0].messages[-1]
    assert asked[1][0].continues
    assert turn["content"].startswith("<think>\n")
    assert turn["content"].endswith("\n</think>\n\nFinal answer:")
    assert reply.completion_tokens > 20
    assert reply.key == asked[1][0].key(TeacherSettings(model="simulated", urls=("http://a",)).identity())


def test_a_raw_prompt_is_forced_to_its_end_as_text() -> None:
    request = Request(prompt="[item a] <think>", sampling=Sampling(max_tokens=10))
    policy = FinishPolicy(truncated_in_reasoning="force_end")
    flow = reply_with_policy([request], policy, Tags(opened_by="template"))
    [(reply, parsed)], asked = answered(flow, Speech(words=40, sigma=0, reasoning="closing"))
    assert (
        asked[1][0].prompt
        == f"[item a] <think>{reply.text.partition(chr(10) + '</think>')[0]}\n</think>\n\nFinal answer:"
    )
    assert parsed.answer == "Final answer:The answer is \\boxed{12}."


def test_joined_ids_are_all_behind_the_first_prompt_or_none() -> None:
    policy = FinishPolicy(truncated_in_reasoning="force_end")
    first = Reply(key="1", text="<think>a", finish_reason="length", prompt_ids=(1, 2), ids=(3,))
    for prompt_ids, expected in [((1, 2, 3, 4), (3, 4, 5)), ((1, 9, 3, 4), None), (None, None)]:
        flow = reply_with_policy([SHORT], policy)
        next(flow)
        flow.send([first])
        second = Reply(key="2", text="b", finish_reason="stop", prompt_ids=prompt_ids, ids=(5,))
        with pytest.raises(StopIteration) as end:
            flow.send([second])
        reply, _ = end.value.value[0]
        assert (reply.ids, reply.text) == (expected, "<think>a\n</think>\n\nFinal answer:b")


def test_failures_stand_where_they_happened() -> None:
    failure = Failure(key="k", stage="wait", error="HTTP 503")
    assert isinstance(TeacherError(failure).failure, Failure)
    cut = Reply(key="1", text="a", finish_reason="length")
    flow = reply_with_policy([SHORT, SHORT, SHORT], FinishPolicy(truncated_in_answer="escalate"))
    assert len(next(flow)) == 3
    whole = Reply(key="2", text="b", finish_reason="stop")
    assert len(flow.send([failure, cut, whole])) == 1
    with pytest.raises(StopIteration) as end:
        flow.send([Failure(key="1", stage="read", error="x")])
    assert end.value.value == [failure, Failure(key="1", stage="read", error="x"), (whole, parse(whole))]
    assert decode([98]) == "b"
