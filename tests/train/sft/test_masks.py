"""The mask is exactly what the assistant said and its end token, for six template families and any text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from train.sft.encoding import ChatTokenizer, Encoded, load_chat_tokenizer
from train.sft.refusals import Refused
from train.sft.rows import Raw, conversation
from train.sft.settings import Chat
from train.sft.templates import PRESETS, ChatTemplate
from train.sft.turns import Example, examples

LENIENT = Chat(history="split", trimmed_answers="train", empty_answers="train")
EXPECTED_REFUSALS = {"boundary_token", "content_changed", "control_text"}  # loud, for odd texts; never a wrong mask

CONTROL_LIKE = [
    "<|im_end|>",
    "<|im_start|>assistant\n",
    "</s>",
    "[/INST]",
    "<|eot_id|>",
    "<end_of_turn>",
    "<bos>",
    "</think>",
    "<think>",
    "<tool_call>",
]
PIECES = st.one_of(
    st.sampled_from(
        [*CONTROL_LIKE, " ", "\n", "\n\n", "\t", "hello", " world", "été", "漢字", "🙂", "{{ bos_token }}", "{% raw %}"]
    ),
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0" + "".join(map(chr, range(0xFDD0, 0xFDF0)))),
        max_size=8,
    ),
)
TEXTS = st.lists(PIECES, max_size=5).map("".join)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    turns = draw(st.integers(1, 3))
    messages = []
    for _ in range(turns):
        messages.append({"role": "user", "content": draw(TEXTS)})
        answer = {"role": "assistant", "content": draw(TEXTS)}
        if draw(st.integers(0, 3)) == 0:
            answer["train"] = False
        messages.append(answer)
    if all(message.get("train") is False for message in messages[1::2]):
        del messages[-1]["train"]
    return messages


class Ready:
    def __init__(self, folder: str, chat: Chat) -> None:
        self.chat = chat
        self.tokenizer: ChatTokenizer = load_chat_tokenizer(folder)
        self.template: ChatTemplate = self.tokenizer.template(chat, folder)

    def encode(self, **values: Any) -> list[tuple[Example, Encoded]]:
        made = examples(conversation(Raw(location="x:1", values=values)), self.template, self.chat)
        found = self.tokenizer.encode(made, self.chat)
        for one in found:
            if isinstance(one, Refused):
                raise one
        return list(zip(made, found, strict=True))  # type: ignore[arg-type]

    def encode_or_refuse(self, messages: list[dict[str, Any]]) -> list[tuple[Example, Encoded]] | None:
        """None for a row that is refused for one of the reasons that odd texts may have."""
        try:
            return self.encode(messages=messages)
        except Refused as refused:
            if refused.reason not in EXPECTED_REFUSALS:
                raise
        return None

    def decode(self, ids: Any) -> str:
        return str(self.tokenizer.library.decode(list(ids), skip_special_tokens=False))

    def spans(self, encoded: Encoded) -> list[str]:
        """The text of each run of trained tokens."""
        edges = np.flatnonzero(np.diff(encoded.trained.astype(int), prepend=0, append=0))
        return [self.decode(encoded.ids[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def said(family: str, content: str, last: bool) -> list[str]:
    """What inference would have the model write for an answer, by the family's documented format."""
    text = content.strip() if family in ("llama3", "gemma") else content
    if family == "mistral":
        return [" " + text]
    if family == "qwen3":
        if "</think>" not in content:
            return ["<think>\n\n</think>\n\n" + text.lstrip("\n")]
        return []  # checked by white-space-free comparison
    return [text]


@pytest.fixture(scope="module")
def ready(families: dict[str, Any]) -> dict[str, Ready]:
    return {name: Ready(family.folder, LENIENT) for name, family in families.items()}


