"""What a teacher replied, as it came, and what became of it: an end that is one of a few, never a guess."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

UNWRITABLE: Final = re.compile("[\0\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""What no trainer's text holds: NUL, lone surrogates (which UTF-8 cannot write), noncharacters."""


class Finish(StrEnum):
    """How a reply ended, once it is parsed. Each has a policy of its own in the settings."""

    STOP = "stop"
    TRUNCATED_IN_REASONING = "truncated_in_reasoning"
    TRUNCATED_IN_ANSWER = "truncated_in_answer"
    TOOL = "tool"
    FILTERED = "filtered"
    FORCED_END = "forced_end"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A generated reply, raw: what is parsed from it can change without generating it again.

    text: all that was generated, reasoning included, with its tags where the backend left them in. reasoning: what the
    backend split off by itself, None where it split nothing. finish_reason: the backend's own word. tool_calls: JSON
    text of the calls, "" for none. prompt_ids, ids: token ids, None where the backend gives none. logprobs: JSON text
    of the alternatives that were asked for, "" for none. temperature, seed: as sent. cached_tokens: of the prompt,
    read from the prefix cache. seconds: from sending to the last byte. attempts: how often it was sent.
    forced: the reasoning was cut and the reply made to go on to its answer.
    """

    key: str
    text: str
    finish_reason: str
    reasoning: str | None = None
    tool_calls: str = ""
    prompt_ids: tuple[int, ...] | None = None
    ids: tuple[int, ...] | None = None
    logprobs: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    temperature: float = 1.0
    seed: int = 0
    seconds: float = 0.0
    attempts: int = 1
    forced: bool = False


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A request that got no reply: stage is where (send, wait, read, refused, prompt), error its class and cause
    without any text of prompt or reply. final: asking again would fail the same way (a prompt that is too long), so a
    resumed run does not; others are asked again by the next run."""

    key: str
    stage: str
    error: str
    attempts: int = 1
    final: bool = False


class TeacherError(Exception):
    """Raised by Teacher.generate once its retries are used up; `failure` says what is stored."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.stage}: {failure.error}")
        self.failure = failure


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """A reply taken apart: reasoning without its tags (None: it did not reason), and the answer after it."""

    reasoning: str | None
    answer: str
    finish: Finish
