"""Rejection sampling in waves: as many rollouts of a question as its schedule finds worth having, each verified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from synth.flows import Desk
from synth.items import Item
from synth.replies import Finish
from synth.requests import Request
from synth.rollouts.allocating import allocate
from synth.rollouts.history import Rollout
from synth.rollouts.settings import Rollouts
from synth.rollouts.waves import Stop, next_wave
from synth.tasks.asking import Asking
from synth.tasks.candidates import Candidate, Stage, ask, check_of, verify
from synth.verdicts import Outcome as Says

Judge = Callable[[Sequence[Candidate]], Stage]
WRONG: Final = frozenset({"verify.wrong", "language.wrong", "answer.empty"})
"""What counts as a rollout that went wrong. Whatever else is not accepted says nothing of the question."""
TRUNCATED: Final = frozenset({Finish.TRUNCATED_IN_REASONING, Finish.TRUNCATED_IN_ANSWER})


def verified_by(item: Item) -> Judge:
    """The item's own verifier; of an item without one, every answer that ended well stays open."""

    def judge(candidates: Sequence[Candidate]) -> Stage:
        if not item.verifier:
            return list(candidates)
        return (yield from verify(candidates, lambda one: check_of(item, one.answer)))

    return judge


def rolled(start: Candidate, settings: Rollouts, asking: Asking, desk: Desk, judge: Judge) -> Stage:
    """All rollouts of a question that is posed, in the order they were asked for; `start` alone where it is closed.

    Temperatures in the history are those that were sent, as replies tell them: a run that goes on with what is stored
    goes on from there. Why there was no further wave stands in facts.stopped.
    """
    if not start.open:
        return [start]
    made: list[Candidate] = []
    while True:
        history = [_rollout(one, asking) for one in made]
        wave = next_wave(settings, history, desk.seed, temperature=asking.temperature, allocated=desk.rollouts)
        if isinstance(wave, Stop):
            return [replace(one, facts={**one.facts, "stopped": wave.reason}) for one in made]
        wave_starts = [replace(start, at=at) for at in range(len(made), len(made) + len(wave.temperatures))]
        asked = yield from ask(wave_starts, asking, _request_of(asking, wave.temperatures, len(made)))
        made += yield from judge(asked)


def _request_of(asking: Asking, temperatures: Sequence[float | None], first: int) -> Callable[[Candidate], Request]:
    """What asks for a rollout of a wave, whose first one has this number."""
    return lambda one: asking.request(one.asked, rollout=one.at, temperature=temperatures[one.at - first])


def allocation(settings: Rollouts, pilots: Sequence[tuple[int, int]], seed: int) -> list[int]:
    """Of each pilot's trials and right ones, the rollouts that its item gets in all."""
    return [int(count) for count in allocate(settings, pilots, seed).rollouts]


def check_heat(settings: Rollouts, asking: Asking) -> None:
    """Raises ValueError where tempering has nothing to heat."""
    tempering = settings.tempering
    if tempering is not None and tempering.reference is None and not asking.temperature:
        raise ValueError("rollouts.tempering: answering.temperature is 0, which nothing heats; give its reference")


def _rollout(one: Candidate, asking: Asking) -> Rollout:
    says = Says.RIGHT if one.open else Says.WRONG if one.reason in WRONG else None
    return Rollout(
        outcome=says, truncated=one.parsed is not None and one.parsed.finish in TRUNCATED,
        temperature=one.reply.temperature if one.reply else asking.temperature,
        tokens=one.reply.completion_tokens if one.reply else 0,
    )  # fmt: skip