@pytest.mark.parametrize("name", PRESETS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(messages=conversations())
def test_trained_tokens_decode_to_exactly_the_answers_and_their_end_tokens(
    name: str, ready: dict[str, Ready], families: dict[str, Any], messages: list[dict[str, Any]]
) -> None:
    one, family = ready[name], families[name]
    made = one.encode_or_refuse(messages)
    if made is None:
        return
    spans = [span for _, encoded in made for span in one.spans(encoded)]
    answers = [m["content"] for m in messages if m["role"] == "assistant" and m.get("train") is not False]
    assert len(spans) == len(answers)
    for span, answer in zip(spans, answers, strict=True):
        expected = [text + family.end for text in said(name, answer, True)]
        if expected:
            assert span in expected
        else:
            assert "".join(span.split()).endswith("".join((answer + family.end).split())[-20:])


@pytest.mark.parametrize("name", PRESETS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(messages=conversations())
def test_no_content_becomes_a_control_token(
    name: str, ready: dict[str, Ready], families: dict[str, Any], messages: list[dict[str, Any]]
) -> None:
    one = ready[name]
    plain = [{**message, "content": "x"} for message in messages]
    special = [one.tokenizer.id_of(token) for token in families[name].special]
    made, wanted = one.encode_or_refuse(messages), one.encode_or_refuse(plain)
    if made is None or wanted is None:
        return
    last, last_plain = made[-1][1].ids, wanted[-1][1].ids
    for number in special:
        assert (last == number).sum() == (last_plain == number).sum()


def test_a_control_token_that_a_content_spells_is_ordinary_text(ready: dict[str, Ready]) -> None:
    messages = [
        {"role": "user", "content": "what is <|im_end|>?"},
        {"role": "assistant", "content": "an <|im_end|> ends"},
    ]
    ((_, encoded),) = ready["chatml"].encode(messages=messages)
    end = ready["chatml"].tokenizer.id_of("<|im_end|>")
    assert (encoded.ids == end).sum() == 2  # the template's, one a message
    assert ready["chatml"].spans(encoded) == ["an <|im_end|> ends<|im_end|>"]


def test_ids_are_those_that_transformers_gives_the_same_conversation(families: dict[str, Any]) -> None:
    import transformers

    messages = [
        {"role": "user", "content": "how fine?"},
        {"role": "assistant", "content": "very fine"},
        {"role": "user", "content": "été 漢字"},
        {"role": "assistant", "content": "def f(x):\n    return x"},
    ]
    for name, family in families.items():
        one = Ready(family.folder, Chat(history="split"))
        theirs = transformers.AutoTokenizer.from_pretrained(family.folder)
        wanted = theirs.apply_chat_template(messages, tokenize=True, return_dict=False)
        prompt = theirs.apply_chat_template(messages[:3], tokenize=True, add_generation_prompt=True, return_dict=False)
        encoded = one.encode(messages=messages)[-1][1]
        assert encoded.ids.tolist() == wanted[: len(encoded.ids)], name
        trained = np.flatnonzero(encoded.trained)
        assert prompt == encoded.ids[: len(prompt)].tolist(), name
        assert len(prompt) in trained
        assert len(prompt) - 1 not in trained, name


def test_thoughts_that_the_template_drops_from_history_are_refused_or_split(families: dict[str, Any]) -> None:
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "reasoning_content": "because", "content": "1"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "reasoning_content": "therefore", "content": "2"},
    ]
    with pytest.raises(Refused) as refused:
        Ready(families["qwen3"].folder, Chat()).encode(messages=messages)
    assert refused.value.reason == "history_rewritten"
    one = Ready(families["qwen3"].folder, Chat(history="split"))
    made = one.encode(messages=messages)
    assert [one.spans(encoded) for _, encoded in made] == [
        ["<think>\nbecause\n</think>\n\n1<|im_end|>"],
        ["<think>\ntherefore\n</think>\n\n2<|im_end|>"],
    ]
    assert "because" not in one.decode(made[1][1].ids)


def test_thoughts_within_one_round_of_tool_calls_stay_one_example(families: dict[str, Any]) -> None:
    tool = {"type": "function", "function": {"name": "weigh", "parameters": {"type": "object"}}}
    call = {"function": {"name": "weigh", "arguments": '{"what": "flour \\"00\\""}'}}
    messages = [
        {"role": "user", "content": "how heavy?"},
        {"role": "assistant", "reasoning": "weigh it", "tool_calls": [call]},
        {"role": "tool", "content": '{"grams": 500}'},
        {"role": "assistant", "reasoning": "500 then", "content": "500 g"},
    ]
    one = Ready(families["qwen3"].folder, Chat())
    ((example, encoded),) = one.encode(messages=messages, tools=[tool])
    assert example.answers == (1, 3)
    call_text = '<tool_call>\n{"name": "weigh", "arguments": {"what": "flour \\"00\\""}}\n</tool_call>'
    assert one.spans(encoded) == [
        f"<think>\nweigh it\n</think>\n\n{call_text}<|im_end|>",
        "<think>\n500 then\n</think>\n\n500 g<|im_end|>",
    ]


def test_tool_calls_are_trained_and_tool_results_are_not(families: dict[str, Any]) -> None:
    tool = {"type": "function", "function": {"name": "weigh", "parameters": {"type": "object"}}}
    call = {"id": "1", "type": "function", "function": {"name": "weigh", "arguments": {"what": "rye"}}}
    messages = [
        {"role": "system", "content": "You weigh."},
        {"role": "user", "content": "how heavy?"},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [call, call]},
        {"role": "tool", "content": "500"},
        {"role": "tool", "content": "501"},
        {"role": "assistant", "content": "500 g"},
    ]
    one = Ready(families["qwen2.5"].folder, Chat())
    ((_, encoded),) = one.encode(messages=messages, tools=[tool])
    text = '<tool_call>\n{"name": "weigh", "arguments": {"what": "rye"}}\n</tool_call>'
    assert one.spans(encoded) == [f"Let me see.\n{text}\n{text}<|im_end|>", "500 g<|im_end|>"]


def test_an_answer_marked_train_false_is_context(ready: dict[str, Ready]) -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "first", "train": False},
        {"role": "user", "content": "b"},
        {"role": "assistant", "content": "second"},
    ]
    ((_, encoded),) = ready["chatml"].encode(messages=messages)
    assert ready["chatml"].spans(encoded) == ["second<|im_end|>"]


def test_prompt_and_completion_lists_train_the_completion_only(ready: dict[str, Ready]) -> None:
    prompt = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    ((_, encoded),) = ready["chatml"].encode(prompt=prompt, completion=[{"role": "assistant", "content": "d"}])
    assert ready["chatml"].spans(encoded) == ["d<|im_end|>"]


def test_pad_equal_to_eos_masks_no_end_token(ready: dict[str, Ready], families: dict[str, Any]) -> None:
    one = ready["chatml"]
    assert one.tokenizer.names["pad_token"] == one.tokenizer.names["eos_token"] == families["chatml"].end
    ((_, encoded),) = one.encode(messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
    assert encoded.trained[-1]
    assert encoded.ids[-1] == one.tokenizer.named("eos_token")
