"""Answers are ranked by criteria that tell them apart; what a judge did not score counts for nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from synth.flows import Desk
from synth.items import Item, Outcome, SampleKind
from synth.judges.rubric_buffer import Buffer
from synth.requests import Request
from synth.tasks.rubric import Rubric, criteria_of
from tests.synth.tasks.flow_driver import Run, Said, drive, failure, lost, text_of

RUBRICS = ["Names a cause.", {"text": "Gives an example.", "weight": 2}, {"text": "Rambles.", "weight": -1}]
ASKED = Item(id="q", prompt="Why do leaves fall?", options={"rubrics": RUBRICS})
SCORE, PROPOSE = "Score how far the answer meets this one criterion", "Write up to"


class Judged:
    """Rollout n says answers[n]; a criterion scores an answer as `scores` tells; proposals come from a list."""

    def __init__(self, answers: Any, scores: dict[tuple[str, str], Any], proposals: Any = ()) -> None:
        self.answers, self.scores, self.proposals = answers, scores, list(proposals)

    def __call__(self, request: Request) -> Said:
        text = text_of(request)
        if SCORE in text:
            answer = text.split("<answer-")[1].split("\n")[1]
            criterion = text.split("\n")[2]
            value = self.scores.get((criterion, answer), 1)
            return f'So. {{"score": {value}}}' if isinstance(value, int) else str(value)
        if text.startswith("A question and several answers"):
            return self.proposals.pop(0) if self.proposals else '{"criteria": []}'
        return self.answers[request.rollout]  # type: ignore[no-any-return]


def scored(said: Any, item: Item = ASKED, **more: Any) -> Run:
    answers = getattr(said, "answers", ["a", "b"])
    return drive(Rubric(**{"replies": len(answers), "evolve": 0, **more}), item, said, desk=Desk(seed=1))


def row(answer: str, cause: Any, example: Any, rambles: Any) -> dict[tuple[str, str], Any]:
    values = zip(("Names a cause.", "Gives an example.", "Rambles."), (cause, example, rambles), strict=True)
    return {(criterion, answer): value for criterion, value in values}


SCORES = {**row("good", 2, 2, 0), **row("fair", 2, 1, 0), **row("poor", 0, 0, 2)}


def test_the_best_and_the_worst_make_a_pair_with_their_margin() -> None:
    run = scored(Judged(["fair", "good", "poor"], SCORES))
    (pair,) = run.accepted()
    assert pair.kind is SampleKind.PAIR
    assert pair.chosen == {"role": "assistant", "content": "good"}
    assert pair.rejected == {"role": "assistant", "content": "poor"}
    assert pair.figures == {"margin": pytest.approx(1 + 1 / 3), "score": 1, "score_rejected": pytest.approx(-1 / 3)}
    assert run.reasons() == ["", "choice.not_paired"]
    assert run.samples[1].figures["score"] == pytest.approx(2 / 3)
    assert len(run.requests) == 3 + 3 * 3
    assert not lost(run, run.requests)


@pytest.mark.parametrize(("margin", "kept"), [(1.33, 1), (1.34, 0)])
def test_the_margin_has_two_sides(margin: float, kept: int) -> None:
    run = scored(Judged(["good", "poor"], SCORES), min_margin=margin)
    assert len(run.accepted()) == kept
    if not kept:
        assert run.reasons() == ["choice.small_margin"] * 2


def test_several_pairs_share_no_answer() -> None:
    scores = {**SCORES, **row("worse", 0, 0, 1)}
    run = scored(Judged(["good", "poor", "fair", "worse"], scores), pairs=2)
    told = [(one.chosen["content"], one.rejected["content"]) for one in run.accepted()]  # type: ignore[index]
    assert told == [("good", "poor"), ("fair", "worse")]


def test_equal_answers_are_scored_once_and_make_no_pair() -> None:
    run = scored(Judged(["good", "good"], SCORES))
    assert run.reasons() == ["choice.small_margin"] * 2
    assert len(run.requests) == 2 + 3
    assert not lost(run, run.requests)


def test_what_was_not_scored_is_no_zero() -> None:
    scores = {**SCORES, ("Names a cause.", "good"): "no idea"}
    run = scored(Judged(["good", "fair", "poor"], scores))
    assert [one.outcome for one in run.samples] == [Outcome.ACCEPTED, Outcome.FAILED]
    assert run.reasons() == ["", "judge.unscored"]
    run = scored(Judged(["good", "fair", "poor"], scores), min_scored=0.6)
    assert run.accepted()[0].chosen == {"role": "assistant", "content": "good"}
    assert not lost(run, run.requests)


def proposal(*texts: str) -> str:
    return json.dumps({"criteria": [{"text": text, "weight": 1} for text in texts]})


def test_a_criterion_that_tells_nothing_apart_is_put_away_and_a_persistent_one_never() -> None:
    scores = {**row("good", 1, 1, 1), **row("poor", 1, 1, 1), ("Names chlorophyll.", "good"): 2}
    said = Judged(["good", "poor"], scores, [proposal("Names chlorophyll.", "Is in English.")])
    run = scored(said, evolve=1, min_margin=0.1)
    (pair,) = run.accepted()
    used = json.loads(pair.facts["rubrics"])
    assert [one["text"] for one in used] == ["Names a cause.", "Gives an example.", "Rambles.", "Names chlorophyll."]
    assert [one["persistent"] for one in used] == [True, True, True, False]
    assert pair.facts["criteria_put_away"] == "1"
    assert not lost(run, run.requests)


def test_a_second_round_sees_the_criteria_so_far_and_scores_the_new_ones_alone() -> None:
    scores = {("One.", "good"): 2, ("Two.", "good"): 2}
    said = Judged(["good", "poor"], scores, [proposal("One."), proposal("One.", "Two.")])
    run = scored(said, item=Item(id="q", prompt="Why?"), evolve=2)
    proposals = [text_of(one) for one in run.requests if text_of(one).startswith("A question and several")]
    assert "One. (weight +1)" in proposals[1]
    assert "One." not in proposals[0]
    assert len(run.requests) == 2 + 2 + 2 * 2
    assert len(run.accepted()) == 1


def test_active_criteria_are_capped_by_their_spread() -> None:
    names = [f"Criterion {at}." for at in range(6)]
    scores: dict[tuple[str, str], Any] = {(name, "good"): 2 for name in names}
    scores |= {("Criterion 3.", "poor"): 0}
    said = Judged(["good", "poor"], scores, [proposal(*names[:5])])
    run = scored(said, item=Item(id="q", prompt="Why?"), evolve=1, max_active=2)
    assert [one["text"] for one in json.loads(run.accepted()[0].facts["rubrics"])] == ["Criterion 0.", "Criterion 3."]


@pytest.mark.parametrize(
    ("proposals", "reason"), [([], "rubric.none_telling"), (["?"], "rubric.none_telling"), ([proposal("Same.")], "")]
)
def test_a_row_without_criteria_needs_some_that_tell(proposals: Any, reason: str) -> None:
    said = Judged(["good", "poor"], {("Same.", "good"): 2}, proposals)
    run = scored(said, item=Item(id="q", prompt="Why?"), evolve=1)
    assert run.reasons()[0] == reason
    assert not lost(run, run.requests)


def test_one_answer_alone_is_not_scored() -> None:
    run = scored(lambda one: failure(one) if one.rollout else "good")
    assert run.reasons() == ["choice.no_other", "teacher.send"]
    assert len(run.requests) == 2


@pytest.mark.parametrize(
    ("rubrics", "reason"),
    [
        ("Names a cause.", "item.bad_rubrics"),
        ([1], "item.bad_rubrics"),
        ([""], "item.bad_rubrics"),
        ([{"text": "a", "weight": 0}], "item.bad_rubrics"),
        ([{"text": "a", "weight": "1"}], "item.bad_rubrics"),
        ([{"text": "a", "weight": float("nan")}], "item.bad_rubrics"),
        (["x"] * 51, "item.bad_rubrics"),
        ([], "item.no_rubrics"),
    ],
)
def test_criteria_that_cannot_be_read_fail_their_row(rubrics: Any, reason: str) -> None:
    run = scored(lambda _: "a", item=Item(id="q", prompt="Why?", options={"rubrics": rubrics}))
    assert (run.reasons(), run.requests) == ([reason], [])


def test_criteria_keep_their_weights_and_stand_once() -> None:
    item = Item(id="q", options={"rubrics": ["A thing.", {"text": "a  THING.", "weight": -2}]})
    found = criteria_of(item)
    assert found is not None
    assert [one.weight for one in found] == [-2]
    assert Buffer(persistent=found).used == found
