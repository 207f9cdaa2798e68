"""Pairs are kept where the document says what they say, once, and can be asked without it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.items import Item, Outcome
from synth.requests import Request
from synth.tasks.asking import Deciding
from synth.tasks.question_answer import QuestionAnswer
from synth.tasks.question_answer_grounding import agree, answer_fault, holds, question_fault
from tests.synth.tasks.flow_driver import Run, Said, drive, failure, lost, reply, text_of

TEXT = (
    "Ada Lovelace wrote three notes in London in 1843. The longest one, Note G, holds a procedure for Bernoulli "
    "numbers. Charles Babbage designed the engine, which was never built in his lifetime because money ran out."
)
DOCUMENT = Item(id="d", text=TEXT)
WHEN = ("When did Ada Lovelace write her notes?", "In 1843", "wrote three notes in London in 1843")
WHY = (
    "Why was Babbage's engine never built?",
    "It was never built in his lifetime because the money ran out.",
    "never built in his lifetime because money ran out",
)


def pair(question: str, answer: str, evidence: str) -> str:
    return (
        f"<pair>\n<question>{question}</question>\n<answer>{answer}</answer>\n<evidence>{evidence}</evidence>\n</pair>"
    )


def asked(said: Any, item: Item = DOCUMENT, **more: Any) -> Run:
    return drive(QuestionAnswer(**more), item, said if callable(said) else lambda _: said)


def test_pairs_become_conversations_with_their_evidence() -> None:
    run = asked(pair(*WHEN) + "\n" + pair(*WHY))
    first, second = run.accepted()
    assert first.messages == ({"role": "user", "content": WHEN[0]}, {"role": "assistant", "content": WHEN[1]})
    assert first.facts["evidence"] == WHEN[2]
    assert 0 < first.tokens < second.tokens < len(pair(*WHEN).split() + pair(*WHY).split())
    assert [one.number for one in run.samples] == [0, 1]
    assert not lost(run, run.requests)


def test_the_document_stands_in_the_prompt_where_it_is_wanted() -> None:
    (sample,) = asked(pair("When, by the text, did she write notes?", *WHEN[1:]), context="with").accepted()
    assert sample.messages[0]["content"] == f"{TEXT}\n\nWhen, by the text, did she write notes?"
    assert asked(pair("When, by the text, did she write notes?", *WHEN[1:])).reasons() == ["question.points_to_text"]


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (WHEN, ""),
        (WHY, ""),
        (("When?!", "", "x"), "parse.pair"),
        (("", "In 1843", WHEN[2]), "parse.pair"),
        (("??", "In 1843", WHEN[2]), "question.no_words"),
        ((WHEN[0], "In 1844", WHEN[2]), "ground.number"),
        ((WHEN[0], "In 1843", "wrote four notes in London"), "ground.no_quote"),
        ((WHEN[0], "In 1843", "..."), "ground.no_quote"),
        (
            ("Who designed it, and where?", "It was made by Charles Babbage, in Paris.", "Charles Babbage"),
            "ground.name",
        ),
        (("What holds Note G?", "Recipes", "Note G"), "ground.words"),
        (
            (WHY[0], "Because parliament preferred steamships, railways and colonial telegraphs instead.", WHY[2]),
            "ground.words",
        ),
        (("Was the engine ever built?", "No", "was never built"), ""),
        (("How many notes did Ada Lovelace write?", "3", "three notes"), ""),
        (("Did Ada Lovelace write notes in London?", "Notes", "notes in London"), "question.gives_answer"),
        (("Is Note G long or short?", "Long", "The longest one"), ""),
        (("What is in the passage above?", "Note G", "Note G"), "question.points_to_text"),
        ((WHEN[0], "Sure! Here is the answer: in 1843 she wrote it in London.", WHEN[2]), "leak.chatter"),
    ],
)
def test_each_fault_of_a_pair_has_its_reason(told: tuple[str, str, str], reason: str) -> None:
    assert asked(pair(*told)).reasons() == [reason]


def test_a_question_asked_before_is_rejected_and_a_rejected_one_blocks_none() -> None:
    again = ("When did Ada Lovelace write all her notes?", *WHEN[1:])
    wrong = (WHEN[0], "In 1900", WHEN[2])
    run = asked(pair(*wrong) + pair(*WHEN) + pair(*again) + pair(*WHY))
    assert run.reasons() == ["ground.number", "", "question.repeated", ""]
    assert asked(pair(*WHEN) + pair(*again), max_likeness=1.0).reasons() == ["", ""]


def test_questions_are_compared_over_all_chunks_of_a_document() -> None:
    paragraphs = f"{TEXT}\n\n{TEXT.replace('longest', 'last')}"
    run = asked(pair(*WHEN), Item(id="d", text=paragraphs), chunk_characters=len(TEXT) + 10)
    assert run.effects == 1
    assert run.reasons() == ["", "question.repeated"]
    assert [one.figures["chunk"] for one in run.samples] == [0, 1]


def test_a_chunk_without_pairs_or_reply_is_told() -> None:
    assert asked("I would rather not.").reasons() == ["parse.no_pair"]
    assert asked(failure).reasons() == ["teacher.send"]
    assert asked(lambda one: reply(one, pair(*WHEN), "length")).reasons() == ["finish.truncated_in_answer"]


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        ("1843", ""),
        ("In the year 1843.", ""),
        ("1844", "reading.disagrees"),
        ("Unanswerable.", "reading.unanswerable"),
        ("", "answer.empty"),
    ],
)
def test_a_second_reading_decides_whether_a_question_can_be_answered(read: str, reason: str) -> None:
    def said(request: Request) -> Said:
        return read if "UNANSWERABLE" in text_of(request) else pair(*WHEN)

    run = asked(said, reading=Deciding(teacher="reader"))
    assert run.reasons() == [reason]
    assert run.samples[0].messages[-1] == {"role": "assistant", "content": "In 1843"}
    assert [request.teacher for request in run.requests] == ["teacher", "reader"]
    assert "1843" not in text_of(run.requests[1]).replace(TEXT, "")
    assert not lost(run, run.requests)


def test_a_reader_that_fails_is_no_judgement() -> None:
    run = asked(lambda one: failure(one) if "UNANSWERABLE" in text_of(one) else pair(*WHEN), reading=Deciding())
    assert run.samples[0].outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ("Yes", "Yes, it did.", True),
        ("Yes", "No", False),
        ("No.", "no", True),
        ("because money ran out", "Money ran out", True),
        ("because money ran out", "The government stopped", False),
        ("about 40 people", "40", True),
        ("41 people", "40", False),
    ],
)
def test_answers_agree_by_numbers_and_words(first: str, second: str, says: bool) -> None:
    assert agree(first, second, 0.5) is says
    assert agree(second, first, 0.5) is says


def test_a_quote_is_found_by_its_words_in_a_row() -> None:
    assert holds("He said: 'It rained.'", "said it RAINED")
    assert not holds("He said: 'It rained.'", "he rained")
    assert not holds("Embedded words", "bedded")


@given(st.text(), st.text(), st.text(), st.text())
def test_any_texts_get_an_answer(question: str, answer: str, evidence: str, document: str) -> None:
    question_fault(question, answer, True)
    answer_fault(question, answer, evidence, document, 0.5)
    agree(question, answer, 0.5)


def test_texts_that_cannot_be_asked_about_are_told_at_once() -> None:
    assert asked(pair(*WHEN), Item(id="d", prompt="x")).reasons() == ["item.no_text"]
    assert asked(pair(*WHEN), Item(id="d", text="x" * 11), max_characters=10).reasons() == ["item.too_long"]
