"""Answers scored by criteria of their own question, some written beforehand and some found as the answers differ.

Source: DR Tulu, Shao et al. 2025 (arXiv:2511.19399): persistent and evolving rubrics, one criterion at a time, those
without variance put away. Differs from it: what a judge did not score is left out, and an answer with too little
scored has no score; the best and the worst answers are made into pairs with their margin.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item, Sample, SampleKind
from synth.judges.judging import Judge
from synth.judges.rubric_buffer import MAX_CRITERION_CHARS, Buffer, propose, retain
from synth.judges.rubrics import Criterion, score, value_of
from synth.replies import Failure, Reply
from synth.tasks.asking import Asking, given
from synth.tasks.candidates import Candidate, Stage, ask
from synth.tasks.critique_revision import same
from synth.tasks.scoring import starts

Made = TypeVar("Made")
Scores = dict[str, list[int | None]]
"""Of each criterion's id, one an answer."""

MOST_CRITERIA = 50
"""Of one row."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Rubric:
    """Answer each row's prompt `replies` times, score the answers by criteria, and pair the best with the worst.

    A row's options.rubrics are its persistent criteria: a list of texts, or of {text, weight}, a weight below 0 being
        for what an answer should not do.
    evolve: rounds in which the judge proposes up to max_new criteria more, on which the answers differ; 0 for none.
        max_active: of those, the ones of the widest spread stay; those without any spread are put away.
    min_scored: share of the criteria that must be scored for an answer to have a score.
    pairs: of a row at most; the best with the worst, then the next two. min_margin: between the scores of a pair,
        which are at most 1.
    prompt: the template that the row is asked with. criterion_prompt, propose_prompt: templates of the judge.
    answering, judge: how each is asked.
    """

    name: ClassVar[str] = "rubric"
    version: ClassVar[int] = 1

    replies: int = Field(default=4, ge=2, le=64)
    evolve: int = Field(default=1, ge=0, le=10)
    max_new: int = Field(default=5, ge=1, le=20)
    max_active: int = Field(default=5, ge=1, le=20)
    min_scored: float = Field(default=1.0, gt=0, le=1)
    pairs: int = Field(default=1, ge=1, le=32)
    min_margin: float = Field(default=0.25, gt=0, le=2)
    prompt: Annotated[str, given()] = "question"
    criterion_prompt: Annotated[str, given("question", "answer", "criterion", "fence")] = "judge_criterion"
    propose_prompt: Annotated[str, given("question", "answers", "criteria", "count", "fence")] = "judge_rubrics"
    answering: Asking = Field(default_factory=Asking)
    judge: Judge = Field(default_factory=Judge)

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        persistent = criteria_of(item)
        if persistent is None or not (persistent or self.evolve):
            reason = "item.bad_rubrics" if persistent is None else "item.no_rubrics"
            return [Candidate().rejected(reason).sample(item, 0)]
        made: list[Candidate] = starts(item, self.prompt, max(2, desk.rollouts or self.replies))
        made = yield from ask(made, self.answering, lambda one: self.answering.request(one.asked, rollout=one.at))
        if sum(one.open for one in made) >= 2:
            made = yield from self._scored(item, made, Buffer(persistent=persistent))
        else:
            made = [one.rejected("choice.no_other") for one in made]
        return self._samples(item, made)

    def _scored(self, item: Item, made: Sequence[Candidate], buffer: Buffer) -> Stage:
        answers = list(dict.fromkeys(one.answer for one in made if one.open))
        keys: dict[str, list[str]] = {answer: [] for answer in answers}
        shared: list[str] = []
        scores: Scores = {}
        yield from self._add_scores(item, answers, buffer.used, scores, keys)
        for _ in range(self.evolve):
            proposing = propose(
                self.judge, item.prompt, answers, buffer, template=self.propose_prompt, max_new=self.max_new
            )  # fmt: skip
            buffer = yield from _noting(proposing, shared)
            yield from self._add_scores(item, answers, buffer.used, scores, keys)
            buffer = retain(buffer, scores, max_active=self.max_active, max_new=self.max_new)
        facts = {"rubrics": _told(buffer), "criteria_put_away": str(len(buffer.inactive))}
        told: list[Candidate] = []
        for one in made:
            if one.open:
                at = answers.index(one.answer)
                one = replace(one, keys=(*one.keys, *keys[one.answer], *shared), facts={**one.facts, **facts})
                value = value_of([scores[by.id][at] for by in buffer.used], buffer.used, min_scored=self.min_scored)
                if not buffer.used:
                    one = one.rejected("rubric.none_telling")
                one = one.failed("judge.unscored") if value is None else one.told(score=value)
            told.append(one)
        return told

    def _add_scores(
        self, item: Item, answers: Sequence[str], used: Sequence[Criterion], scores: Scores, keys: dict[str, list[str]]
    ) -> Generator[Any, Any, None]:
        """By the criteria that have none yet."""
        fresh = [one for one in used if one.id not in scores]
        if not fresh:
            return
        told = yield from score(self.judge, item.prompt, answers, fresh, template=self.criterion_prompt)
        for answer, row in zip(answers, told, strict=True):
            keys[answer] += row.keys
        scores.update({one.id: [row.scores[at] for row in told] for at, one in enumerate(fresh)})

    def _samples(self, item: Item, made: Sequence[Candidate]) -> list[Sample]:
        ranked = sorted((one for one in made if one.open), key=lambda one: (-one.figures["score"], one.at))
        pairs: list[tuple[Candidate, Candidate]] = []
        for best, worst in zip(ranked[: len(ranked) // 2], reversed(ranked), strict=False):
            far = best.figures["score"] - worst.figures["score"] >= self.min_margin
            if far and len(pairs) < self.pairs and not same(best.answer, worst.answer):
                pairs.append((best, worst))
        paired = {one.at for pair in pairs for one in pair}
        reason = "choice.not_paired" if pairs else "choice.small_margin"
        left = [one.rejected(reason).sample(item, len(pairs)) for one in made if one.at not in paired]
        samples = [_pair(item, number, pair) for number, pair in enumerate(pairs)]
        return samples + [replace(one, number=len(pairs) + at) for at, one in enumerate(left)]


def criteria_of(item: Item) -> tuple[Criterion, ...] | None:
    """A row's persistent criteria, None where they cannot be read."""
    told = item.options.get("rubrics", ())
    if not isinstance(told, list | tuple) or len(told) > MOST_CRITERIA:
        return None
    made: dict[str, Criterion] = {}
    for one in told:
        text, weight = (one.get("text"), one.get("weight", 1)) if isinstance(one, dict) else (one, 1)
        sound = isinstance(text, str) and 0 < len(text.strip()) <= MAX_CRITERION_CHARS
        if not sound or isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < abs(weight) <= 100:
            return None
        criterion = Criterion(text=str(text).strip(), weight=float(weight))
        made[criterion.id] = criterion
    return tuple(made.values())


