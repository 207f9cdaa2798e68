"""Replies taken apart: each shape of reasoning, each end, any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.replies import Finish, Reply
from synth.teachers import Tags, parse

TEMPLATE = Tags(opened_by="template")
ANSWER = Tags(unclosed="answer")


def reply(text: str, finish_reason: str = "stop", **more: object) -> Reply:
    return Reply(key="k", text=text, finish_reason=finish_reason, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "finish", "tags", "expected"),
    [
        ("plain", "stop", Tags(), (None, "plain", Finish.STOP)),
        ("plain", "length", Tags(), (None, "plain", Finish.TRUNCATED_IN_ANSWER)),
        ("<think>\na\n</think>\n\nb", "stop", Tags(), ("a", "b", Finish.STOP)),
        ("\n <think>a</think>b", "length", Tags(), ("a", "b", Finish.TRUNCATED_IN_ANSWER)),
        ("a\n</think>\n\nb", "stop", Tags(), ("a", "b", Finish.STOP)),
        ("a\n</think>\n\nb", "stop", TEMPLATE, ("a", "b", Finish.STOP)),
        ("<think>a", "length", Tags(), ("a", "", Finish.TRUNCATED_IN_REASONING)),
        ("<think>a", "stop", Tags(), ("a", "", Finish.STOP)),
        ("<think>a", "stop", ANSWER, (None, "a", Finish.STOP)),
        ("<think>a", "length", ANSWER, ("a", "", Finish.TRUNCATED_IN_REASONING)),
        ("a", "length", TEMPLATE, ("a", "", Finish.TRUNCATED_IN_REASONING)),
        ("a", "stop", TEMPLATE, ("a", "", Finish.STOP)),
        ("<think>\n\n</think>\n\nb", "stop", Tags(), (None, "b", Finish.STOP)),
        ("Say <think> to think.", "stop", Tags(), (None, "Say <think> to think.", Finish.STOP)),
        ("so <think>a</think>b", "stop", Tags(), ("so a", "b", Finish.STOP)),
        ("<think>a</think>b<think>c</think>d", "stop", Tags(), ("a", "b<think>c</think>d", Finish.STOP)),
        ("b", "content_filter", Tags(), (None, "b", Finish.FILTERED)),
        ("b", "nobody knows", Tags(), (None, "b", Finish.TRUNCATED_IN_ANSWER)),
        ("", "stop", Tags(), (None, "", Finish.STOP)),
        ("[r]a[/r]b", "stop", Tags(opening="[r]", closing="[/r]"), ("a", "b", Finish.STOP)),
    ],
)
def test_each_shape_of_reasoning_and_each_end(
    text: str, finish: str, tags: Tags, expected: tuple[str | None, str, Finish]
) -> None:
    parsed = parse(reply(text, finish), tags)
    assert (parsed.reasoning, parsed.answer, parsed.finish) == expected


@pytest.mark.parametrize(
    ("text", "reasoning", "finish", "tags", "expected"),
    [
        ("b", "a", "stop", Tags(), ("a", "b", Finish.STOP)),
        ("", "a", "length", Tags(), ("a", "", Finish.TRUNCATED_IN_REASONING)),
        ("b", "a", "length", Tags(), ("a", "b", Finish.TRUNCATED_IN_ANSWER)),
        ("", "a", "stop", ANSWER, (None, "a", Finish.STOP)),
        ("b", "", "stop", Tags(), (None, "b", Finish.STOP)),
    ],
)
def test_reasoning_that_the_server_split_off(
    text: str, reasoning: str, finish: str, tags: Tags, expected: tuple[str | None, str, Finish]
) -> None:
    parsed = parse(reply(text, finish, reasoning=reasoning), tags)
    assert (parsed.reasoning, parsed.answer, parsed.finish) == expected


def test_tool_calls_are_told_by_the_reason_or_by_being_there() -> None:
    assert parse(reply("", "tool_calls", tool_calls="[1]")).finish is Finish.TOOL
    assert parse(reply("", "stop", tool_calls="[1]")).finish is Finish.TOOL
    assert parse(reply("", "length", tool_calls="[1]")).finish is Finish.TRUNCATED_IN_ANSWER
    assert parse(reply("", "tool_calls", tool_calls="[1]", reasoning="a")).reasoning == "a"


def test_a_forced_end_is_one_unless_it_was_truncated_again() -> None:
    assert parse(reply("<think>a</think>b", forced=True)).finish is Finish.FORCED_END
    assert parse(reply("<think>a</think>b", "length", forced=True)).finish is Finish.TRUNCATED_IN_ANSWER


TEXTS = st.lists(st.one_of(st.text(max_size=20), st.sampled_from(["<think>", "</think>", "\n", " "]))).map("".join)


@given(
    text=TEXTS, finish=st.one_of(st.text(max_size=12), st.sampled_from(["stop", "length", "tool_calls"])),
    reasoning=st.one_of(st.none(), TEXTS), calls=st.text(max_size=5), forced=st.booleans(),
    tags=st.sampled_from([Tags(), TEMPLATE, ANSWER]),
)  # fmt: skip
def test_any_text_is_parsed_and_nothing_is_made_up(  # noqa: PLR0917
    text: str, finish: str, reasoning: str | None, calls: str, forced: bool, tags: Tags
) -> None:
    parsed = parse(reply(text, finish, reasoning=reasoning, tool_calls=calls, forced=forced), tags)
    assert parsed.reasoning is None or parsed.reasoning.strip() == parsed.reasoning != ""
    assert parsed.answer in text or (tags.unclosed == "answer" and parsed.reasoning is None)
    assert len(parsed.answer) + len(parsed.reasoning or "") <= len(text) + len(reasoning or "")
