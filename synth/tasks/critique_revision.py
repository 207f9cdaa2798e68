"""An answer revised: its new text, which must be another one and must not speak of how it came about."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import replace
from typing import Any

from synth.items import Item, Sample
from synth.replies import Parsed
from synth.requests import Message
from synth.tasks.asking import Asking
from synth.tasks.candidates import Candidate, ask, tokens_of
from synth.tasks.rephrase_fidelity import chatter, leaks
from synth.tasks.rephrase_text import words
from synth.tasks.tagged import taken

TAG = "revision"
"""What a revision stands between in a reply."""


def revised(
    before: Candidate,
    asking: Asking,
    messages: Sequence[Message],
    *,
    hidden: str,
    known: str,
    seen: Collection[str] = (),
) -> Generator[Any, Any, Candidate]:
    """The candidate with the text that a reply gives between tags, or closed with a reason.

    hidden: what it must not quote, eight words in a row, unless they are known. seen: texts that it must differ from,
    but for case, marks and white space. Its reasoning is dropped: it is about the faults of an answer that is gone.
    """
    start = replace(before, reply=None, parsed=None, verdict=None, text="")
    asked = yield from ask([start], asking, lambda one: asking.request(messages, rollout=one.at))
    made = taken(asked[0], TAG)
    if not made.open or made.parsed is None:
        return made
    made = replace(made, parsed=Parsed(reasoning=None, answer=made.text, finish=made.parsed.finish))
    if same(made.text, before.answer):
        return made.rejected("revise.unchanged")
    if any(same(made.text, text) for text in seen):
        return made.rejected("revise.repeated")
    if leaks(made.text, hidden, known):
        return made.rejected("leak.prompt")
    return made.rejected("leak.chatter") if chatter(made.text, before.answer) else made


def same(first: str, second: str) -> bool:
    """Whether two texts differ in case, marks and white space at most; texts of symbols alone, in white space."""
    told = words(first), words(second)
    return told[0] == told[1] if told[0] or told[1] else first.split() == second.split()


def told(made: Candidate, item: Item, number: int) -> Sample:
    """As a conversation; its tokens are those of the answer alone, where that is part of a reply."""
    sample = made.sample(item, number)
    return replace(sample, tokens=tokens_of(made.reply, made.answer)) if made.text else sample
