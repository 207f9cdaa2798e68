"""What a teacher is asked for, and the key under which its reply is stored for ever.

The key is a hash of what was asked (teacher, conversation, sampling policy) and of the rollout's index: never of a
position, a time, a parser or a verifier. So adding rollouts, rows or verifiers, or changing them, generates nothing
again. The temperature that a schedule draws for one rollout is no part of it: a run that is resumed, or verified anew
with other verdicts, keeps the rollouts that are there, and their temperatures are read from the store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import xxhash

Message = Mapping[str, Any]
"""As OpenAI's chat format has it: role, content, and tool_calls or tool_call_id where tools are used."""

SEED_BITS: Final = 31
"""Backends differ in how wide a seed they take; all take 31 bits."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Which teacher answers: model and revision by name, and a digest of the chat template that renders prompts.

    template: "" where only the server knows it; another template under the same name then goes unnoticed, so name a
    revision.
    """

    model: str
    revision: str = ""
    template: str = ""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How to sample: part of a request's identity. top_k 0 and min_p 0 switch them off.

    json_schema: the reply must be JSON of this schema (guided decoding). logprobs: how many alternatives a token to
    return, for judges that read probabilities; 0 for none.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    max_tokens: int = 1024
    stop: tuple[str, ...] = ()
    json_schema: Mapping[str, Any] | None = None
    logprobs: int = 0


@dataclass(frozen=True, kw_only=True)
class Request:
    """One reply to generate.

    messages: the conversation; or prompt: raw text that the model goes on from, without a template.
    tools: function schemas of the conversation. continues: the last message is the assistant's, and the reply goes on
    in it. rollout: which of several replies to the same request. temperature: drawn by a schedule for this rollout;
    None for sampling's. teacher: the recipe's name of who answers.
    """

    messages: tuple[Message, ...] = ()
    prompt: str | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    continues: bool = False
    sampling: Sampling = Sampling()
    rollout: int = 0
    temperature: float | None = None
    teacher: str = "teacher"

    @property
    def drawn_temperature(self) -> float:
        """The temperature that it is sent with."""
        return self.sampling.temperature if self.temperature is None else self.temperature

    def content(self) -> dict[str, Any]:
        """What is asked, as JSON: the same for each rollout."""
        return {
            "messages": [dict(message) for message in self.messages],
            "prompt": self.prompt,
            "tools": [dict(tool) for tool in self.tools],
            "continues": self.continues,
            "sampling": asdict(self.sampling),
        }

    def key(self, identity: Identity) -> str:
        """32 hex digits: xxh3-128 of the canonical JSON of teacher, content and rollout."""
        return digest([asdict(identity), self.content(), self.rollout])


def digest(value: Any) -> str:
    """xxh3-128 of a value's canonical JSON: keys in order, no blanks, UTF-8."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return str(xxhash.xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass")))


def seed_of(key: str) -> int:
    """The seed that a request is sent with: of its key, so that a repeated request repeats it."""
    return int(key, 16) & ((1 << SEED_BITS) - 1)
