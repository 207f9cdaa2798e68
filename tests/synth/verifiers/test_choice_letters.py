"""The letter of a choice, in whatever words it comes; two at once are refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.verdicts import Outcome
from synth.verifiers import verify
from synth.verifiers.choice import Choices, gold_letter, letter_of

FOUR = Choices(count=4)
CITIES = Choices(choices=("Paris", "Rome", "42", "London"))


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("(B)", "B"),
        ("B.", "B"),
        ("b", "B"),
        ("**B**", "B"),
        ("B) Rome is a capital", "B"),
        ("The answer is B", "B"),
        ("The answer is **B**.", "B"),
        ("the answer is: (B) because it is", "B"),
        ("Answer: D", "D"),
        ("**Answer:** D", "D"),
        ("The answer is\nC", "C"),
        ("The best answer is choice (C).", "C"),
        ("Final choice is C", "C"),
        ("The correct option is C, not B", "C"),
        ("The answer is A because it must be", "A"),
        ("so \\boxed{B}", "B"),
        ("\\boxed{\\text{B}}", "B"),
        ("$\\boxed{\\textbf{(B)}}$", "B"),
        ("\\boxed{C. foo}", "C"),
        ("<answer>C</answer>", "C"),
        ("<answer> (C) foo </answer>", "C"),
        ("Let me see.\n\nB", "B"),
        ("(A) looks right, but is not. The answer is (B).", "B"),
        ("The answer is A. No, wait: the answer is B.", "B"),
        ("The answer is not A. The answer is C.", "C"),
        ("\\boxed{A} and then \\boxed{C}", "C"),
        ("The answer is A, so \\boxed{B}", "B"),
        ("I think (B)", "B"),
        ("I think (B), yes, (B)", "B"),
        ("The answer is A or B", "ambiguous"),
        ("The answer is (A) and (B)", "ambiguous"),
        ("\\boxed{A, B}", "ambiguous"),
        ("I think (A) is bad and (B) is good", "ambiguous"),
        ("A. Paris\nB. Rome\nC. London", "ambiguous"),
        ("(A) or maybe (B)", "ambiguous"),
        ("B\n\n(A) is wrong, for it rains", "B"),
        ("The answer is not B", ""),
        ("The answer is A dog", ""),
        ("A dog runs", ""),
        ("I do not know", ""),
        ("E", ""),
        ("\\boxed{}", ""),
        ("\\boxed{E}", ""),
        ("", ""),
    ],
)
def test_the_letter_of_four_is_read(answer: str, letter: str) -> None:
    assert letter_of(answer, FOUR).letter == letter


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("Rome", "B"),
        ("The answer is Rome.", "B"),
        ("\\boxed{42}", "C"),
        ("The answer is (B) Rome.", "B"),
        ("B. Rome", "B"),
        ("The answer is (A) Rome", "ambiguous"),
        ("A. Rome", "ambiguous"),
        ("Romeo", ""),
    ],
)
def test_the_text_of_an_option_is_an_answer_and_must_fit_its_letter(answer: str, letter: str) -> None:
    assert letter_of(answer, CITIES).letter == letter


@pytest.mark.parametrize(
    ("gold", "letter"),
    [("B", "B"), ("(b)", "B"), ("B.", "B"), (1, "B"), ("rome", "B")]
    + [(gold, "") for gold in (4, -1, True, "E", "", None, 1.0)],
)
def test_a_gold_is_a_letter_a_number_from_0_or_a_text(gold: Any, letter: str) -> None:
    assert gold_letter(gold, CITIES) == letter


@pytest.mark.parametrize(
    ("gold", "answer", "outcome", "reason"),
    [
        ("B", "(B)", "right", "alone"),
        ("B", "(C)", "wrong", "different"),
        ("B", "B or C? The answer is B or C", "wrong", "ambiguous"),
        ("B", "hm", "wrong", "no_answer"),
        ("Z", "(B)", "error", "gold_is_no_option"),
    ],
)
def test_a_verdict_says_why(gold: str, answer: str, outcome: str, reason: str) -> None:
    verdict = verify("choice", gold, answer, count=4)
    assert (verdict.outcome.value, verdict.reason) == (outcome, reason)


def test_several_marks_or_mentions_can_be_refused_or_the_last_taken() -> None:
    twice, mentioned = "The answer is A. No: the answer is B.", "(A) or maybe (B) it is"
    assert letter_of(twice, Choices(several="refuse")).letter == "ambiguous"
    assert letter_of(mentioned, Choices(mentions="last")).letter == "B"


def test_letters_before_the_options_texts_are_left_away() -> None:
    lettered = Choices(choices=("A)5", "B)7", "C)None of these"))
    assert letter_of("The answer is 7", lettered).letter == "B"
    assert letter_of("\\boxed{none of these}", lettered).letter == "C"
    assert Choices(choices=("A) 5", "x")).texts == ("a) 5", "x")


@given(st.text(), st.sampled_from([FOUR, CITIES, Choices(several="refuse", mentions="last")]))
def test_any_text_gets_a_letter_none_or_ambiguous(text: str, settings: Choices) -> None:
    assert letter_of(text, settings).letter in {"", "ambiguous", *settings.letters}


@given(st.text(alphabet="ABC()[]{}*.,: \n\\boxedanswrito", max_size=60))
def test_any_mixture_of_marks_gets_a_verdict(text: str) -> None:
    assert verify("choice", "B", text, count=3).outcome in (Outcome.RIGHT, Outcome.WRONG)


@pytest.mark.parametrize(
    "text", [" " * 100_000, "( " * 50_000, "\\boxed{A " * 10_000, "answer is A " * 9_000, "(A) " * 50_000]
)
def test_replies_made_to_hang_get_a_verdict_within_a_second(text: str) -> None:
    assert verify("choice", "B", text, limit_seconds=1.0).outcome is Outcome.WRONG


@pytest.mark.parametrize("bench", ["mmlu_stem_test", "aqua"])
def test_real_golds_are_all_read_and_their_options_texts_are_right_where_they_are_unlike(
    shared: Path, bench: str
) -> None:
    with gzip.open(shared / "benchmarks" / f"{bench}.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines][:600]
    for row in rows:
        settings = Choices(choices=tuple(row["choices"]))
        letter = gold_letter(row["answer"], settings)
        assert letter
        text = settings.choices[settings.letters.index(letter)]
        said = letter_of(f"So the answer is ({letter}) {text}", settings).letter
        assert said in (letter, "ambiguous")
        if len(set(settings.texts)) == len(settings.texts):
            assert said == letter
