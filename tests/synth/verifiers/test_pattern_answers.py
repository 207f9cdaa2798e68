"""Patterns match, do not, or run out of time: the last is an error, never a wrong answer."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.verdicts import Outcome
from synth.verifiers import verify


@pytest.mark.parametrize(
    ("pattern", "answer", "options", "outcome"),
    [
        (r"\d{3}", "123", {}, "right"),
        (r"\d{3}", " 123\n", {}, "right"),
        (r"\d{3}", "1234", {}, "wrong"),
        (r"\d{3}", "a 123 b", {"where": "search"}, "right"),
        (r"\d{3}", "a 12 b", {"where": "search"}, "wrong"),
        (r"cat", "a dog", {"where": "search", "wanted": "absence"}, "right"),
        (r"cat", "a cat", {"where": "search", "wanted": "absence"}, "wrong"),
        (r"cat", "CAT", {}, "wrong"),
        (r"cat", "CAT", {"ignore_case": True}, "right"),
        (r"b$", "a\nb", {"where": "search"}, "right"),
        (r"^a$", "a\nb", {"where": "search"}, "wrong"),
        (r"^a$", "a\nb", {"where": "search", "multiline": True}, "right"),
        (r"a.b", "a\nb", {}, "wrong"),
        (r"a.b", "a\nb", {"dot_all": True}, "right"),
        (r"\p{Lu}+", "ABC", {}, "right"),
        ("(", "x", {}, "error"),
        ("", "x", {}, "error"),
        (5, "x", {}, "error"),
        (None, "x", {}, "error"),
        ("a" * 10_001, "x", {}, "error"),
    ],
)
def test_a_pattern_is_applied_as_its_options_say(
    pattern: Any, answer: str, options: dict[str, Any], outcome: str
) -> None:
    assert verify("pattern", pattern, answer, **options).outcome.value == outcome


def test_a_pattern_can_stand_in_the_options() -> None:
    assert verify("pattern", None, "ab", pattern="a.").outcome is Outcome.RIGHT


def test_a_catastrophic_pattern_ends_at_its_limit_as_an_error() -> None:
    began = time.perf_counter()
    verdict = verify("pattern", r"(?:(?:a|aa)+)+(?:b|c)\1?$|(a|a)*b", "a" * 60 + "!", timeout_seconds=0.2)
    assert (verdict.outcome, verdict.reason) in {
        (Outcome.ERROR, "pattern_timed_out"),
        (Outcome.ERROR, "pattern_does_not_compile"),
    }
    verdict = verify("pattern", r"(a|a)*(a|a)*(a|a)*b", "a" * 200, timeout_seconds=0.2, where="search")
    assert verdict.outcome in (Outcome.ERROR, Outcome.WRONG)
    assert time.perf_counter() - began < 2


@given(st.text(), st.text(max_size=30))
def test_any_pattern_and_any_text_get_a_verdict(pattern: str, text: str) -> None:
    assert isinstance(verify("pattern", pattern, text, timeout_seconds=0.5).outcome, Outcome)
