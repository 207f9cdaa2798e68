"""What a task works on: a row that came in, and for each row what went out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from synth.requests import Message


@dataclass(frozen=True, kw_only=True)
class Item:
    """A row of a task: a question with its gold answer, a document, a seed instruction.

    id: the source's own, or a digest of the content; unique in a task. prompt: the question or instruction.
    messages: earlier turns, where there are any. text: a document, for tasks on documents. gold: the known answer, in
    whatever form its verifier reads; None where there is none. verifier: the kind that checks answers; "" for none.
    options: the verifier's, such as policies, test cases or constraints. domain, skill, language: what balance goes by.
    licence: of the row, as SPDX has it; "" unknown. source: where it is from.
    """

    id: str
    prompt: str = ""
    messages: tuple[Message, ...] = ()
    text: str = ""
    gold: Any = None
    verifier: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    skill: str = ""
    language: str = ""
    licence: str = ""
    source: str = ""


class Outcome(StrEnum):
    """What became of a row. Rows in = the four together, always."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    FAILED = "failed"
    PENDING = "pending"


class SampleKind(StrEnum):
    """What a sample is of use for, and so which exports take it."""

    CONVERSATION = "conversation"  # messages whose last turn is trained on
    PAIR = "pair"  # messages, chosen, rejected
    DOCUMENT = "document"  # text for pretraining
    LABEL = "label"  # text with a score, for a classifier
    STEPS = "steps"  # a solution's steps with a value each


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A candidate row of the made data, kept whatever became of it.

    item: its Item's id. number: which of the item's. keys: the requests that it was made from, in order. messages: of
    a conversation, up to and with the last answer; of a pair, the prompt. reasoning stands in a message as
    `reasoning_content`, apart from `content`. chosen, rejected: the two last messages of a pair. text: of a document
    or label. outcome: accepted, rejected or failed. reason: of what was not accepted, "<stage>.<rule>" (verify.wrong,
    finish.truncated_in_answer, select.near_duplicate). verdict: of its verifier, "" where nothing verified it.
    figures: numbers by name (score, margin, temperature, reward). tokens: completion tokens that carry loss.
    """

    item: str
    number: int
    kind: SampleKind
    keys: tuple[str, ...]
    outcome: Outcome
    reason: str = ""
    messages: tuple[Message, ...] = ()
    chosen: Message | None = None
    rejected: Message | None = None
    text: str = ""
    verdict: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    tokens: int = 0
