"""Revisions carry the principles that they were made by; a specification is gone from what is exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from synth.errors import SynthError
from synth.flows import Desk
from synth.items import Item, Outcome, SampleKind
from synth.judges import Judge
from synth.requests import Request
from synth.tasks.critique import Critique
from synth.tasks.critique_constitution import principles, specification
from synth.tasks.critique_deliberate import Deliberate
from tests.synth.tasks.flow_driver import Run, Said, drive, failure, lost, reply, text_of

ASKED = Item(id="q", prompt="How do I sharpen a kitchen knife?")
FIND, MEND = "Criticise the answer by this alone", "Rewrite the answer so that the critique no longer holds"


class Constitution:
    """Says an answer, criticises it, and revises it to another each time."""

    def __init__(self, found: Any = "It is curt.", mended: Any = None) -> None:
        self.found, self.mended = found, mended

    def __call__(self, request: Request) -> Said:
        text = text_of(request)
        if FIND in text:
            return self.found(request) if callable(self.found) else self.found  # type: ignore[no-any-return]
        if MEND not in text:
            return "Use a stone."
        answer = text.split("<answer-")[1].split("\n")[1]
        told = self.mended(request) if callable(self.mended) else self.mended
        return told if told is not None else f"So: <revision>{answer} And then hone it.</revision>"


def criticised(said: Any = None, item: Item = ASKED, seed: int = 1, **more: Any) -> Run:
    return drive(Critique(**more), item, said or Constitution(), desk=Desk(seed=seed))


def steps_of(run: Run) -> list[dict[str, Any]]:
    return json.loads(run.samples[0].facts["steps"])  # type: ignore[no-any-return]


def test_the_last_revision_is_trained_on_and_paired_with_the_original() -> None:
    run = criticised(rounds=3)
    final, pair = run.accepted()
    revision = "Use a stone." + " And then hone it." * 3
    assert final.messages == ({"role": "user", "content": ASKED.prompt}, {"role": "assistant", "content": revision})
    assert (pair.kind, pair.number) == (SampleKind.PAIR, 1)
    assert (pair.messages, pair.chosen) == (final.messages[:1], final.messages[1])
    assert pair.rejected == {"role": "assistant", "content": "Use a stone."}
    assert final.keys == pair.keys == tuple(run.keys)
    assert len(run.requests) == 1 + 2 * 3
    assert 0 < final.tokens < 20


def test_each_step_names_its_principle_and_its_requests() -> None:
    run = criticised(rounds=4)
    steps = steps_of(run)
    assert [key for step in steps for key in step["requests"]] == run.keys[1:]
    assert all(step["changed"] and len(step["requests"]) == 2 for step in steps)
    known = {one.id: one for one in principles("")}
    for at, step in enumerate(steps):
        assert known[step["principle"]].critique in text_of(run.requests[1 + 2 * at])
        assert known[step["principle"]].revision in text_of(run.requests[2 + 2 * at])
    assert run.samples[0].facts["principles"] == ",".join(step["principle"] for step in steps)


def test_principles_are_drawn_by_the_seed_and_none_twice_before_all_were() -> None:
    count = len(principles(""))
    drawn = {seed: [step["principle"] for step in steps_of(criticised(rounds=count, seed=seed))] for seed in range(4)}
    assert all(sorted(one) == sorted(known.id for known in principles("")) for one in drawn.values())
    assert len({tuple(one) for one in drawn.values()}) > 1
    twice = [step["principle"] for step in steps_of(criticised(rounds=2 * count))]
    assert len(set(twice[:count])) == len(set(twice[count:])) == count


def test_an_answer_without_fault_stays_and_makes_no_pair() -> None:
    run = criticised(Constitution(found="NONE"), rounds=2)
    (sample,) = run.accepted()
    assert sample.messages[-1]["content"] == "Use a stone."
    assert [step["reason"] for step in steps_of(run)] == ["critique.no_fault"] * 2
    assert len(run.samples) == 1
    run = criticised(Constitution(found="It gives reasons where there are none."), rounds=1)
    assert steps_of(run)[0]["changed"]


@pytest.mark.parametrize(
    ("mended", "reason"),
    [
        ("no tags at all", "parse.no_tag"),
        ("<revision>use a STONE</revision>", "revise.unchanged"),
        ("<revision>Here is the revised answer:\nUse oil.</revision>", "leak.chatter"),
        (
            "<revision>Oil. The new answer must stand by itself: it mentions neither the old one.</revision>",
            "leak.prompt",
        ),
    ],
)
def test_a_revision_that_cannot_be_taken_leaves_the_answer_as_it_was(mended: str, reason: str) -> None:
    run = criticised(Constitution(mended=mended), rounds=1)
    assert [(step["changed"], step["reason"]) for step in steps_of(run)] == [(False, reason)]
    assert run.reasons() == ["critique.no_revision"]
    assert not lost(run, run.requests)

    def second(request: Request) -> Said | None:
        return mended if " And then hone it." in text_of(request) else None

    run = criticised(Constitution(mended=second), rounds=2)
    assert run.reasons()[0] == ""
    assert steps_of(run)[0]["changed"]


@pytest.mark.parametrize(
    ("more", "reason", "requests"),
    [
        ({"found": failure}, "teacher.send", 2),
        ({"found": lambda one: reply(one, "It is", "length")}, "finish.truncated_in_answer", 2),
        ({"mended": failure}, "teacher.send", 3),
        ({"mended": ""}, "answer.empty", 3),
    ],
)
def test_a_chain_that_breaks_ends_with_its_reason(more: dict[str, Any], reason: str, requests: int) -> None:
    run = criticised(Constitution(**more))
    assert run.reasons() == [reason]
    assert len(run.requests) == requests
    assert run.samples[0].messages[-1]["content"] == "Use a stone."
    assert not lost(run, run.requests)


def test_a_revision_that_comes_back_to_the_original_makes_no_pair() -> None:
    said = iter(["<revision>Use oil.</revision>", "<revision>Use a stone!</revision>"])
    run = criticised(Constitution(mended=lambda _: next(said)), rounds=2)
    assert run.reasons() == ["", "critique.unchanged"]


def test_a_rows_own_answer_is_criticised_without_asking_for_one() -> None:
    run = criticised(item=Item(id="q", prompt=ASKED.prompt, text="Buy a new one."), rounds=1)
    assert len(run.requests) == 2
    assert run.accepted()[1].rejected == {"role": "assistant", "content": "Buy a new one."}
    assert criticised(item=Item(id="q", text="x")).reasons() == ["item.no_prompt"]


def test_shipped_principles_and_specification_can_be_read() -> None:
    assert len(principles("")) >= 10
    assert len(specification("").split()) > 50


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- id: a\n  critique: b\n", "number 1: a list of principles"),
        ("- id: a\n  critique: b\n  revision: ''\n", "number 1: revision: a text"),
        ("- {id: a, critique: b, revision: c}\n" * 2, "id 'a' stands twice"),
        ("[", "not YAML"),
        ("", "a list of principles"),
        (None, "No such file"),
    ],
)
def test_a_file_of_principles_that_is_wrong_is_told_in_one_line(tmp_path: Path, text: str | None, told: str) -> None:
    file = tmp_path / "mine.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SynthError, match=told) as raised:
        principles(str(file))
    assert "\n" not in str(raised.value)
    with pytest.raises(ValidationError, match=told):
        Critique(principles=str(file))


GRADE = "Grade from 1 to 10"


def deliberated(answer: Any = "<think>Point 4.</think>Ask a doctor.", grades: Any = (9, 8), **more: Any) -> Run:
    def said(request: Request) -> Said:
        if GRADE in text_of(request):
            grade = grades[request.rollout // 2]
            return f'Fine. {{"grade": {grade}}}' if isinstance(grade, int) else str(grade)
        return answer(request) if callable(answer) else answer  # type: ignore[no-any-return]

    return drive(Deliberate(grades=len(grades), **more), ASKED, said)


def test_the_specification_stands_in_the_prompt_and_not_in_the_export() -> None:
    run = deliberated()
    (sample,) = run.accepted()
    assert specification("") in text_of(run.requests[0])
    assert [message["role"] for message in run.requests[0].messages] == ["system", "user"]
    assert sample.messages == (
        {"role": "user", "content": ASKED.prompt},
        {"role": "assistant", "content": "Ask a doctor.", "reasoning_content": "Point 4."},
    )
    assert sample.facts["specification"]
    assert all(specification("") in text_of(request) for request in run.requests[1:])
    assert "Point 4." not in text_of(run.requests[1])
    assert not lost(run, run.requests)


@pytest.mark.parametrize(
    ("grades", "outcome", "reason"),
    [
        ((8, 10), Outcome.ACCEPTED, ""),
        ((7, 10), Outcome.REJECTED, "judge.low_grade"),
        ((10, "hm"), Outcome.FAILED, "judge.unscored"),
        ((11, 10), Outcome.FAILED, "judge.unscored"),
        ((), Outcome.ACCEPTED, ""),
    ],
)
def test_the_lowest_grade_counts(grades: Any, outcome: Outcome, reason: str) -> None:
    (sample,) = deliberated(grades=grades).samples
    assert (sample.outcome, sample.reason) == (outcome, reason)


QUOTE = " ".join(specification("").split()[12:20])


def test_eight_words_of_the_specification_are_a_leak_and_seven_are_none() -> None:
    assert deliberated(f"I must say: {QUOTE}").reasons() == ["leak.specification_in_answer"]
    assert deliberated(f"I must say: {' '.join(QUOTE.split()[:7])}").reasons() == [""]
    assert deliberated(f"<think>{QUOTE}</think>Fine.").reasons() == [""]
    assert deliberated(f"I must say: {QUOTE}", answer_may_quote=True).reasons() == [""]
    row = Item(id="q", prompt=f"What of this? {QUOTE}")
    assert drive(Deliberate(grades=0), row, lambda _: "Fine.").reasons() == ["leak.specification_in_prompt"]


def test_several_replies_are_graded_each_by_itself() -> None:
    run = deliberated(lambda one: f"Answer {one.rollout}" if one.rollout else failure(one), replies=3)
    assert run.reasons() == ["teacher.send", "", ""]
    assert len(run.requests) == 3 + 2 * 2
    with pytest.raises(ValidationError, match="all the same"):
        Deliberate(judge=Judge())
