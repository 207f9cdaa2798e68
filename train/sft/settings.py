"""Settings of supervised fine-tuning: how rows become ids and masks, and how a model is trained on them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

Argument = str | bool | int | float | None


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Chat:
    """How conversations become token ids and a mask of what is trained.

    template: None takes the model folder's own (chat_template.jinja or tokenizer_config.json); else the path of a
        Jinja file or the name of one shipped here (chatml, llama3, qwen2.5, qwen3, gemma, mistral).
    template_arguments: further names the template reads (enable_thinking, say); the same must be given at inference.
    template_date: the day (YYYY-MM-DD) for templates that write today's; None leaves them without a clock, so that
        they fall back to their fixed date or refuse.
    text_rows: what `prompt` and `completion` strings are: chat, a user's and an assistant's message; text, plain text
        without a template, the tokenizer's EOS behind the completion.
    history: rows whose earlier answers the template rewrites as the conversation goes on: refuse, or split into an
        example an answer, each as inference sees it.
    trimmed_answers: answers whose outer white space the template strips: refuse, or train what it leaves.
    control_text: contents that spell a control token: text encodes them as ordinary characters; refuse.
    empty_answers: answers of no text and no tool call: refuse, or train their end token alone.
    bos: template, what the template emits is all; prepend puts the tokenizer's BOS before it.
    truncate: conversations over sequence_tokens + 1 tokens: right cuts ids and mask together, drop leaves them out,
        both counted; refuse.
    max_refused: share of rows that may be refused before the whole run is.
    """

    template: str | None = None
    template_arguments: dict[str, Argument] = Field(default_factory=dict)
    template_date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    text_rows: Literal["chat", "text"] = "chat"
    history: Literal["refuse", "split"] = "refuse"
    trimmed_answers: Literal["refuse", "train"] = "refuse"
    control_text: Literal["text", "refuse"] = "text"
    empty_answers: Literal["refuse", "train"] = "refuse"
    bos: Literal["template", "prepend"] = "template"
    truncate: Literal["refuse", "right", "drop"] = "refuse"
    max_refused: float = Field(default=0.0, ge=0, le=1)
