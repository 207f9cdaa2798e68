"""A conversation as it grows: whose turn it is, what each side may see, and what is trained on in the end."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.items import Item, Sample
from synth.judges.judging import fence
from synth.requests import Message
from synth.tasks.asking import Asking, filled, given
from synth.tasks.candidates import Candidate, ask
from synth.tasks.critique_revision import same
from synth.tasks.rephrase_fidelity import leaks
from synth.tasks.tagged import inside

Train = Literal["each", "last"]
DONE: Final = "<done>"
"""What the simulated user says where it has nothing more to say."""

_OTHERS: Final = re.compile(r"^(?:\*\*)?(?:User|Human|Person|Customer)(?:\*\*)?:", re.M)
_ANYBODY: Final = re.compile(r"^\W{0,4}(?:assistant|chatbot|ai|user|human|person|system)\W{0,2}:", re.I | re.M)
_CODE: Final = re.compile(r"^```.*?(?:^```|\Z)", re.M | re.S)
_SERVING: Final = re.compile(
    r"\bas an? (?:ai|assistant|language model)\b|\bi(?:['\u2019]m| am) (?:an ai|a language model)\b"
    r"|\bi(?:['\u2019]m| am) here to (?:help|assist)\b|\bhow (?:can|may) i (?:help|assist) you\b"
    r"|\bis there anything else (?:i can|you)\b",
    re.I,
)


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class User:
    """Who plays the user. prompt: is given persona, goal, dialogue and fence. asking: how it is asked."""

    prompt: Annotated[str, given("persona", "goal", "dialogue", "fence")] = "multi_turn_user"
    asking: Asking = Field(default_factory=lambda: Asking(max_tokens=512))


@plain_dataclass(frozen=True, kw_only=True)
class Turn:
    """Where an assistant's turn ends: so many messages and requests, and its own tokens."""

    messages: int
    keys: int
    tokens: int


def user_turn(
    made: Candidate, item: Item, user: User, persona: str
) -> Generator[Any, Any, tuple[Candidate, str | None]]:
    """The conversation and the user's next message, None where it is done or the conversation is closed.

    The user sees persona, goal and what was said aloud: no reasoning, no tools, no system's text.
    """
    dialogue = said_aloud(made.messages)
    mark = fence(persona, item.prompt, dialogue)
    values = {"persona": persona, "goal": item.prompt, "fence": mark}
    messages = filled(user.prompt, **values, dialogue=dialogue)
    asked = yield from ask([made], user.asking, lambda one: user.asking.request(messages, rollout=one.at))
    after = replace(asked[0], parsed=None, reply=None)
    if not after.open:
        return _blamed(after, "user"), None
    text = inside(asked[0].answer, "message")
    if not text:
        done = DONE in asked[0].answer.casefold()
        return (after if done else after.rejected("user.no_message")), None
    blank = "\n".join(
        str(message["content"]) for message in filled(user.prompt, persona="", goal="", dialogue="", fence=mark)
    )
    reason = _user_fault(text, made.messages, blank, f"{persona}\n{item.prompt}\n{dialogue}")
    return (after.rejected(reason), None) if reason else (after, text)


def _user_fault(text: str, messages: Sequence[Message], blank: str, known: str) -> str:
    if leaks(text, blank, known):
        return "leak.prompt"
    if _ANYBODY.search(text):
        return "user.speaks_for_others"
    if _SERVING.search(text):
        return "user.speaks_as_assistant"
    repeated = any(same(text, _content(one)) for one in messages if one["role"] in ("user", "assistant"))
    return "user.repeats" if repeated else ""


def assistant_fault(text: str) -> str:
    """Why what the assistant said is no turn of its own, "" where it is one. Code may hold what it likes."""
    return "assistant.speaks_for_others" if _OTHERS.search(_CODE.sub("", text)) else ""


def assistant_turn(made: Candidate, asking: Asking, turns: list[Turn]) -> Generator[Any, Any, Candidate]:
    """The conversation with the assistant's next message, which sees the conversation and nothing else."""
    asked = yield from ask([made], asking, lambda one: asking.request(heard(one.messages), rollout=one.at))
    return taken_turn(asked[0], turns)


def taken_turn(asked: Candidate, turns: list[Turn]) -> Candidate:
    """The conversation with the answer of its last reply as the assistant's message."""
    after = replace(asked, parsed=None, reply=None)
    if not asked.open:
        return _blamed(after, "assistant")
    if reason := assistant_fault(asked.answer):
        return after.rejected(reason)
    after = replace(after, messages=(*asked.messages, asked.turn()))
    turns.append(turn_of(after, asked))
    return after


def turn_of(after: Candidate, asked: Candidate) -> Turn:
    tokens = asked.reply.completion_tokens if asked.reply else 0
    return Turn(messages=len(after.messages), keys=len(after.keys), tokens=tokens)


def heard(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages as they are sent again: without the reasoning, which templates drop from earlier turns."""
    return tuple({key: value for key, value in one.items() if key != "reasoning_content"} for one in messages)


def said_aloud(messages: Sequence[Message]) -> str:
    """What the two said to each other."""
    names = {"user": "Person", "assistant": "Assistant"}
    return "\n\n".join(f"{names[one['role']]}: {_content(one)}" for one in messages if one["role"] in names)


def _content(message: Message) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""


def _blamed(made: Candidate, who: str) -> Candidate:
    """With whose reply it was that did not come or did not end."""
    return replace(made, facts={**made.facts, "ended_by": who})


def samples_of(item: Item, first: int, made: Candidate, turns: Sequence[Turn], train: Train) -> list[Sample]:
    """A conversation that is closed, or trained on once, as one sample; else one for each of the assistant's turns,
    numbered from `first`. The last one has all requests."""
    whole = replace(made.sample(item, first), tokens=turns[-1].tokens if turns else 0)
    if train == "last" or not made.open or not turns:
        return [whole]
    return [
        replace(
            whole, number=first + at, messages=made.messages[: turn.messages], tokens=turn.tokens,
            keys=made.keys if at == len(turns) - 1 else made.keys[: turn.keys], figures={**whole.figures, "turn": at},
        )
        for at, turn in enumerate(turns)
    ]  # fmt: skip
