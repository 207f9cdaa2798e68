"""Several answers to a row, each with a score: what best of N and pairs of preference start from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from synth.items import Item, Outcome
from synth.tasks.answering import posed
from synth.tasks.asking import Asking
from synth.tasks.candidates import Candidate, Stage, ask, check_of, verify
from synth.tasks.grading import Grading, graded
from synth.verdicts import Outcome as Says


def starts(item: Item, prompt: str, times: int) -> list[Candidate]:
    """An item's question, posed so many times; one closed candidate where it cannot be."""
    if not item.prompt.strip():
        return [Candidate().rejected("item.no_prompt")]
    start = posed(Candidate(), prompt, {**item.options, "question": item.prompt}, item.messages)
    return [replace(start, at=number) for number in range(times if start.open else 1)]


def scored(item: Item, made: Sequence[Candidate], answering: Asking, grading: Grading | None) -> Stage:
    """Their answers, those still open with the figure `score`: by a grader, None for the item's own verifier."""
    if grading is None and not item.verifier:
        return [made[0].rejected("item.no_verifier")]
    made = yield from ask(made, answering, lambda one: answering.request(one.asked, rollout=one.at))
    if item.verifier:
        made = yield from verify(made, lambda one: check_of(item, one.answer))
    if grading is None:
        return [_by_verdict(one) for one in made]
    return (yield from graded(made, grading, lambda one: (item.prompt, one.answer)))


def _by_verdict(one: Candidate) -> Candidate:
    """With the verifier's score. A wrong answer that has one is open: here it is a matter of degree."""
    if one.verdict is None or one.verdict.outcome not in (Says.RIGHT, Says.WRONG):
        return one
    right = one.verdict.outcome is Says.RIGHT
    score = one.verdict.score if one.verdict.score is not None else float(right)
    return replace(one.told(score=score), outcome=Outcome.ACCEPTED, reason="")
