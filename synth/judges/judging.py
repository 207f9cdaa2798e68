"""How judges are asked and read: once more where a reply cannot be read, then unscored.

What is judged is hostile text. It stands between tags whose names end in a digest of it, so that no text can close
its own; and a judge's reply is read only where all the verdicts in it agree, so that a verdict quoted from the text,
beside the judge's own, is none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from typing import Annotated, Any, Final, Generic, TypeVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.replies import Failure, Finish, Reply
from synth.requests import Message, Request, Sampling, digest
from synth.teachers.parsing import Tags, parse

Value = TypeVar("Value")
Asked = Generator[Sequence[Request], Any, "list[Opinion[Value]]"]
TAIL_CHARS: Final = 20_000
"""Of a judge's reply that are read: its verdict stands at the end."""

FENCE_DIGITS: Final = 10


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Judge:
    """Who judges and how.

    teacher: the recipe's name of who answers. temperature, max_tokens: of sampling. retry_temperature: of the one
        further try where a reply cannot be read, for at 0 it would come again; the higher of the two is taken.
    guided: ask the backend for JSON of the verdict's shape (no reasoning then stands before it, unless the teacher
        reasons by itself). tags: how its reasoning is marked; what it says in there is not read.
    """

    teacher: Annotated[str, Field(min_length=1)] = "judge"
    temperature: float = Field(default=0.0, ge=0, le=2)
    max_tokens: int = Field(default=1024, ge=1)
    retry_temperature: float = Field(default=0.7, ge=0, le=2)
    guided: bool = False
    tags: Tags = Field(default_factory=Tags)


@plain_dataclass(frozen=True, kw_only=True)
class Opinion(Generic[Value]):
    """What a judge said, None for unscored with the reason: unreadable, truncated, filtered, or failed (no reply).
    keys: of the replies, in order."""

    value: Value | None
    reason: str = ""
    keys: tuple[str, ...] = ()


def ask(
    judge: Judge,
    conversations: Sequence[Sequence[Message]],
    read: Callable[[str], Value | None],
    *,
    schema: Mapping[str, Any],
    rollouts: Sequence[int] = (),
) -> Asked[Value]:
    """An opinion for each conversation, in order; two effects at most.

    read: what an answer says, None where it cannot be read. schema: of the JSON that is asked for where judge.guided.
    rollouts: of each, 0 where absent: several votes on the same conversation.
    """
    if not conversations:
        return []
    chosen = list(rollouts) or [0] * len(conversations)
    first = [
        _request(judge, messages, schema, 2 * rollout) for messages, rollout in zip(conversations, chosen, strict=True)
    ]
    replies = yield first
    opinions = [_opinion(judge, reply, read) for reply in replies]
    again = [at for at, (opinion, reply) in enumerate(zip(opinions, replies, strict=True)) if _retried(opinion, reply)]
    if not again:
        return opinions
    replies = yield [_request(judge, conversations[at], schema, 2 * chosen[at] + 1) for at in again]
    for at, reply in zip(again, replies, strict=True):
        second = _opinion(judge, reply, read)
        opinions[at] = Opinion(value=second.value, reason=second.reason, keys=(*opinions[at].keys, *second.keys))
    return opinions


def _retried(opinion: Opinion[Value], reply: Reply | Failure) -> bool:
    # What got no reply is asked for again by the next run, under its own key.
    return opinion.value is None and isinstance(reply, Reply)


def _request(judge: Judge, messages: Sequence[Message], schema: Mapping[str, Any], rollout: int) -> Request:
    sampling = Sampling(
        temperature=judge.temperature, max_tokens=judge.max_tokens, json_schema=dict(schema) if judge.guided else None
    )
    again = max(judge.temperature, judge.retry_temperature) if rollout % 2 else None
    return Request(
        messages=tuple(messages), sampling=sampling, rollout=rollout, temperature=again, teacher=judge.teacher
    )


def _opinion(judge: Judge, reply: Reply | Failure, read: Callable[[str], Value | None]) -> Opinion[Value]:
    if isinstance(reply, Failure):
        return Opinion(value=None, reason="failed", keys=(reply.key,))
    parsed = parse(reply, judge.tags)
    if parsed.finish in (Finish.TRUNCATED_IN_REASONING, Finish.TRUNCATED_IN_ANSWER):
        return Opinion(value=None, reason="truncated", keys=(reply.key,))
    if parsed.finish is Finish.FILTERED:
        return Opinion(value=None, reason="filtered", keys=(reply.key,))
    value = read(parsed.answer)
    return Opinion(value=value, reason="" if value is not None else "unreadable", keys=(reply.key,))


def fence(*texts: str) -> str:
    """What tags around these texts end in: none of them can hold it but by a collision of its own digest."""
    made = digest(list(texts))[:FENCE_DIGITS]
    while any(made in text for text in texts):
        made = digest([made, *texts])[:FENCE_DIGITS]
    return made


def verdict_of(answer: str, name: str) -> Any:
    """The value under a name of the JSON objects in an answer; None where there is none, or where they disagree."""
    said = [found[name] for found in _objects(answer[-TAIL_CHARS:]) if name in found]
    texts = {json.dumps(value, sort_keys=True) for value in said}
    return said[-1] if len(texts) == 1 else None


def _objects(text: str) -> list[dict[str, Any]]:
    """JSON objects in a text, outermost ones."""
    decoder = json.JSONDecoder()
    found = []
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            found.append(value)
        at = text.find("{", end)
    return found


def number(value: Any, low: float, high: float) -> float | None:
    """A number on a scale, None for anything else: what lies outside is not read as its end."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if low <= value <= high else None
