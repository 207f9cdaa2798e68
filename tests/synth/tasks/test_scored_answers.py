"""Best of N, preference pairs, choices among right traces and labels of steps conclude as their sources say."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from synth.flows import Desk
from synth.items import Item, Outcome, SampleKind
from synth.replies import Finish, Parsed, Reply
from synth.requests import Request
from synth.tasks.best_of import BestOf
from synth.tasks.candidates import Candidate
from synth.tasks.choice import Choice, chosen, pass_rate
from synth.tasks.grading import Grading
from synth.tasks.preference import Preference
from synth.tasks.process_labels import ProcessLabels, split
from synth.verdicts import Check, Verdict
from synth.verdicts import Outcome as Says
from tests.synth.tasks.flow_driver import RIGHT, WRONG, Run, Said, drive, equals_gold, failure, lost, reply, text_of

ASKED = Item(id="q", prompt="What is two and two?", gold="4", verifier="exact", options={"case": "any"})
PLAIN = Item(id="p", prompt="Say something kind.")


def graded(texts: Sequence[Said], grades: dict[str, str]) -> Any:
    """Rollout n says texts[n]; a grader gives a text its grade."""

    def said(request: Request) -> Said:
        text = text_of(request)
        if "Grade from 1 to 10" not in text:
            told = texts[request.rollout]
            return told if isinstance(told, str) else reply(request, told.text, told.finish_reason)  # type: ignore[union-attr]
        answer = re.findall(r"<answer-\w+>\n(.*)\n</answer", text, re.S)[0]
        return f'Well. {{"grade": {grades[answer]}}}'

    return said


CUT = Reply(key="", text="cut off", finish_reason="length")


def best(texts: Sequence[Said], grades: dict[str, str], item: Item = PLAIN, **more: Any) -> Run:
    return drive(BestOf(replies=len(texts), **more), item, graded(texts, grades))


def test_the_best_graded_answer_is_kept_and_the_others_with_their_scores() -> None:
    run = best(["a", "b", CUT, "c"], {"a": "3", "b": "9", "c": "7.5"})
    assert run.reasons() == ["choice.not_best", "", "finish.truncated_in_answer", "choice.not_best"]
    assert [sample.figures.get("score") for sample in run.samples] == [3, 9, None, 7.5]
    assert run.accepted()[0].figures["margin"] == 1.5
    assert run.accepted()[0].messages == (
        {"role": "user", "content": PLAIN.prompt},
        {"role": "assistant", "content": "b"},
    )


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({}, ""),
        ({"min_margin": 2.0}, ""),
        ({"min_margin": 2.1}, "choice.small_margin"),
        ({"min_score": 8.0}, ""),
        ({"min_score": 8.1}, "choice.low_score"),
    ],
)
def test_bounds_on_the_best_have_two_sides(more: dict[str, float], reason: str) -> None:
    assert best(["a", "b"], {"a": "8", "b": "6"}, **more).reasons() == [reason, "choice.not_best"]


def test_of_equal_scores_the_first_is_best_and_the_same_text_is_no_rival() -> None:
    run = best(["a", "a", "b"], {"a": "8", "b": "6"}, min_margin=2.0)
    assert run.reasons() == ["", "choice.not_best", "choice.not_best"]


def test_a_grade_that_cannot_be_read_is_a_failure_and_never_the_lowest() -> None:
    run = best(["a", "b"], {"a": "great", "b": "1"})
    assert [sample.outcome for sample in run.samples] == [Outcome.FAILED, Outcome.ACCEPTED]
    assert run.reasons() == ["judge.unscored", ""]


def test_wrong_answers_of_a_row_with_a_verifier_are_not_graded() -> None:
    run = best(["it is 5", "it is 4"], {"it is 4": "2"}, item=ASKED)
    assert run.reasons() == ["verify.wrong", ""]
    assert [check.options for check in run.checks] == [{"case": "any"}] * 2


def test_a_verifiers_degrees_are_scores() -> None:
    def degrees(check: Check) -> Verdict:
        return Verdict(outcome=Says.WRONG, score=len(check.answer) / 10)

    run = drive(BestOf(replies=2, score_by="verifier"), ASKED, lambda request: "x" * (1 + request.rollout), degrees)
    assert run.reasons() == ["choice.not_best", ""]
    assert run.accepted()[0].figures["margin"] == pytest.approx(0.1)
    assert drive(BestOf(score_by="verifier"), PLAIN, lambda _: "x").reasons() == ["item.no_verifier"]


def test_a_bound_that_nothing_reaches_is_refused() -> None:
    with pytest.raises(ValidationError, match="min_score"):
        BestOf(min_score=11)
    with pytest.raises(ValidationError, match="low, high"):
        Grading(low=2, high=2)


def pairs(texts: Sequence[Said], **more: Any) -> Run:
    return drive(Preference(replies=len(texts), **more), ASKED, lambda request: texts[request.rollout])


def test_a_right_answer_is_paired_with_a_wrong_one() -> None:
    run = pairs(["No, 5", "So, 4", "But 6", "<think>two, two</think>yes 4"])
    (pair,) = run.accepted()
    assert pair.kind is SampleKind.PAIR
    assert pair.chosen == {"role": "assistant", "content": "So, 4"}
    assert pair.rejected is not None
    assert pair.rejected["content"] in ("No, 5", "But 6")
    assert pair.messages == ({"role": "user", "content": ASKED.prompt},)
    assert pair.figures["margin"] == 1
    assert len(pair.keys) == 2
    assert sorted(run.reasons()) == ["", "choice.not_paired", "choice.not_paired"]
    assert not lost(run, run.requests)


def test_several_pairs_share_no_answer_and_keep_their_reasoning() -> None:
    run = pairs(["5", "<think>a</think>4", "6", "4"], pairs=9)
    assert len(run.accepted()) == 2
    keys = [key for sample in run.accepted() for key in sample.keys]
    assert len(set(keys)) == 4
    assert run.accepted()[0].chosen == {"role": "assistant", "content": "4", "reasoning_content": "a"}


@pytest.mark.parametrize(
    ("texts", "reasons"),
    [
        (["a 4", "b 4"], ["choice.tie", "choice.tie"]),
        (["a 5", "b 5"], ["choice.tie", "choice.tie"]),
        (["a 4", ""], ["choice.tie", "answer.empty"]),
        (["", ""], ["answer.empty", "answer.empty"]),
    ],
)
def test_ties_make_no_pair(texts: list[str], reasons: list[str]) -> None:
    run = pairs(texts)
    assert run.reasons() == reasons
    assert all(sample.kind is SampleKind.CONVERSATION for sample in run.samples)


@pytest.mark.parametrize(
    ("margin", "against", "rejected"), [(1, "lowest", "c"), (1, "nearest", "b"), (3, "nearest", "c")]
)
def test_the_margin_and_the_rule_say_against_which_lower_one(margin: float, against: Any, rejected: str) -> None:
    task = Preference(replies=3, score_by="grader", min_margin=margin, against=against)
    run = drive(task, PLAIN, graded(["c", "a", "b"], {"a": "9", "b": "7", "c": "2"}))
    (pair,) = run.accepted()
    assert pair.rejected is not None
    assert (pair.chosen, pair.rejected["content"]) == ({"role": "assistant", "content": "a"}, rejected)


def test_a_pair_is_never_of_the_same_text() -> None:
    grades = iter(["9", "2"])

    def said(request: Request) -> Said:
        if "Grade from" in text_of(request):
            return f'{{"grade": {next(grades)}}}'
        return "the  same" if request.rollout else "the same"

    run = drive(Preference(replies=2, score_by="grader"), PLAIN, said)
    assert not run.accepted()
    assert len(run.samples) == 2


def test_scores_too_close_are_told_from_ties() -> None:
    task = Preference(replies=2, score_by="grader", min_margin=2)
    run = drive(task, PLAIN, graded(["a", "b"], {"a": "9", "b": "8"}))
    assert run.reasons() == ["choice.small_margin"] * 2


def test_a_wrong_answer_may_be_the_worse_one_of_graded_pairs() -> None:
    run = drive(Preference(replies=2, score_by="grader"), ASKED, graded(["5", "4"], {"4": "9"}))
    (pair,) = run.accepted()
    assert pair.rejected is not None
    assert (pair.rejected["content"], pair.figures["score_rejected"]) == ("5", 1)


def test_the_random_lower_one_is_drawn_by_the_seed() -> None:
    texts = ["4", *(f"wrong {word}" for word in "abcdefgh")]
    runs = {
        seed: drive(Preference(replies=9), ASKED, lambda one: texts[one.rollout], desk=Desk(seed=seed))
        for seed in range(8)
    }
    drawn = {run.accepted()[0].rejected["content"] for run in runs.values()}  # type: ignore[index]
    assert len(drawn) > 1


def trace(at: int, words: str, says: Verdict | None = RIGHT) -> Candidate:
    told = Reply(key=str(at), text=words, finish_reason="stop", completion_tokens=len(words.split()))
    one = Candidate(at=at, reply=told, parsed=Parsed(reasoning=None, answer=words, finish=Finish.STOP))
    return one.judged(says) if says else one


TRACES = [trace(0, "a b c d"), trace(1, "a b"), trace(2, "a b c d e f"), trace(3, "u v w x y")]


@pytest.mark.parametrize(
    ("wrong", "choice", "kept"),
    [
        (0, Choice(), [1]),
        (1, Choice(), [1]),  # 4 of 5 are right: above .75
        (2, Choice(), [2]),  # 4 of 6
        (2, Choice(reliable=4 / 6), [1]),
        (0, Choice(keep=2), [0, 1]),
        (2, Choice(keep=2), [2, 3]),
        (2, Choice(keep=2, unsolved="diverse"), [2, 3]),
        (2, Choice(keep=2, unsolved="first"), [0, 1]),
        (0, Choice(keep=None), [0, 1, 2, 3]),
        (0, Choice(keep=9), [0, 1, 2, 3]),
    ],
)
def test_short_traces_are_kept_of_items_solved_reliably_and_long_ones_of_others(
    wrong: int, choice: Choice, kept: list[int]
) -> None:
    made = chosen([*TRACES, *(trace(4 + at, "no", WRONG) for at in range(wrong))], choice)
    assert [one.at for one in made if one.open] == kept
    assert {one.reason for one in made} <= {"", "choice.not_chosen", "verify.wrong"}
    assert made[0].figures["pass_rate"] == pytest.approx(4 / (4 + wrong))


def test_the_most_diverse_are_far_from_each_other() -> None:
    near = [trace(0, "a b c d e f g h"), trace(1, "a b c d e f g x"), trace(2, "q r s t"), trace(3, "a b c d e f g y")]
    made = chosen([*near, trace(4, "no", WRONG), trace(5, "no", WRONG)], Choice(keep=2, unsolved="diverse"))
    assert [one.at for one in made if one.open] == [0, 2]


def test_errors_count_neither_for_nor_against_an_item() -> None:
    error = Verdict(outcome=Says.ERROR)
    assert pass_rate([TRACES[0], trace(1, "x", error), trace(2, "x", WRONG)]) == 0.5
    assert pass_rate([trace(1, "x", error)]) is None
    assert pass_rate([]) is None
    assert "pass_rate" not in chosen([trace(1, "x", None)], Choice())[0].figures


SOLUTION = "First two.\n\nThen two more.\n\nSo 4"


def labelled(right: dict[str, int], solution: str = SOLUTION, **more: Any) -> Run:
    """Completions of a prefix that ends with a step come right as often as told, of 4."""

    def said(request: Request) -> Said:
        if not request.continues:
            return solution
        prefix = str(request.messages[-1]["content"]).strip()
        step = prefix.split("\n\n")[-1]
        if right[step] < 0:
            return failure(request)
        return "so it is 4" if request.rollout < right[step] else "so it is 5"

    return drive(ProcessLabels(solutions=1, completions=4, **more), ASKED, said)


def test_a_steps_label_is_how_often_completions_from_it_come_right() -> None:
    run = labelled({"First two.": 4, "Then two more.": 1})
    (sample,) = run.accepted()
    steps = json.loads(sample.facts["steps"])
    assert [(step["soft"], step["hard"]) for step in steps] == [(1.0, 1), (0.25, 1), (1.0, 1)]
    assert "".join(step["text"] for step in steps) == SOLUTION
    assert sample.kind is SampleKind.STEPS
    assert sample.messages[-1] == {"role": "assistant", "content": SOLUTION}
    assert len(run.requests) == 1 + 2 * 4
    assert not lost(run, run.requests)
    assert all(request.continues for request in run.requests[1:])
    assert run.requests[1].messages[-1] == {"role": "assistant", "content": "First two.\n\n"}


def test_a_wrong_solution_is_labelled_down_to_its_last_step() -> None:
    run = labelled({"First two.": 2, "Then three.": 0}, solution="First two.\n\nThen three.\n\nSo 5")
    assert [step["hard"] for step in json.loads(run.accepted()[0].facts["steps"])] == [1, 0, 0]
    assert run.accepted()[0].verdict == "wrong"


def test_a_step_whose_completions_all_failed_has_no_label_and_not_a_zero() -> None:
    run = labelled({"First two.": -1, "Then two more.": 1})
    (sample,) = run.samples
    assert (sample.outcome, sample.reason) == (Outcome.FAILED, "label.unscored")
    assert json.loads(sample.facts["steps"])[0] == {"text": "First two.\n\n", "soft": None, "hard": None}


@pytest.mark.parametrize(("most", "reason"), [(3, ""), (2, "steps.too_many")])
def test_solutions_of_too_many_steps_are_rejected_before_they_cost(most: int, reason: str) -> None:
    run = labelled({"First two.": 4, "Then two more.": 1}, max_steps=most)
    assert run.reasons() == [reason]
    assert (len(run.requests) == 1) == bool(reason)


def test_a_rows_own_solution_is_labelled_without_solving() -> None:
    row = Item(id="q", prompt="What?", text="One.\n\nSo 4", gold="4", verifier="exact")
    run = drive(ProcessLabels(completions=2), row, lambda request: "4")
    assert len(run.requests) == 2
    assert len(run.accepted()) == 1
    assert drive(ProcessLabels(), PLAIN, lambda _: "4").reasons() == ["item.no_verifier"]


@given(st.text(alphabet="ab \n\t", max_size=40), st.sampled_from(["paragraphs", "lines"]))
def test_steps_joined_are_the_solution(text: str, at: Any) -> None:
    assert "".join(split(text, at)) == text
    assert all(split(text, at)) or not text


def test_an_effect_asks_for_the_completions_of_all_steps_at_once() -> None:
    assert labelled({"First two.": 4, "Then two more.": 1}).effects == 4
    assert equals_gold(Check(kind="exact", gold="4", answer="4")) == RIGHT
