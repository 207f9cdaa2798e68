"""Labels for each step of a solution, by how often completions from that step on come to the right answer.

Source: Math-Shepherd, Wang et al. 2023 (arXiv:2312.08935): N completions a step (8 there); the hard label is 1 where
any is right, the soft one is the share that is. Differs from it: a completion that did not end, or that could not be
verified, is no wrong one: it is left out of the share, and a step with none left is no step with a 0; the last step
is labelled by the solution's own verdict, which needs no completion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item, Outcome, Sample, SampleKind
from synth.replies import Finish, Parsed
from synth.requests import Request
from synth.tasks.asking import Asking, given
from synth.tasks.candidates import Candidate, Stage, ask, check_of, verify
from synth.tasks.scoring import starts
from synth.verdicts import Outcome as Says

BREAKS: Final = {"paragraphs": re.compile(r"\n[ \t]*\n\s*"), "lines": re.compile(r"\n\s*")}


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class ProcessLabels:
    """Label the steps of each row's text, a solution; of rows without text, of solutions that the teacher writes.

    solutions: written for a row without text. completions: from each step on. max_steps: of a solution; what has more
        is rejected. steps: paragraphs or lines end a step.
    min_judged: completions of a step that must end and be verified, lest the step has no label.
    prompt: the template that the question is asked with. solving, completing: how each is asked; completing goes on
        in the assistant's turn, which a teacher that must reason in tags first does not do well.
    """

    name: ClassVar[str] = "process_labels"
    version: ClassVar[int] = 1

    solutions: int = Field(default=4, ge=1, le=1024)
    completions: int = Field(default=8, ge=1, le=1024)
    max_steps: int = Field(default=32, ge=1, le=1000)
    steps: Literal["paragraphs", "lines"] = "paragraphs"
    min_judged: int = Field(default=1, ge=1)
    prompt: Annotated[str, given()] = "process_solution"
    solving: Asking = Field(default_factory=Asking)
    completing: Asking = Field(default_factory=lambda: Asking(temperature=0.7))

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        if not item.verifier:
            return [Candidate().rejected("item.no_verifier").sample(item, 0, SampleKind.STEPS)]
        solutions = yield from self._solutions(item, desk)
        solutions = yield from verify(solutions, lambda one: check_of(item, one.answer))
        # A wrong solution is as good as a right one here: it has the steps that lead astray.
        solutions = [_reopened(one) for one in solutions]
        samples: list[Sample] = []
        for one in solutions:
            samples.append((yield from self._labelled(item, one)))
        return samples

    def _solutions(self, item: Item, desk: Desk) -> Stage:
        if item.text.strip():
            parsed = Parsed(reasoning=None, answer=item.text.strip(), finish=Finish.STOP)
            return [replace(one, parsed=parsed) for one in starts(item, self.prompt, 1)]
        asked = starts(item, self.prompt, desk.rollouts or self.solutions)
        return (yield from ask(asked, self.solving, lambda one: self.solving.request(one.asked, rollout=one.at)))

    def _labelled(self, item: Item, solution: Candidate) -> Generator[Any, Any, Sample]:
        steps = split(solution.answer, self.steps) if solution.open else []
        if len(steps) > self.max_steps:
            solution = solution.rejected("steps.too_many")
        if not solution.open:
            return solution.sample(item, solution.at, SampleKind.STEPS)
        prefixes = ["".join(steps[: end + 1]) for end in range(len(steps) - 1)]
        asked = [
            Candidate(at=rollout, text=prefix, asked=solution.asked)
            for prefix in prefixes
            for rollout in range(self.completions)
        ]
        # Completions of two solutions that begin alike are the same requests, answered once.
        done = yield from ask(asked, self.completing, self._completion)
        done = yield from verify(done, lambda one: check_of(item, one.text + one.answer))
        groups = [done[at * self.completions :][: self.completions] for at in range(len(prefixes))]
        keys = tuple(key for one in done for key in one.keys)
        labels = [*map(self._label, groups), _own(solution)]
        return _sample(item, replace(solution, keys=(*keys, *solution.keys)), steps, labels)

    def _completion(self, one: Candidate) -> Request:
        turn = {"role": "assistant", "content": one.text}
        return self.completing.request((*one.asked, turn), rollout=one.at, continues=True)

    def _label(self, completions: Sequence[Candidate]) -> float | None:
        """The share of right ones of those that ended and were verified, None where these are too few."""
        says = [one.verdict.outcome for one in completions if one.verdict]
        judged = [said for said in says if said in (Says.RIGHT, Says.WRONG)]
        return judged.count(Says.RIGHT) / len(judged) if len(judged) >= self.min_judged else None


def split(solution: str, at: Literal["paragraphs", "lines"]) -> list[str]:
    """Its steps, each with the white space behind it: joined, they are the solution again."""
    ends = [found.end() for found in BREAKS[at].finditer(solution) if 0 < found.end() < len(solution)]
    bounds = [0, *ends, len(solution)]
    return [solution[start:end] for start, end in pairwise(bounds) if end > start]


def _reopened(one: Candidate) -> Candidate:
    return replace(one, outcome=Outcome.ACCEPTED, reason="") if one.reason == "verify.wrong" else one


def _own(solution: Candidate) -> float | None:
    return float(solution.verdict.outcome is Says.RIGHT) if solution.verdict else None


def _sample(item: Item, solution: Candidate, steps: Sequence[str], labels: Sequence[float | None]) -> Sample:
    """facts.steps: a JSON list of {text, soft, hard}; figures: the mean of the soft labels, and steps in all."""
    known = [label for label in labels if label is not None]
    if len(known) < len(labels):
        solution = solution.failed("label.unscored")
    told = [
        {"text": step, "soft": soft, "hard": None if soft is None else int(soft > 0)}
        for step, soft in zip(steps, labels, strict=True)
    ]
    facts = {**solution.facts, "steps": json.dumps(told, ensure_ascii=False)}
    solution = replace(solution, facts=facts).told(steps=len(steps))
    if known:
        solution = solution.told(score=sum(known) / len(known))
    return solution.sample(item, solution.at, SampleKind.STEPS)
