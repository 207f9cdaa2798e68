"""Distillation and translated questions: waves, verdicts, choices and languages; nothing asked for is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from synth.flows import Desk
from synth.items import Item, Outcome
from synth.requests import Request
from synth.rollouts.settings import GiveUp, Rollouts, Tempering
from synth.tasks.asking import Asking
from synth.tasks.choice import Choice
from synth.tasks.distill import Distill
from synth.tasks.translated import LANGUAGES, Translated, keeps_numbers
from synth.verdicts import Check, Verdict
from synth.verdicts import Outcome as Says
from synth.verifiers import verify
from tests.synth.tasks.flow_driver import RIGHT, WRONG, Run, Said, drive, equals_gold, failure, lost, reply, text_of

ASKED = Item(id="q", prompt="What is {{ 2 }} and 2?", gold="4", verifier="math", options={"rounding": 1})
ALL = Choice(keep=None)


def distilled(answers: Sequence[str], desk: Desk | None = None, judge: Any = equals_gold, **more: Any) -> Run:
    return drive(Distill(**more), ASKED, lambda one: answers[one.rollout % len(answers)], judge, desk)


def test_a_right_trace_is_a_conversation_with_its_reasoning_apart() -> None:
    run = distilled(["<think>Two twos.</think>So 4", "<think>No.</think>So 5"], choice=ALL)
    sample = run.samples[0]
    assert sample.messages[-1] == {"role": "assistant", "content": "So 4", "reasoning_content": "Two twos."}
    assert "What is {{ 2 }} and 2?" in sample.messages[0]["content"]
    assert "\\boxed{}" in sample.messages[0]["content"]
    assert (sample.verdict, sample.facts["prompt"], sample.facts["finish"]) == ("right", "solve_boxed@1", "stop")
    assert sample.figures["pass_rate"] == 0.5
    assert run.samples[1].reason == "verify.wrong"
    assert run.checks[0] == Check(kind="math", gold="4", answer="So 4", options={"rounding": 1})
    assert {check.answer for check in run.checks} == {"So 4", "So 5"}


def test_the_rows_own_words_alone_can_be_trained_on() -> None:
    run = distilled(["4"], train_on="question")
    assert run.accepted()[0].messages[0] == {"role": "user", "content": ASKED.prompt}
    assert "\\boxed{}" in text_of(run.requests[0])


@pytest.mark.parametrize(
    ("answers", "rollouts", "asked"),
    [
        (["4"], Rollouts(), 4),
        (["4", "4", "4", "5"], Rollouts(), 8),
        (["5"], Rollouts(), 16),
        (["5"], Rollouts(give_up=GiveUp(chance=None, all_wrong=8)), 8),
        (["5"], Rollouts(cap=6), 6),
        (["4"], Rollouts(accepted=None, cap=10), 10),
        (["4"], Rollouts(wave=1, accepted=1), 1),
    ],
)
def test_waves_go_on_until_enough_are_right_or_the_bound_is_reached(
    answers: list[str], rollouts: Rollouts, asked: int
) -> None:
    run = distilled(answers, rollouts=rollouts, choice=ALL)
    assert len(run.requests) == len(run.samples) == asked
    assert [request.rollout for request in run.requests] == list(range(asked))


def test_an_allocation_over_all_items_goes_before_the_flows_own_bounds() -> None:
    assert len(distilled(["4"], desk=Desk(rollouts=11)).requests) == 11
    assert (
        len(
            distilled(
                ["5"], desk=Desk(rollouts=20), rollouts=Rollouts(give_up=GiveUp(chance=None, all_wrong=4))
            ).requests
        )
        == 20
    )
    assert len(distilled(["5"], desk=Desk(rollouts=1)).requests) == 1


def test_rollouts_are_shared_out_over_all_items_after_a_pilot() -> None:
    task = Distill(rollouts=Rollouts(allocation="hbn", mean_rollouts=8, cap=32))
    assert task.pilot_rollouts == 4
    given = task.allocate([(4, 4), (4, 2), (0, 0), (4, 0)], 1)
    assert sum(given) == 8 * 4
    assert min(given) > 4
    assert given[1] > given[0]
    assert Distill().pilot_rollouts is None


def test_temperatures_follow_what_was_right_and_are_kept_in_the_samples() -> None:
    hard = distilled(["5"], rollouts=Rollouts(tempering=Tempering()), desk=Desk(seed=3))
    easy = distilled(["4"], rollouts=Rollouts(tempering=Tempering(), accepted=None), desk=Desk(seed=3))
    assert hard.requests[0].temperature == easy.requests[0].temperature
    assert [request.temperature for request in hard.requests[:4]] == [hard.requests[0].temperature] * 4
    last = hard.requests[-1].drawn_temperature, easy.requests[-1].drawn_temperature
    assert last[0] > 1 > last[1]
    assert hard.samples[-1].figures["temperature"] == last[0]
    assert {sample.facts["stopped"] for sample in hard.samples} == {"cap"}
    assert hard.keys == distilled(["5"]).keys
    with pytest.raises(ValidationError, match="nothing heats"):
        Distill(rollouts=Rollouts(tempering=Tempering()), answering=Asking(temperature=0))


def test_every_rollout_is_a_sample_whatever_came_of_it() -> None:
    def said(request: Request) -> Said:
        kinds: list[Said] = [
            reply(request, "<think>on and on", "length"), reply(request, "cut", "length"), failure(request, "wait"), "",
            "5", "4", reply(request, "no", "content_filter"), "<think>only</think>",
        ]  # fmt: skip
        return kinds[request.rollout]

    def unsure(check: Check) -> Verdict:
        return Verdict(outcome=Says.ERROR, reason="hung") if check.answer == "4" else WRONG

    run = drive(Distill(rollouts=Rollouts(cap=8)), ASKED, said, unsure)
    assert run.reasons() == [
        "finish.truncated_in_reasoning", "finish.truncated_in_answer", "teacher.wait", "answer.empty", "verify.wrong",
        "verify.error", "finish.filtered", "answer.empty",
    ]  # fmt: skip
    failed = {sample.reason for sample in run.samples if sample.outcome is Outcome.FAILED}
    assert failed == {"teacher.wait", "verify.error"}
    assert run.samples[2].facts["error"] == "Refused: by hand"
    assert not lost(run, run.requests)


def test_the_shortest_right_trace_is_kept_and_the_others_with_the_reason() -> None:
    run = distilled(["well well so 4", "so 4", "well so 4", "it is 4"])
    assert run.reasons() == ["choice.not_chosen", "", "choice.not_chosen", "choice.not_chosen"]
    assert {sample.verdict for sample in run.samples} == {"right"}


def test_rows_without_a_verifier_are_kept_unverified() -> None:
    run = drive(
        Distill(prompt="question", choice=ALL), Item(id="p", prompt="Say hello"), lambda one: f"Hi {one.rollout}"
    )
    assert not run.checks
    assert len(run.accepted()) == 4
    assert all(sample.verdict == "" and "pass_rate" not in sample.figures for sample in run.samples)


def test_a_row_that_lacks_a_value_of_the_template_fails_alone() -> None:
    run = drive(Distill(prompt="solve_choice"), ASKED, lambda _: "4")
    assert run.reasons() == ["prompt.value"]
    assert run.samples[0].outcome is Outcome.FAILED
    assert "options: no value" in run.samples[0].facts["error"]
    assert "What is" not in run.samples[0].facts["error"]
    row = Item(id="c", prompt="Which?", gold="B", verifier="choice", options={"options": ["one", "two"]})
    run = drive(Distill(prompt="solve_choice"), row, lambda _: "B")
    assert "A. one\nB. two\n" in text_of(run.requests[0])


def test_earlier_turns_stand_before_the_question() -> None:
    earlier = ({"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"})
    row = Item(id="m", prompt="And 2 and 2?", messages=earlier, gold="4", verifier="exact")
    run = drive(Distill(prompt="question"), row, lambda _: "4")
    assert run.requests[0].messages == (*earlier, {"role": "user", "content": "And 2 and 2?"})
    assert len(run.accepted()[0].messages) == 4


FRENCH = "Marie a 1\u202f250 pommes et en donne 50. Combien de pommes lui reste-t-il à la fin de la journée ?"
ENGLISH = "Mary has 1,250 apples and gives 50 of them away. How many apples are left to her at the end of the day?"
SOLVED = "Marie commence avec ses pommes, elle en donne une partie, et il lui en reste donc à la fin 1200"
ROW = Item(id="t", prompt=ENGLISH, gold="1200", verifier="exact", language="en")


def translated(translation: str, answers: Sequence[str] = (SOLVED,), **more: Any) -> Run:
    task = Translated(languages=("fr",), share=1.0, rollouts=Rollouts(cap=4), choice=ALL, **more)
    (item,) = task.items([ROW])

    def said(request: Request) -> Said:
        if "Translate the text" in text_of(request):
            return f"<translation>{translation}</translation>"
        return answers[request.rollout % len(answers)]

    def judge(check: Check) -> Verdict:
        return verify("language", check.gold, check.answer) if check.kind == "language" else equals_gold(check)

    return drive(task, item, said, judge)


def test_a_translated_question_is_answered_in_its_language() -> None:
    run = translated(FRENCH)
    assert run.reasons() == [""] * 4
    assert run.accepted()[0].messages[0]["role"] == "system"
    assert "French" in run.accepted()[0].messages[0]["content"]
    assert run.accepted()[0].messages[1] == {"role": "user", "content": FRENCH}
    assert {len(sample.keys) for sample in run.samples} == {2}
    assert {sample.verdict for sample in run.samples} == {"right"}
    assert not lost(run, run.requests)


def test_an_answer_in_another_language_is_rejected_though_it_is_right() -> None:
    english = "Mary starts with all of her apples, she gives some of them away, and so what is left in the end is 1200"
    reasoned = f"<think>{english}, and that is all there is to it.</think>1200"
    run = translated(FRENCH, [SOLVED, english, reasoned, SOLVED.replace("1200", "1201")])
    assert run.reasons() == ["", "language.wrong", "language.wrong", "verify.wrong"]
    assert run.samples[1].verdict == "right"
    assert run.samples[0].figures["pass_rate"] == 0.75


@pytest.mark.parametrize(("unidentified", "reason"), [("keep", ""), ("fail", "language.unscored")])
def test_an_answer_too_short_to_be_identified_is_no_wrong_one(unidentified: str, reason: str) -> None:
    run = translated(FRENCH, ["1200"], unidentified=unidentified)
    assert run.reasons() == [reason] * 4
    assert run.samples[0].facts.get("language") == ("unidentified" if not reason else None)


@pytest.mark.parametrize(
    ("translation", "reason"),
    [
        (FRENCH.replace("50", "cinquante"), "translate.number_lost"),
        (ENGLISH, "translate.wrong"),
        ("", "parse.empty_tag"),
    ],
)
def test_a_bad_translation_is_rejected_before_anybody_solves_it(translation: str, reason: str) -> None:
    run = translated(translation)
    assert run.reasons() == [reason]
    assert len(run.requests) == 1


@pytest.mark.parametrize(
    ("text", "translation", "kept"),
    [
        ("1,000.5 m", "1 000,5 m".replace(" ", "\u202f"), True),
        ("12 and 12", "12 et douze", False),
        ("12", "\u0661\u0662", True),
        ("1,250 and 1.5", "1 250 y 1,5", True),
        ("in 2023 100", "2023 waren 100", True),
        ("1250", "1 2505", False),
        ("007", "7", True),
        ("none", "keine 3", True),
        ("3, 4", "4 y 3", True),
        ("1.5", "15", True),  # separators are not told apart
        ("5", "6", False),
    ],
)
def test_numbers_are_compared_by_their_digits(text: str, translation: str, kept: bool) -> None:
    assert keeps_numbers(text, translation) is kept


def test_a_share_of_the_rows_goes_into_one_language_each_by_their_ids() -> None:
    rows = [Item(id=f"row {at}", prompt="Why?", language="en") for at in range(4000)]
    task = Translated(share=0.1)
    chosen = list(task.items(rows))
    assert 340 < len(chosen) < 460
    assert {item.language for item in chosen} == set(task.languages)
    assert [item.id for item in task.items(reversed(rows))] == [item.id for item in reversed(chosen)]
    assert all(item.id == f"{item.id.split('/')[0]}/{item.language}" for item in chosen)
    each = list(Translated(share=1.0, into="each", languages=("fr", "en", "fr")).items(rows[:2]))
    assert [item.id for item in each] == ["row 0/fr", "row 1/fr"]


def test_a_language_nobody_knows_is_refused() -> None:
    with pytest.raises(ValidationError, match="no code"):
        Translated(languages=("fr", "klingon"))
    assert len(LANGUAGES) == len(set(LANGUAGES.values()))
    assert RIGHT != WRONG
