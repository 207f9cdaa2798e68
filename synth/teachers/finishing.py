"""What is done with each way that a reply can end, as a sub-flow: `answered = yield from reply_with_policy(...)`."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.replies import Failure, Finish, Parsed, Reply
from synth.requests import Request
from synth.teachers.parsing import DEFAULT_TAGS, Tags, parse

Answered = tuple[Reply, Parsed] | Failure
Keep = Literal["accept", "reject"]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class FinishPolicy:
    """A policy for each end of a reply but `stop`, which is always accepted.

    accept: take it as it is. reject: keep it with the reason finish.<state>. escalate: ask once more, with
    escalate_factor times max_tokens; what is truncated again is rejected. force_end: close the reasoning, write `cue`
    and let the teacher go on for forced_max_tokens; the reply then ends as forced_end.
    Rejecting the truncated drops the hard problems first: watch the share of them.

    cue: as the budget forcing of Muennighoff et al. 2025 (arXiv:2501.19393) ends reasoning.
    """

    truncated_in_reasoning: Literal["accept", "reject", "escalate", "force_end"] = "reject"
    truncated_in_answer: Literal["accept", "reject", "escalate"] = "reject"
    tool: Keep = "accept"
    filtered: Keep = "reject"
    forced_end: Keep = "accept"
    escalate_factor: int = Field(default=2, ge=2)
    cue: str = "\n\nFinal answer:"
    forced_max_tokens: int = Field(default=512, ge=1)

    def of(self, finish: Finish) -> str:
        """The policy for an end."""
        return "accept" if finish is Finish.STOP else str(getattr(self, finish.value))

    def reason(self, finish: Finish) -> str:
        """Why a reply that came to this end after all is rejected, as samples have it: "" where it is accepted."""
        return "" if self.of(finish) == "accept" else f"finish.{finish.value}"


DEFAULT_POLICY: Final = FinishPolicy()


def reply_with_policy(
    requests: Sequence[Request], policy: FinishPolicy = DEFAULT_POLICY, tags: Tags = DEFAULT_TAGS
) -> Generator[Sequence[Request], Any, list[Answered]]:
    """For each request, in order, its reply and the parsed one, or what failed.

    Replies that end otherwise than their policy accepts are asked for again, all in one further effect, at most once
    each. Of a forced end the reply is both parts joined, under the second's key (whose request holds the first part).
    What is still not accepted is for the caller: `policy.reason(parsed.finish)` says so.
    """
    replies = yield requests
    answered: list[Answered] = [r if isinstance(r, Failure) else (r, parse(r, tags)) for r in replies]
    further: dict[int, Request] = {}
    for at, (request, answer) in enumerate(zip(requests, answered, strict=True)):
        if isinstance(answer, Failure):
            continue
        reply, parsed = answer
        match policy.of(parsed.finish):
            case "escalate":
                further[at] = escalated(request, policy)
            case "force_end":
                further[at] = forced(request, reply, policy, tags)
    if not further:
        return answered
    replies = yield list(further.values())
    for at, reply in zip(further, replies, strict=True):
        first = answered[at]
        if isinstance(reply, Failure) or isinstance(first, Failure):
            answered[at] = reply
            continue
        if policy.of(first[1].finish) == "force_end":
            reply = joined(first[0], reply, policy, tags)
        answered[at] = (reply, parse(reply, tags))
    return answered


def escalated(request: Request, policy: FinishPolicy) -> Request:
    """The same with more room."""
    tokens = request.sampling.max_tokens * policy.escalate_factor
    return replace(request, sampling=replace(request.sampling, max_tokens=tokens))


def forced(request: Request, reply: Reply, policy: FinishPolicy, tags: Tags) -> Request:
    """Go on from the reasoning so far, which is closed, and the cue.

    The turn is written out whole: where the template opens reasoning it does so in the prompt of a new turn, not in
    one that is continued.
    """
    room = replace(request.sampling, max_tokens=policy.forced_max_tokens)
    ending = f"\n{tags.closing}{policy.cue}"
    if request.prompt is not None:
        return replace(request, prompt=f"{request.prompt}{_reasoned(reply, tags)}{ending}", sampling=room)
    messages, start = request.messages, ""
    if request.continues:
        messages, last = messages[:-1], messages[-1]
        start = str(last.get("content") or "")
    content = f"{start}{_reasoned(reply, tags, whole=not start)}{ending}"
    turn: Mapping[str, Any] = {"role": "assistant", "content": content}
    return replace(request, messages=(*messages, turn), continues=True, sampling=room)


def _reasoned(reply: Reply, tags: Tags, whole: bool = False) -> str:
    """The reasoning as it would stand in the conversation; whole: with the opening tag that the template wrote."""
    text = reply.text if reply.reasoning is None else f"{tags.opening}\n{reply.reasoning}"
    return f"{tags.opening}\n{text}" if whole and not text.lstrip().startswith(tags.opening) else text


def joined(first: Reply, second: Reply, policy: FinishPolicy, tags: Tags) -> Reply:
    """Both parts of a forced end as one reply. Its ids are all behind the first prompt, where the backend gave them."""
    # A server that splits reasoning off takes a continuation without a closing tag for reasoning.
    behind = policy.cue + (second.text or second.reasoning or "")
    text = behind if first.reasoning is not None else f"{first.text}\n{tags.closing}{behind}"
    return replace(
        second, text=text, reasoning=first.reasoning, forced=True, prompt_ids=first.prompt_ids,
        ids=_joined_ids(first, second), logprobs="", prompt_tokens=first.prompt_tokens + second.prompt_tokens,
        completion_tokens=first.completion_tokens + second.completion_tokens,
        cached_tokens=first.cached_tokens + second.cached_tokens,
        seconds=first.seconds + second.seconds, attempts=first.attempts + second.attempts,
    )  # fmt: skip


def _joined_ids(first: Reply, second: Reply) -> tuple[int, ...] | None:
    """Ids of the joined text as the model saw them: None where the second prompt does not start as the first."""
    if first.prompt_ids is None or second.prompt_ids is None or second.ids is None:
        return None
    start = len(first.prompt_ids)
    return (*second.prompt_ids[start:], *second.ids) if second.prompt_ids[:start] == first.prompt_ids else None
