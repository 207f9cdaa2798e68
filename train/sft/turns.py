"""Which characters of a rendered conversation a model is to write: found by rendering, never by searching for markers.

For the answer that is message i, inference sees render(messages before i, with the generation prompt), and the whole is
render(messages up to i). What the whole adds is what the model must write; it ends with the last control token that the
template puts behind the message's content (a line end behind that token is not the model's). Where the content lies in
it is told by rendering once more with a probe in its place, so the answer is compared with the row, character by
character.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from train.sft.refusals import Refused
from train.sft.rows import Conversation, Message, strings
from train.sft.settings import Chat
from train.sft.templates import ChatTemplate, Rendering

PROBES = {"content": "\ufdd1", "reasoning_content": "\ufdd2"}  # in no row: train.sft.rows refuses them
BETWEEN = re.compile("[\ufdd1\ufdd2]")


@dataclass(frozen=True, kw_only=True)
class Example:
    """A text to train on. spans: (start, end) of what the model is to write, in characters, in order.

    literal: as in Rendering. answers: the numbers of the messages that the spans are. append_eos: plain text without
    a template, whose end the tokenizer's EOS marks. trimmed: answers whose outer white space the template changed.
    """

    text: str
    spans: tuple[tuple[int, int], ...]
    literal: tuple[tuple[int, int], ...] = ()
    answers: tuple[int, ...] = ()
    append_eos: bool = False
    trimmed: int = 0


@dataclass(frozen=True, kw_only=True)
class Answer:
    number: int
    whole: Rendering
    start: int
    stop: int
    trimmed: bool


def examples(row: Conversation, template: ChatTemplate | None, chat: Chat) -> list[Example]:
    """The examples of a row: one, or one for each part of a history that the template rewrites (chat.history split).

    Raises Refused with the reason why the row cannot be trained on.
    """
    if row.text is not None:
        prompt, completion = row.text
        if not completion:
            raise Refused("empty_answer")
        return [
            Example(text=prompt + completion, spans=((len(prompt), len(prompt) + len(completion)),), append_eos=True)
        ]
    if template is None:
        raise Refused("template_refused", "there is no chat template")
    numbers = [number for number, trained in enumerate(row.trained) if trained]
    answers = [_answer(row, number, template, chat) for number in numbers]
    groups: list[list[Answer]] = []  # of answers that one rendering shows as inference would have seen each
    for answer in reversed(answers):
        if groups and groups[-1][0].whole.text.startswith(answer.whole.text[: answer.stop]):
            groups[-1].append(answer)
        else:
            groups.append([answer])
    if len(groups) > 1 and chat.history == "refuse":
        raise Refused("history_rewritten", f"message {groups[1][0].number} is rendered differently once others follow")
    made = [_example(group[::-1]) for group in reversed(groups)]
    for example in made:
        _check_survival(row, example)
        if example.literal and chat.control_text == "refuse":
            raise Refused("control_text", "a content spells a control token")
    return made


def _example(answers: Sequence[Answer]) -> Example:
    last = answers[-1]
    return Example(
        text=last.whole.text[: last.stop],
        spans=tuple((answer.start, answer.stop) for answer in answers),
        literal=tuple(found for found in last.whole.literal if found[1] <= last.stop),
        answers=tuple(answer.number for answer in answers),
        trimmed=sum(answer.trimmed for answer in answers),
    )


def _answer(row: Conversation, number: int, template: ChatTemplate, chat: Chat) -> Answer:
    """Where message `number` lies when it is the last: rendered with what came before, and nothing after."""
    before, message = row.messages[:number], row.messages[number]
    calls = message.get("tool_calls", [])
    if not message["content"] and not calls and chat.empty_answers == "refuse":
        raise Refused("empty_answer", f"message {number} has neither content nor tool calls")
    whole = template.render([*before, message], row.tools)
    prompt = template.render(before, row.tools, generation_prompt=True)
    if not whole.text.startswith(prompt.text):
        raise Refused("generation_prompt", f"message {number} is not rendered as its generation prompt begins")
    start = len(prompt.text)
    written = whole.text[start:]
    frame = _frame(row, number, template, start)
    trimmed = not _matches(written, message, frame)
    if trimmed and chat.trimmed_answers == "refuse":
        raise Refused("content_trimmed", f"message {number}: the template changes white space around its text")
    _check_calls(calls, written, number)
    tail = len(whole.text) - len(frame[-1])
    return Answer(number=number, whole=whole, start=start, stop=_stop(whole, tail, template, number), trimmed=trimmed)


def _frame(row: Conversation, number: int, template: ChatTemplate, start: int) -> list[str]:
    """What the template writes around the message's texts: before, between (probe, text, ...) and behind them."""
    message = row.messages[number]
    probes = {key: probe for key, probe in PROBES.items() if message.get(key)}
    written = template.render([*row.messages[:number], {**message, **probes}], row.tools).text[start:]
    for key, probe in probes.items():
        if written.count(probe) != 1:
            raise Refused(
                "content_changed", f"message {number}: the template writes its {key} {written.count(probe)} times"
            )
    return BETWEEN.sub(lambda found: f"\0{found[0]}\0", written).split("\0")


