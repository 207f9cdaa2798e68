"""Exact answers: equal once normalised, by policies that can each be switched."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.errors import SynthError
from synth.verdicts import Outcome
from synth.verifiers import verify


@pytest.mark.parametrize(
    ("gold", "answer", "options", "outcome"),
    [
        ("Paris", "Paris", {}, "right"),
        ("Paris", "paris", {}, "right"),
        ("Paris", "paris", {"case": "match"}, "wrong"),
        ("New York", "new\n  york ", {}, "right"),
        ("New York", "New  York", {"white_space": "match"}, "wrong"),
        ("New York", "NewYork", {}, "wrong"),
        ("Paris", "**Paris**.", {}, "right"),
        ("Paris", '"Paris"', {}, "right"),
        ("Paris", "Paris.", {"punctuation": "match"}, "wrong"),
        ("rock 'n' roll", "rock n roll", {}, "wrong"),
        ("rock 'n' roll", "rock n roll", {"punctuation": "drop"}, "right"),
        ("the Beatles", "Beatles", {}, "wrong"),
        ("the Beatles", "Beatles", {"articles": "drop"}, "right"),
        ("Beatles", "An apple", {"articles": "drop"}, "wrong"),
        ("caf\u00e9", "cafe\u0301", {}, "right"),
        ("caf\u00e9", "cafe\u0301", {"unicode": "none"}, "wrong"),
        ("\u210c", "H", {}, "wrong"),
        ("\u210c", "H", {"unicode": "NFKC"}, "right"),
        ("stra\u00dfe", "STRASSE", {}, "right"),
        ("-5", "5", {}, "wrong"),
        ("5%", "5", {}, "wrong"),
        (42, "42", {}, "right"),
        (42, "42.0", {}, "wrong"),
        (["J. Smith", "John Smith"], "john smith", {}, "right"),
        (["J. Smith", "John Smith"], "John", {}, "wrong"),
        ("Paris", "It is Paris", {}, "wrong"),
        ("Paris", "Rome?\nThe answer is Paris.", {"part": "marked"}, "right"),
        ("Paris", "So \\boxed{\\text} \\boxed{Paris}", {"part": "marked"}, "right"),
        ("Paris", "<answer> Paris </answer> of course", {"part": "marked"}, "right"),
        ("Paris", "Paris", {"part": "marked"}, "wrong"),
        ("Paris", "\\boxed{Paris", {"part": "marked"}, "wrong"),
        ("Paris", "Rome?\n\nParis\n\n", {"part": "last_line"}, "right"),
        ("Paris", "Paris\nRome", {"part": "last_line"}, "wrong"),
        ("Paris", "", {}, "wrong"),
        ("Paris", " \n", {}, "wrong"),
        (None, "x", {}, "error"),
        (True, "True", {}, "error"),
        ([], "x", {}, "error"),
        ({"a": 1}, "x", {}, "error"),
        ("", "", {}, "error"),
        ("the", "", {"articles": "drop"}, "error"),
        (["Paris", "  "], "Paris", {}, "error"),
    ],
)
def test_each_policy_decides_as_it_says(gold: Any, answer: str, options: dict[str, Any], outcome: str) -> None:
    assert verify("exact", gold, answer, **options).outcome.value == outcome


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(SynthError, match=r"exact: .*unknown option; those of exact are case"):
        verify("exact", "x", "x", caes="ignore")


@given(st.text(), st.text(min_size=1), st.sampled_from(["whole", "marked", "last_line"]))
def test_any_text_gets_a_verdict_that_is_no_error_for_a_plain_gold(answer: str, more: str, part: str) -> None:
    assert verify("exact", "gold", answer + more, part=part).outcome in (Outcome.RIGHT, Outcome.WRONG)


@given(st.text(), st.sampled_from(["edges", "drop", "match"]), st.sampled_from(["match", "drop"]))
def test_any_gold_is_right_by_itself_or_an_error(text: str, punctuation: str, articles: str) -> None:
    verdict = verify("exact", text, text, punctuation=punctuation, articles=articles)
    assert verdict.outcome in (Outcome.RIGHT, Outcome.ERROR)


@pytest.mark.parametrize("text", ["\\boxed{" * 30_000, "{" * 100_000, "<answer>" * 30_000, "answer is " * 20_000])
def test_replies_made_to_hang_get_a_verdict_within_a_second(text: str) -> None:
    assert verify("exact", "x", text, part="marked", limit_seconds=1.0).outcome is Outcome.WRONG
