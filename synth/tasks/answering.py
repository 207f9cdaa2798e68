"""From an instruction to its answer: the last stage of every task that makes instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from synth.errors import SynthError
from synth.prompts import template
from synth.requests import Message
from synth.tasks.asking import Asking, filled
from synth.tasks.candidates import Candidate, Stage, ask

REFUSAL_WORDS: Final = 80
"""A refusal is "sorry" in fewer words than this: WizardLM (arXiv:2304.12244), section 3.2."""


def posed(
    candidate: Candidate, prompt: str, values: Mapping[str, Any], earlier: Sequence[Message] = (), plain: str = ""
) -> Candidate:
    """With the conversation to be answered: earlier turns, and the prompt. A row that lacks a value of the template
    is failed, and no other row with it. plain: train on this user's turn instead of the rendered one."""
    if not candidate.open:
        return candidate
    try:
        turns = filled(prompt, **values)
    except SynthError as error:
        return candidate.failed("prompt.value", str(error))
    system = sum(turn["role"] == "system" for turn in turns)
    asked = (*turns[:system], *earlier, *turns[system:])
    messages = (*earlier, {"role": "user", "content": plain}) if plain else asked
    facts = {**candidate.facts, "prompt": template(prompt).title}
    return replace(candidate, asked=asked, messages=messages, facts=facts)


def answer(candidates: Sequence[Candidate], asking: Asking, prompt: str) -> Stage:
    """Have each open candidate's `text` answered; its number tells equal texts apart."""
    asked = [posed(candidate, prompt, {"question": candidate.text}) for candidate in candidates]
    return (yield from ask(asked, asking, lambda one: asking.request(one.asked, rollout=one.at)))


def refused(candidate: Candidate) -> Candidate:
    """Rejected where its answer says sorry and little else, or nothing but stop words and punctuation."""
    if not candidate.open:
        return candidate
    words = candidate.answer.casefold().split()
    if len(words) < REFUSAL_WORDS and any("sorry" in word for word in words):
        return candidate.rejected("answer.refusal")
    if all(word.strip("".join(PUNCTUATION)) in STOP_WORDS for word in words):
        return candidate.rejected("answer.no_words")
    return candidate


PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_STOP_WORDS: Final = """
    a an and are as at be but by for from had has have he her his i if in into is it its me my of on or our she so that
    the their them then there these they this to was we were what when which who will with you your
"""
STOP_WORDS: Final = frozenset((*_STOP_WORDS.split(), ""))
"""English alone, with the empty word, which is punctuation by itself; yes, no and not are answers."""