def _matches(written: str, message: Message, frame: list[str]) -> bool:
    """True: the texts come out as they went in; False: but for white space at their ends. Else raises Refused."""
    values = {probe: message[key] for key, probe in PROBES.items() if message.get(key)}
    if written == "".join(values.get(part, part) for part in frame):
        return True
    words = written[: len(written) - len(frame[-1])]
    if written.endswith(frame[-1]) and words == message["content"]:
        return True  # a template that takes <think>...</think> out of the content and writes it again
    pattern = "".join(
        rf"\s*{re.escape(values[part].strip())}\s*" if part in values else re.escape(part) for part in frame
    )
    if re.fullmatch(pattern, written):
        return False
    if written.endswith(frame[-1]) and "".join(words.split()) == "".join(message["content"].split()):
        return False
    raise Refused("content_changed")


def _stop(whole: Rendering, tail: int, template: ChatTemplate, number: int) -> int:
    """The end of the last control token behind the content."""
    literal = [found for found in whole.literal if found[1] > tail]
    for names in (template.controls, template.structural):
        ends = [end for begin, end in _occurrences(whole.text, tail, names) if not _inside(begin, literal)]
        if ends:
            return max(ends)
    raise Refused("no_end_token", f"message {number} is followed by no control token")


def _occurrences(text: str, start: int, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    if names:
        pattern = re.compile("|".join(re.escape(name) for name in sorted(names, key=lambda name: -len(name))))
        yield from (found.span() for found in pattern.finditer(text, start))


def _inside(place: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in ranges)


def _check_calls(calls: Sequence[dict[str, Any]], written: str, number: int) -> None:
    for call in calls:
        function = call["function"]
        for text in strings([function["name"], function["arguments"]]):
            if not _holds(written, text):
                raise Refused("tools_dropped", f"message {number}: the template leaves out part of a tool call")


def _check_survival(row: Conversation, example: Example) -> None:
    """Every message that stands before the example's last answer is in its text, and so are the tools."""
    for number, message in enumerate(row.messages[: example.answers[-1]]):
        words = message["content"]
        if message["role"] == "assistant":
            words = words.rsplit("</think>", 1)[-1]  # thoughts of the past are left out at inference as well
        if number not in example.answers and not _holds(example.text, words):
            raise Refused(
                "message_dropped", f"message {number} ({message['role']}) is not in what the template renders"
            )
    for tool in row.tools:
        if not _holds(example.text, tool.get("function", tool)["name"]):
            raise Refused("tools_dropped", "the template does not render `tools`")


def _holds(text: str, part: str) -> bool:
    """Whether a text holds a part: as it is but for white space at its ends, or as JSON writes it."""
    part = part.strip()
    return part in text or json.dumps(part, ensure_ascii=False)[1:-1] in text or json.dumps(part)[1:-1] in text
