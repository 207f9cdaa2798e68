"""Why a row is not trained on: one stable reason code a row, counted, with row ids and never with content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SHOWN_IDS = 5

REASONS = {
    "invalid_json": "the line is no JSON object",
    "not_a_conversation": "the row has neither `messages` nor `prompt` and `completion` of the right types",
    "empty_conversation": "`messages` is empty",
    "unknown_role": "a role is none of system, developer, user, assistant, tool",
    "not_text": "a content is neither a string nor a list of text parts",
    "invalid_text": "a string holds a lone surrogate, a NUL or a Unicode noncharacter",
    "invalid_tools": "`tools` or `tool_calls` are not of the documented form, or arguments are no JSON object",
    "no_answer": "no assistant message is to be trained",
    "empty_answer": "an assistant message to be trained has neither content nor tool calls",
    "template_refused": "the chat template raised an error for this conversation",
    "generation_prompt": "the template renders an answer in another way than its generation prompt begins it",
    "content_changed": "an answer does not come out of the template as it went in",
    "content_trimmed": "the template strips white space at the ends of an answer",
    "message_dropped": "the template leaves out a message of another role",
    "tools_dropped": "the template leaves out `tools` or a tool call",
    "history_rewritten": "the template renders an earlier answer differently once the conversation goes on",
    "no_end_token": "the template puts no control token behind an answer, so that a model would never stop",
    "control_text": "a content spells a control token, which this tokenizer, template or policy cannot encode as text",
    "boundary_token": "a token reaches across the edge of an answer",
    "not_decoded": "the ids of an answer do not decode to its text",
    "double_bos": "the conversation begins with two BOS tokens",
    "nothing_to_train": "no token has a loss",
    "too_long": "the conversation is longer than sequence_tokens + 1 tokens",
}


class SftError(ValueError):
    """Rows, a template, a tokenizer or settings that cannot be used as asked: one line that says what to do."""


class Refused(Exception):
    """One row that cannot be trained on. reason: a key of REASONS; detail: where, in words without content."""

    def __init__(self, reason: str, detail: str = "") -> None:
        assert reason in REASONS, reason
        super().__init__(f"{reason}: {detail or REASONS[reason]}")
        self.reason = reason
        self.detail = detail or REASONS[reason]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A refused row as it is written down: its id, where it stands, why."""

    id: str
    location: str
    reason: str
    detail: str


def check_share(refusals: Sequence[Refusal], rows: int, max_refused: float) -> None:
    """Raise SftError, with the first ids of each reason, when more than this share of the rows was refused."""
    if len(refusals) <= max_refused * rows:
        return
    by_reason: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        by_reason.setdefault(refusal.reason, []).append(refusal)
    told = "; ".join(
        f"{reason} {len(own)} ({_first([refusal.id for refusal in own])}: {own[0].detail})"
        for reason, own in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0]))
    )
    raise SftError(
        f"data: {len(refusals)} of {rows} rows refused, where max_refused {max_refused:g} allows "
        f"{int(max_refused * rows)}: {told}; mend or remove these rows, change the policy, or raise max_refused"
    )


def _first(ids: Sequence[str]) -> str:
    return ", ".join(ids if len(ids) <= SHOWN_IDS else [*ids[:SHOWN_IDS], "..."])
