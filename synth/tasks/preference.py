"""Pairs of a better and a worse answer to the same prompt, by one teacher: on-policy where that is the model to train.

Source: Tuelu 3 (arXiv:2411.15124): chosen is the best of several answers, rejected a random lower one, a tie is no
pair. The margin travels with each pair, so that a selection can ask for more of it. Answers in no pair are kept, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item, Outcome, Sample, SampleKind
from synth.tasks.asking import Asking, given
from synth.tasks.candidates import Candidate
from synth.tasks.grading import Grading
from synth.tasks.scoring import scored, starts

Pair = tuple[Candidate, Candidate]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Preference:
    """Answer each row's prompt `replies` times, score the answers, and pair better ones with worse ones.

    score_by: verifier, the row's own (right against wrong, or its degrees); grader, by `grading`.
    min_margin: of the scores of a pair. pairs: of a row at most, each answer in one of them.
    against: which lower one is rejected: a random one, the lowest, or the nearest that is min_margin below.
    prompt: the template that the row is asked with. answering: how. grading: how answers are graded.
    """

    name: ClassVar[str] = "preference"
    version: ClassVar[int] = 1

    replies: int = Field(default=8, ge=2, le=1024)
    score_by: Literal["verifier", "grader"] = "verifier"
    min_margin: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    pairs: int = Field(default=1, ge=1)
    against: Literal["random", "lowest", "nearest"] = "random"
    prompt: Annotated[str, given()] = "question"
    answering: Asking = Field(default_factory=Asking)
    grading: Grading = Field(default_factory=Grading)

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        grading = self.grading if self.score_by == "grader" else None
        made = starts(item, self.prompt, desk.rollouts or self.replies)
        made = yield from scored(item, made, self.answering, grading)
        if grading is not None:
            made = [_wrong_ones_lose(one, grading) for one in made]
        pairs = self._pairs([one for one in made if one.open], desk.seed)
        paired = {one.at for pair in pairs for one in pair}
        scores = [one.figures["score"] for one in made if one.open]
        left = [self._unpaired(one, scores) for one in made if one.at not in paired]
        samples = [_sample(item, number, pair) for number, pair in enumerate(pairs)]
        return samples + [one.sample(item, len(pairs) + at) for at, one in enumerate(left)]

    def _pairs(self, made: Sequence[Candidate], seed: int) -> list[Pair]:
        """The best with a lower one, then the best of those left, and so on. Of equal scores the earlier goes first."""
        rng = np.random.default_rng([seed, len(made)])
        left = sorted(made, key=lambda one: (-one.figures["score"], one.at))
        pairs: list[Pair] = []
        while len(pairs) < self.pairs and left:
            best = left[0]
            lower = [one for one in left if self._far_enough(best, one)]
            if not lower:
                break
            at = {"random": int(rng.integers(len(lower))), "lowest": -1, "nearest": 0}[self.against]
            pairs.append((best, lower[at]))
            left = [one for one in left if one.at not in (best.at, lower[at].at)]
        return pairs

    def _far_enough(self, best: Candidate, other: Candidate) -> bool:
        return best.figures["score"] - other.figures["score"] >= self.min_margin and not _equal(best, other)

    def _unpaired(self, one: Candidate, scores: Sequence[float]) -> Candidate:
        """Why an answer that was scored is in no pair."""
        if not one.open:
            return one
        far = [score for score in scores if abs(score - one.figures["score"]) >= self.min_margin]
        if far:
            return one.rejected("choice.not_paired")
        return one.rejected("choice.tie" if len(set(scores)) == 1 else "choice.small_margin")


def _equal(first: Candidate, second: Candidate) -> bool:
    """Whether two answers are the same but for white space: a pair of them would teach nothing but noise."""
    return first.answer.split() == second.answer.split()


def _wrong_ones_lose(one: Candidate, grading: Grading) -> Candidate:
    """An answer that the verifier found wrong is worth the lowest grade, ungraded: it may stand on a pair's side."""
    if one.reason != "verify.wrong":
        return one
    return replace(one.told(score=grading.low), outcome=Outcome.ACCEPTED, reason="")


def _sample(item: Item, number: int, pair: Pair) -> Sample:
    chosen, rejected = pair
    better, worse = chosen.figures["score"], rejected.figures["score"]
    figures = {"margin": better - worse, "score": better, "score_rejected": worse}
    sample = replace(chosen, keys=(*rejected.keys, *chosen.keys), figures=figures).sample(item, number, SampleKind.PAIR)
    tokens = sample.tokens + (rejected.reply.completion_tokens if rejected.reply else 0)
    return replace(
        sample, messages=chosen.messages, chosen=chosen.turn(), rejected=rejected.turn(), tokens=tokens,
        facts={**sample.facts, "finish_rejected": rejected.facts["finish"]},
    )  # fmt: skip
