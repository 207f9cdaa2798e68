"""A teacher's settings: one backend, an identity of the settings alone, keys by name only; the wire's odd bodies."""

from __future__ import annotations

import contextlib
import email.utils
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from synth.errors import SynthError
from synth.replies import Reply
from synth.requests import Identity, Request
from synth.teachers import InProcess, TeacherSettings, Vllm
from synth.teachers.http_bodies import CHAT, COMPLETIONS, UnusableError, reply_of, sending, served_models, too_long
from synth.teachers.http_faults import fault_of, pause_seconds, retry_after_seconds

HTTP = TeacherSettings(model="m", urls=("http://127.0.0.1:1",))


def test_exactly_one_backend_is_given() -> None:
    assert HTTP.backend == "http"
    assert TeacherSettings(model="m", vllm=Vllm()).backend == "vllm"
    assert TeacherSettings(model="m", in_process=InProcess()).backend == "in_process"
    for wrong in ({}, {"urls": ("http://a",), "vllm": Vllm()}, {"urls": ("http://a", "http://a")}, {"urls": ("a",)}):
        with pytest.raises(ValidationError):
            TypeAdapter(TeacherSettings).validate_python({"model": "m", **wrong})


def test_the_identity_is_of_model_revision_and_what_renders_prompts(tmp_path: Path) -> None:
    template = tmp_path / "template.jinja"
    template.write_text("{{ messages }}")
    assert HTTP.identity() == Identity(model="m")
    plain = {"model": "m", "urls": ("http://a",), "revision": "r"}
    told = [
        TeacherSettings(**plain),  # type: ignore[arg-type]
        TeacherSettings(**plain, chat_template=str(template)),  # type: ignore[arg-type]
        TeacherSettings(**plain, chat_template_arguments={"enable_thinking": False}),  # type: ignore[arg-type]
        TeacherSettings(**plain, prompt_bos="text"),  # type: ignore[arg-type]
    ]
    identities = [settings.identity() for settings in told]
    assert len(set(identities)) == 4
    template.write_text("{{ other }}")
    assert told[1].identity() != identities[1]
    moved = TeacherSettings(**plain | {"urls": ("http://b",)}, max_in_flight=7)  # type: ignore[arg-type]
    assert moved.identity() == identities[0]
    with pytest.raises(SynthError, match=r"^chat_template: absent.jinja: No such file"):
        TeacherSettings(model="m", urls=("http://a",), chat_template="absent.jinja").identity()


def test_a_key_is_read_from_the_variable_named_and_never_stands_in_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEACHER_KEY", "abc")
    settings = TeacherSettings(model="m", urls=("http://a",), api_key_variable="TEACHER_KEY")
    assert settings.api_key() == "abc"
    assert "abc" not in repr(settings)
    with pytest.raises(ValidationError):
        TeacherSettings(model="m", urls=("http://a",), api_key_variable="sk-abc123")


def test_cost_is_by_million_tokens() -> None:
    settings = TeacherSettings(model="m", urls=("http://a",), price_prompt=2.0, price_completion=8.0)
    assert settings.cost(500_000, 250_000) == 3.0


def body_of(raw: object) -> Reply:
    sent = sending(Request(messages=({"role": "user", "content": "x"},)), HTTP, "ab" * 16, vllm=True)
    return reply_of(sent, json.dumps(raw).encode(), 0.0, 1)


def test_bodies_of_the_wire_say_what_the_request_asked() -> None:
    sent = sending(Request(prompt="p"), HTTP, "ab" * 16, vllm=False)
    assert sent.path == COMPLETIONS
    assert set(json.loads(sent.body)) == {"model", "max_tokens", "temperature", "top_p", "seed", "prompt"}
    turns = ({"role": "user", "content": "x"}, {"role": "assistant", "content": "y"})
    sent = sending(Request(messages=turns, continues=True), HTTP, "ab" * 16, vllm=True)
    told = json.loads(sent.body)
    assert sent.path == CHAT
    assert (told["continue_final_message"], told["add_generation_prompt"]) == (True, False)
    assert told["return_token_ids"]


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ({"message": {"content": None}, "finish_reason": "stop"}, "no content"),
        ({"message": {"content": "x"}, "finish_reason": "abort"}, "ended it with abort"),
        ({"message": {"content": ["x"]}, "finish_reason": "stop"}, "content is no text"),
        ({"finish_reason": "stop"}, "no reply"),
    ],
)
def test_a_body_without_a_reply_is_unusable(choice: object, told: str) -> None:
    with pytest.raises(UnusableError, match=told):
        body_of({"choices": [choice]})


def test_no_content_is_a_reply_where_the_reasoning_used_up_the_tokens() -> None:
    reply = body_of({"choices": [{"message": {"content": None, "reasoning": "r"}, "finish_reason": "length"}]})
    assert (reply.text, reply.reasoning) == ("", "r")
    older = {"message": {"content": "a", "reasoning_content": "r"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    reply = body_of({"choices": [older], "usage": usage})
    assert (reply.reasoning, reply.prompt_tokens, reply.cached_tokens) == ("r", 5, 4)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "usage", "finish_reason", "data", "id"]), inner
        )
    ),
    max_leaves=20,
)


@given(JSON, st.binary(max_size=30))
def test_any_body_is_a_reply_or_unusable(value: object, raw: bytes) -> None:
    sent = sending(Request(prompt="x"), HTTP, "ab" * 16, vllm=True)
    for body in (json.dumps(value).encode(), raw, b"[" * 100_000):
        for read in (lambda body: reply_of(sent, body, 0.0, 1), served_models):
            with contextlib.suppress(UnusableError):
                read(body)


def test_prompts_that_are_too_long_are_told_from_other_refusals_and_no_text_of_theirs_is_kept() -> None:
    assert too_long(b'{"error": {"message": "This model\'s maximum context length is 4096 tokens. However ..."}}')
    assert not too_long(b'{"error": {"message": "temperature must be non-negative"}}')
    fault = fault_of(400, b'{"error": {"message": "SECRET is too long"}}', "")
    assert (fault.stage, fault.refused) == ("prompt", True)
    assert "SECRET" not in fault.error
    assert fault_of(401, b"", "").refused is False


def test_pauses_double_are_spread_by_key_and_give_way_to_what_the_server_asks() -> None:
    settings = TeacherSettings(model="m", urls=("http://a",), backoff_seconds=1.0, backoff_max_seconds=10.0)
    fault = fault_of(503, b"", "")
    pauses = [pause_seconds(settings, "k", failed, fault) for failed in range(1, 8)]
    assert pauses == [pause_seconds(settings, "k", failed, fault) for failed in range(1, 8)]
    for failed, pause in enumerate(pauses):
        whole = min(10.0, 2.0**failed)
        assert whole / 2 <= pause <= whole
    assert pause_seconds(settings, "k", 1, fault) != pause_seconds(settings, "other", 1, fault)
    assert 30 <= pause_seconds(settings, "k", 1, fault_of(429, b"", "30")) <= 30.5


def test_retry_after_is_seconds_or_a_date_and_anything_else_is_nothing() -> None:
    assert retry_after_seconds("7") == 7
    assert 50 < retry_after_seconds(email.utils.formatdate(time.time() + 60, usegmt=True)) <= 60
    assert [retry_after_seconds(told) for told in ("", "soon", "-3", "1e9", "²")] == [0] * 5
    assert retry_after_seconds("99999999") == 3600
