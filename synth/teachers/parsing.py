"""A reply taken apart: reasoning, answer, and which of the few ends it came to. Never raises, whatever the text.

Servers and templates leave reasoning in five shapes: split off by the server; between both tags; before a closing tag
alone, the opening one being the end of the prompt (DeepSeek-R1's and QwQ's templates); behind an opening tag that is
never closed; none at all. The last is a plain answer, never a truncated one.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.replies import Finish, Parsed, Reply


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Tags:
    """How a teacher marks its reasoning.

    opening, closing: the two tags. opened_by: model, which writes the opening tag itself; template, whose prompt ends
        with it: then text without any tag is reasoning that did not end.
    unclosed: reasoning that ended by itself with no closing tag is reasoning without an answer, or is the answer (for
        models that skip their reasoning, whose server takes all for it).
    """

    opening: Annotated[str, Field(min_length=1)] = "<think>"
    closing: Annotated[str, Field(min_length=1)] = "</think>"
    opened_by: Literal["model", "template"] = "model"
    unclosed: Literal["reasoning", "answer"] = "reasoning"


DEFAULT_TAGS = Tags()
STOPS = frozenset({"stop", "eos", "eos_token", "end_turn", "stop_sequence"})
TOOLS = frozenset({"tool_calls", "function_call", "tool_use"})
FILTERS = frozenset({"content_filter", "safety"})


def parse(reply: Reply, tags: Tags = DEFAULT_TAGS) -> Parsed:
    """Reasoning and answer without tags and without the white space around them; reply.text keeps it.

    A reason to end that nobody knows is a truncation: nothing says that the answer is whole.
    """
    reasoning, answer, closed = _split(reply, tags)
    finish = _finish(reply, in_reasoning=reasoning is not None and not closed)
    if reasoning is not None and not closed and finish is Finish.STOP and tags.unclosed == "answer":
        reasoning, answer = None, f"{reasoning}{answer}"
    return Parsed(reasoning=(reasoning or "").strip() or None, answer=answer.strip(), finish=finish)


def _split(reply: Reply, tags: Tags) -> tuple[str | None, str, bool]:
    """Reasoning (None for none), answer, and whether the reasoning came to its end."""
    text = reply.text
    if reply.reasoning is not None:
        return reply.reasoning, text, bool(text.strip() or reply.tool_calls)
    head = text.lstrip()
    opened = head.startswith(tags.opening)
    body = head[len(tags.opening) :] if opened else text
    before, closing, behind = body.partition(tags.closing)
    if closing:
        # What a model says before an opening tag is reasoning, too: all before the closing tag is.
        return before.replace(tags.opening, "", 1), behind, True
    if opened or tags.opened_by == "template":
        return body, "", bool(reply.tool_calls)
    return None, text, True


def _finish(reply: Reply, in_reasoning: bool) -> Finish:
    reason = reply.finish_reason
    if reason in FILTERS:
        return Finish.FILTERED
    if reason in TOOLS or (reason in STOPS and reply.tool_calls):
        return Finish.TOOL
    if reason not in STOPS:
        return Finish.TRUNCATED_IN_REASONING if in_reasoning else Finish.TRUNCATED_IN_ANSWER
    return Finish.FORCED_END if reply.forced else Finish.STOP