def _noting(flow: Generator[Any, Any, Made], keys: list[str]) -> Generator[Any, Any, Made]:
    """A sub-flow, with the keys of its replies noted: what it returns does not tell them."""
    answers: Any = None
    while True:
        try:
            effect = flow.send(answers)
        except StopIteration as stop:
            made: Made = stop.value
            return made
        answers = yield effect
        keys += [answer.key for answer in answers if isinstance(answer, Reply | Failure)]


def _told(buffer: Buffer) -> str:
    """The criteria that scores are of, as JSON."""
    return json.dumps(
        [{"text": one.text, "weight": one.weight, "persistent": one in buffer.persistent} for one in buffer.used],
        ensure_ascii=False,
    )


def _pair(item: Item, number: int, pair: tuple[Candidate, Candidate]) -> Sample:
    best, worst = pair
    better, worse = best.figures["score"], worst.figures["score"]
    sample = best.sample(item, number, SampleKind.PAIR)
    return replace(
        sample, keys=tuple(dict.fromkeys((*best.keys, *worst.keys))), messages=best.messages, chosen=best.turn(),
        rejected=worst.turn(), figures={"margin": better - worse, "score": better, "score_rejected": worse},
        tokens=sample.tokens + (worst.reply.completion_tokens if worst.reply else 0),
    )  # fmt: skip
