"""Drives a flow by hand: a function answers its requests, another its checks, in this process and without a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from synth.flows import Desk, Flow, Task
from synth.items import Item, Outcome, Sample
from synth.replies import Failure, Reply
from synth.requests import Identity, Request, digest
from synth.verdicts import Check, Verdict
from synth.verdicts import Outcome as Says

MOST_EFFECTS = 10_000
IDENTITY = Identity(model="by hand")
RIGHT, WRONG = Verdict(outcome=Says.RIGHT), Verdict(outcome=Says.WRONG)
Said = str | Reply | Failure
Answer = Callable[[Request], Said]
Judge = Callable[[Check], Verdict]


@dataclass
class Run:
    """What a flow asked for, in order, and the samples that it gave."""

    requests: list[Request] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    effects: int = 0
    samples: list[Sample] = field(default_factory=list)

    @property
    def keys(self) -> list[str]:
        return [request.key(IDENTITY) for request in self.requests]

    def accepted(self) -> list[Sample]:
        return [sample for sample in self.samples if sample.outcome is Outcome.ACCEPTED]

    def reasons(self) -> list[str]:
        return [sample.reason for sample in self.samples]


def text_of(request: Request) -> str:
    """All that a request says."""
    if request.prompt is not None:
        return request.prompt
    return "\n".join(str(message["content"]) for message in request.messages)


def equals_gold(check: Check) -> Verdict:
    """The last word of the answer is the gold one."""
    words = check.answer.split()
    return RIGHT if words and words[-1] == str(check.gold) else WRONG


def reply(request: Request, text: str, finish_reason: str = "stop", **more: Any) -> Reply:
    """As a backend gives it, a token a word."""
    return Reply(
        key=request.key(IDENTITY), text=text, finish_reason=finish_reason, completion_tokens=len(text.split()),
        temperature=request.drawn_temperature, **more,
    )  # fmt: skip


def failure(request: Request, stage: str = "send") -> Failure:
    return Failure(key=request.key(IDENTITY), stage=stage, error="Refused: by hand")


def drive(task: Task, item: Item, answer: Answer, judge: Judge = equals_gold, desk: Desk | None = None) -> Run:
    """Run one flow to its end. Fails where it does not end, or where an effect is empty or mixed."""
    run = Run()
    flow: Flow = task.flow(item, desk or Desk())
    stored: dict[str, Said] = {}
    answers: Sequence[Any] | None = None
    while True:
        try:
            effect = next(flow) if answers is None else flow.send(answers)
        except StopIteration as stop:
            run.samples = stop.value
            return run
        run.effects += 1
        assert run.effects <= MOST_EFFECTS, "the flow does not end"
        assert effect, "an effect asks for nothing"
        assert len({type(one) for one in effect}) == 1
        if isinstance(effect[0], Check):
            run.checks += effect  # type: ignore[arg-type]
            answers = [judge(check) for check in effect]  # type: ignore[arg-type]
            continue
        run.requests += effect  # type: ignore[arg-type]
        answers = [_answered(request, answer, stored) for request in effect]  # type: ignore[arg-type]


def _answered(request: Request, answer: Answer, stored: dict[str, Said]) -> Reply | Failure:
    """From what is stored, as a run does: the same request is never answered twice."""
    key = request.key(IDENTITY)
    if key not in stored:
        stored[key] = answer(request)
    said = stored[key]
    return reply(request, said) if isinstance(said, str) else said


def lost(run: Run, asked: Sequence[Request]) -> set[str]:
    """Keys among `asked` of which no sample tells."""
    told = {key for sample in run.samples for key in sample.keys}
    return {request.key(IDENTITY) for request in asked} - told


def same(first: Run, second: Run) -> bool:
    """Whether two runs asked and concluded the same."""
    return first.keys == second.keys and _plain(first.samples) == _plain(second.samples)


def _plain(samples: Sequence[Sample]) -> list[Mapping[str, Any]]:
    return [dict(vars(sample)) for sample in samples]


def hostile(request: Request) -> Said:
    """Each request gets another of the worst replies, by its key."""
    worst: list[Said] = [
        "", "   \n", "<task>", "</task><task></task>", "<task>" * 500, "<output></output><input>", "{\"a\": [1,",
        "x" * 100_000, "word " * 20_000, "<think>never ends", "</think>", "sorry", "\ud800 lone", "\x00",
        '{"grade": NaN}', '{"grade": 1e999}', "yes no", "yes", "no", "same", "different",
        "<task>Go on with one thing and another</task>",
        "<translation></translation>", '{"grade": 5}', "<input>same</input><output>same</output>",
        reply(request, "cut", "length"), reply(request, "", "length", reasoning="thinking"),
        reply(request, "", "tool_calls", tool_calls="[{"), reply(request, "no", "content_filter"),
        reply(request, "?", "a reason of tomorrow"), failure(request), failure(request, "read"),
    ]  # fmt: skip
    return worst[int(digest([request.key(IDENTITY)])[:8], 16) % len(worst)]


def unsure(check: Check) -> Verdict:
    """A verdict of any kind, by the check."""
    outcomes = list(Says)
    return Verdict(outcome=outcomes[int(digest([check.kind, check.answer])[:4], 16) % len(outcomes)])


def salted(salt: int) -> Any:
    """Hostile replies, others for each salt."""

    def answer(request: Request) -> Said:
        said = hostile(replace(request, rollout=request.rollout + 1000 * salt))
        return said if isinstance(said, str) else replace(said, key=request.key(IDENTITY))

    return answer
