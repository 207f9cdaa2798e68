"""The loop of generator, verifier and reviser ends, keeps every attempt, and takes only what was changed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.items import Item, Outcome
from synth.requests import Request
from synth.tasks.verify_revise import VerifyRevise
from tests.synth.tasks.flow_driver import Run, Said, drive, failure, lost, reply, text_of

ASKED = Item(id="q", prompt="What is two and two?")
GOLD = Item(id="q", prompt="What is two and two?", gold="4", verifier="exact")
CHECK, MEND = "Check the answer as if", "Write the answer anew"


class Loop:
    """Attempt n says `answers[n]`; the verifier says `verdicts[answer]`; a revision is the answer with a mark more."""

    def __init__(self, answers: Any, verdicts: dict[str, str], mended: Any = None) -> None:
        self.answers, self.verdicts, self.mended = answers, verdicts, mended

    def __call__(self, request: Request) -> Said:
        text = text_of(request)
        if CHECK not in text and MEND not in text:
            return self.answers[request.rollout]  # type: ignore[no-any-return]
        answer = text.split("<answer-")[1].split("\n")[1]
        if CHECK in text:
            said = self.verdicts.get(answer, "minor")
            return said if said.startswith("{") else f'Hm. {{"verdict": "{said}", "issues": "step 2 of {answer}"}}'
        return self.mended(request) if self.mended else f"<revision>{answer} more</revision>"


def looped(said: Any, item: Item = ASKED, **more: Any) -> Run:
    return drive(VerifyRevise(**more), item, said)


def test_an_answer_without_fault_is_taken_at_once() -> None:
    run = looped(Loop(["4"], {"4": "correct"}))
    assert run.reasons() == [""]
    assert len(run.requests) == 2
    assert run.samples[0].keys == tuple(run.keys)


def test_small_faults_are_mended_and_the_steps_are_kept() -> None:
    run = looped(Loop(["a"], {"a more": "correct"}))
    assert run.reasons() == ["review.minor", ""]
    assert [one.messages[-1]["content"] for one in run.samples] == ["a", "a more"]
    assert "step 2 of a" in text_of(run.requests[2])
    assert [one.figures["revision"] for one in run.samples] == [0, 1]
    assert len(run.samples[1].keys) == 4
    assert run.samples[1].tokens < 3
    assert not lost(run, run.requests)


def test_critical_faults_begin_anew_with_another_rollout() -> None:
    run = looped(Loop(["a", "b"], {"a": "critical", "b": "correct"}))
    assert run.reasons() == ["review.critical", ""]
    assert [request.rollout for request in run.requests] == [0, 0, 1, 0]
    assert run.samples[1].figures["attempt"] == 1


@pytest.mark.parametrize(("restarts", "revisions"), [(0, 0), (1, 0), (0, 2), (2, 3)])
def test_the_loop_ends_at_its_budget(restarts: int, revisions: int) -> None:
    run = looped(Loop(["a", "b", "c"], {}), restarts=restarts, revisions=revisions)
    assert len(run.samples) == (restarts + 1) * (revisions + 1)
    assert run.reasons() == ["review.minor"] * len(run.samples)
    assert not lost(run, run.requests)


@pytest.mark.parametrize(
    ("mended", "reason"),
    [
        ("<revision>A.</revision>", "revise.unchanged"),
        ("<revision>Here is the revised version:\nb</revision>", "leak.chatter"),
        ("b", "parse.no_tag"),
        ("<revision></revision>", "parse.empty_tag"),
    ],
)
def test_a_revision_must_be_another_text(mended: str, reason: str) -> None:
    run = looped(Loop(["a", "c"], {"c": "correct"}, mended=lambda _: mended))
    assert run.reasons() == ["review.minor", reason, ""]
    assert not lost(run, run.requests)


def test_a_revision_that_goes_in_circles_is_told() -> None:
    said = iter(["<revision>b</revision>", "<revision>a</revision>"])
    run = looped(Loop(["a"], {}, mended=lambda _: next(said)), restarts=0)
    assert run.reasons() == ["review.minor", "review.minor", "revise.repeated"]


def test_the_verifier_sees_question_and_answer_alone() -> None:
    run = looped(Loop(["<think>secret thoughts</think>4"], {"4": "correct"}))
    assert "secret" not in text_of(run.requests[1])
    assert len(run.requests[1].messages) == 1
    assert run.requests[1].teacher == "judge"


@pytest.mark.parametrize(
    "said", ["{}", '{"verdict": "perfect"}', '{"verdict": "correct"} {"verdict": "minor"}', '{"verdict": 1}']
)
def test_a_verdict_that_cannot_be_read_is_none_and_the_loop_begins_anew(said: str) -> None:
    run = looped(Loop(["a", "b"], {"a": said, "b": "correct"}))
    assert [one.outcome for one in run.samples] == [Outcome.FAILED, Outcome.ACCEPTED]
    assert run.reasons() == ["review.unscored", ""]


def test_a_teacher_that_is_gone_is_not_asked_for_the_rest() -> None:
    run = looped(failure)
    assert (run.reasons(), len(run.requests)) == (["teacher.send"], 1)
    run = looped(lambda one: reply(one, "so", "length"))
    assert run.reasons() == ["finish.truncated_in_answer"] * 3


def test_a_rows_own_verifier_has_the_last_word() -> None:
    run = looped(Loop(["5"], {"5": "correct"}), item=GOLD)
    assert (run.reasons(), run.samples[0].verdict) == (["verify.wrong"], "wrong")
    run = looped(Loop(["5", "4"], {"5": "critical", "4": "correct"}), item=GOLD)
    assert run.reasons() == ["review.critical", ""]
    assert [check.answer for check in run.checks] == ["4"]


@given(st.lists(st.sampled_from(["correct", "minor", "critical", "{}"]), min_size=40, max_size=40))
def test_whatever_the_verifier_says_the_account_is_whole(said: list[str]) -> None:
    verdicts = iter(said)

    def answer(request: Request) -> Said:
        text = text_of(request)
        if CHECK in text:
            return f'{{"verdict": "{next(verdicts)}", "issues": ""}}'
        return f"<revision>{len(text)}</revision>" if MEND in text else f"answer {request.rollout}"

    run = looped(answer, restarts=3, revisions=2)
    assert len(run.samples) <= 4 * 3
    assert sum(one.outcome is Outcome.ACCEPTED for one in run.samples) <= 1
    assert all(one.reason for one in run.samples[:-1])
    assert not lost(run, run.requests)
