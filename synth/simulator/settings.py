"""Settings of a simulated teacher: what it knows, how it speaks, how slow it is and how it fails."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, model_validator
from pydantic.dataclasses import dataclass

Share = Annotated[float, Field(ge=0, le=1)]
STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Known:
    """A question whose answer is known here. It is found by its name behind the marker, or by its text in a prompt.

    gold: the right answer. skill: probability of it at temperature 1. wrong: the wrong ones, the likeliest first;
    () makes some up. prompt: the question's text, for prompts without a marker.
    """

    gold: str
    skill: Share = 0.5
    wrong: tuple[str, ...] = ()
    prompt: str = ""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Skill:
    """How temperature T changes which answer is given.

    law: modes, a softmax over right and wrong answers: weights p_i ** (1 / T), so that heat helps where the right one
        is not the likeliest; falls, right with probability skill ** T, so that heat only hurts; constant.
    modes: answers in all. spread: weight of each wrong answer over the one before; below 1.
    """

    law: Literal["modes", "falls", "constant"] = "modes"
    modes: int = Field(default=6, ge=2)
    spread: float = Field(default=0.5, gt=0, le=1)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Speech:
    """How answers are said.

    reasoning: none; tags, around it in the text; closing, only the closing tag, as behind a template that opened it;
        split, in a field of its own, as behind vLLM's --reasoning-parser.
    words, sigma: length of the reasoning: log-normal of this median, exp(sigma) being a standard deviation's factor.
    hardness: by how much longer, as a factor, it is for a question of skill 0 than of 1.
    answer: around the answer, for {answer}.
    untagged, unclosed: shares of replies without any tag, and without the closing one.
    duplicates: share of replies that are drawn without their seed, and so are the same for all rollouts.
    bytes_per_token: tokens are so many bytes of UTF-8.
    """

    reasoning: Literal["none", "tags", "closing", "split"] = "tags"
    words: int = Field(default=40, ge=0)
    sigma: float = Field(default=0.5, ge=0, le=3)
    hardness: float = Field(default=1.0, ge=0)
    answer: str = "The answer is \\boxed{{answer}}."
    untagged: Share = 0.0
    unclosed: Share = 0.0
    duplicates: Share = 0.0
    bytes_per_token: int = Field(default=3, ge=1, le=3)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Latency:
    """How long a reply takes: first_token_seconds plus tokens by tokens_per_second (0: at once), times `scale`.

    total_tokens_per_second: what all requests in flight share; 0 for no such bound.
    """

    first_token_seconds: float = Field(default=0.0, ge=0)
    tokens_per_second: float = Field(default=0.0, ge=0)
    total_tokens_per_second: float = Field(default=0.0, ge=0)
    scale: float = Field(default=1.0, ge=0)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Faults:
    """Shares of attempts that go wrong, drawn by request and by how often it came, so that trying again helps.

    too_many: 429 with Retry-After. server_error: 500 or 503. reset: the connection is cut within the body. hang: no
    answer for hang_seconds. torn: the JSON is cut, the HTTP is whole. empty: no choices. null: no content.
    most: faults that one request meets at most; 0 for no bound.
    """

    too_many: Share = 0.0
    server_error: Share = 0.0
    reset: Share = 0.0
    hang: Share = 0.0
    torn: Share = 0.0
    empty: Share = 0.0
    null: Share = 0.0
    retry_after_seconds: float = Field(default=0.0, ge=0)
    hang_seconds: float = Field(default=3600.0, gt=0)
    most: int = Field(default=3, ge=0)

    @model_validator(mode="after")
    def _together(self) -> Faults:
        if sum(self.shares().values()) > 1:
            raise ValueError("faults: the shares are more than 1 together")
        return self

    def shares(self) -> dict[str, float]:
        """By name, in a fixed order."""
        names = ("too_many", "server_error", "reset", "hang", "torn", "empty", "null")
        return {name: float(getattr(self, name)) for name in names}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Rule:
    """A scripted reply to a last message that holds `match` (a regular expression, over lines).

    system: a regular expression that the other messages must hold together, too. reply: what is said, with {{1}} or
    {{name}} for groups of the match, {{draw}} for a number that the seed draws; of several one is drawn by the seed.
    probabilities: replies and their chances, instead of `reply`; also told as logprobs of the first token, where they
    are asked for; they do not depend on temperature. reasoning: said before it. tool: a function to call, with
    arguments as JSON in `reply`. finish_reason: the end that is told.
    """

    match: str
    system: str = ""
    reply: tuple[str, ...] = ()
    probabilities: dict[str, Share] = Field(default_factory=dict)
    reasoning: str = ""
    tool: str = ""
    finish_reason: str = "stop"

    @model_validator(mode="after")
    def _sound(self) -> Rule:
        for name in ("match", "system"):
            try:
                re.compile(getattr(self, name))
            except re.error as error:
                raise ValueError(f"{name}: no regular expression: {error}") from None
        if bool(self.reply) == bool(self.probabilities):
            raise ValueError("reply, probabilities: give exactly one of them")
        return self


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SimulatorSettings:
    """A simulated teacher. What it replies depends on the request's body and `seed` alone.

    model: the name that it serves. known: questions by name. marker: a regular expression whose first group is a name
        among `known`. rules: tried first, in order. script: FILE.py:FUNCTION, tried before the rules: called with the
        request's body and a number of [0, 1) that its seed draws, it gives a text or None. otherwise: the reply to
        what nothing here knows; "" makes one up.
    vllm: be vLLM, which tells token ids. context_tokens: of prompt and reply; what is longer is refused with 400.
    bears: requests in flight beyond which 429 is answered; 0 for no bound. api_key: wanted of each request.
    port: 0 takes a free one.
    """

    model: str = "simulated"
    seed: int = 0
    known: dict[str, Known] = Field(default_factory=dict)
    marker: str = r"\[(?:item|id)[ :=]([\w.-]+)\]"
    rules: tuple[Rule, ...] = ()
    script: str = ""
    otherwise: str = ""
    skill: Skill = Field(default_factory=Skill)
    speech: Speech = Field(default_factory=Speech)
    latency: Latency = Field(default_factory=Latency)
    faults: Faults = Field(default_factory=Faults)
    vllm: bool = True
    context_tokens: int = Field(default=1_000_000, ge=1)
    bears: int = Field(default=0, ge=0)
    api_key: str = ""
    port: int = Field(default=0, ge=0, le=65535)

    def plain(self) -> dict[str, Any]:
        """As JSON values, the way a settings file says them."""
        told: dict[str, Any] = TypeAdapter(SimulatorSettings).dump_python(self, mode="json")
        return told
