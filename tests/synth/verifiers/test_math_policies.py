"""Each policy on both of its sides, where an answer is taken from, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from synth.errors import SynthError
from synth.verdicts import Outcome
from synth.verifiers import verify
from synth.verifiers.math.extraction import extract


@pytest.mark.parametrize(
    ("options", "gold", "answer", "right"),
    [
        ({"percent": "either"}, r"28\%", "28", True),
        ({"percent": "either"}, r"28\%", "0.28", True),
        ({"percent": "either"}, r"28\%", "2800", False),
        ({"percent": "value"}, r"28\%", "0.28", True),
        ({"percent": "value"}, r"28\%", "28", False),
        ({"percent": "number"}, r"28\%", "28", True),
        ({"percent": "number"}, r"28\%", "0.28", False),
        ({"units": "lenient"}, "10 cm", "10", True),
        ({"units": "lenient"}, "10 cm", "10 km", False),
        ({"units": "lenient"}, "10 centimeters", r"10 \text{ cm}", True),
        ({"units": "ignore"}, "10 cm", "10 km", True),
        ({"units": "match"}, "10 cm", "10", False),
        ({"units": "match"}, "10 cm", r"10\text{ centimeters}", True),
        ({"degrees": "optional"}, r"45^\circ", "45", True),
        ({"degrees": "match"}, r"45^\circ", "45", False),
        ({"degrees": "match"}, r"45^\circ", "45 degrees", True),
        ({"rounding": "exact"}, r"\frac{100}{3}", "33.3", False),
        ({"rounding": "digits_given"}, r"\frac{100}{3}", "33.3", True),
        ({"rounding": "digits_given"}, r"\frac{100}{3}", "33.4", False),
        ({"rounding": "digits_given"}, r"\frac{100}{3}", "33", False),
        ({"rounding": "digits_given"}, "33.3", r"\frac{100}{3}", True),
        ({"rounding": "tolerance", "tolerance": 0.01}, r"\pi", "3.14", True),
        ({"rounding": "tolerance", "tolerance": 0.0001}, r"\pi", "3.14", False),
        ({"rounding": "tolerance", "tolerance": 0.01}, "100", "100.9", True),
        ({"rounding": "tolerance", "tolerance": 0.01}, "100", "101.1", False),
        ({}, r"\frac{1}{12}", "0.083333333333", True),
        ({}, r"\frac{1}{12}", "0.08333333", False),
        ({"order": "any"}, "1, 2", "2, 1", True),
        ({"order": "given"}, "1, 2", "2, 1", False),
        ({"bases": "value"}, "204_5", "54", True),
        ({"bases": "value"}, "204_5", "204", False),
        ({"bases": "optional"}, "204_5", "204", True),
        ({"bases": "optional"}, "204_5", "203", False),
        ({"chains": "last"}, "x = 11", "x = 5+5+1 = 7 = 11", True),
        ({"chains": "consistent"}, "x = 11", "x = 5+5+1 = 11", True),
        ({"decimal_comma": "auto"}, "1.2", "1,2", False),
        ({"decimal_comma": "always"}, "1.2", "1,2", True),
        ({"decimal_comma": "always"}, "1234.5", "1.234,5", True),
        ({"decimal_comma": "never"}, "2.74", "2,74", False),
        ({"bare_numbers": True}, "7", "so there are 7 of them in all, it seems", True),
        ({"bare_numbers": False}, "7", "so there are 7 of them in all, it seems", False),
    ],
)
def test_a_policy_decides_what_it_is_about(options: dict[str, Any], gold: str, answer: str, right: bool) -> None:
    assert verify("math", gold, answer, **options).outcome == (Outcome.RIGHT if right else Outcome.WRONG)


def test_a_chain_that_contradicts_itself_is_wrong_where_it_must_be_consistent() -> None:
    verdict = verify("math", "x = 11", "x = 5+5+1 = 7 = 11", chains="consistent")
    assert (verdict.outcome, verdict.reason) == (Outcome.WRONG, "chain")


@pytest.mark.parametrize(
    ("reply", "answer", "how"),
    [
        ("<think>it may be 3</think>It is \\boxed{4}.", "4", "box"),
        ("<think>\\boxed{3}", "", "none"),
        ("maybe \\boxed{3}</think>no", "no", "whole"),
        ("\\boxed{1} and \\boxed{2}", "1, 2", "box"),
        ("\\boxed{1}, so then \\boxed{2}", "2", "box"),
        ("\\boxed{1}\n\nNow \\boxed{2}", "2", "box"),
        ("\\boxed{\\frac{1}{2}}", "\\frac{1}{2}", "box"),
        ("\\boxed{\\frac{1}{2", "", "none"),
        ("\\boxed 7", "7", "box"),
        ("$\\boxed{28}$ percent", "28 %", "box"),
        ("<answer> 12 </answer>", "12", "tag"),
        ("The answer is $12$. I hope so.", "$12$", "marker"),
        ("**Final Answer:** 12", "12", "marker"),
        ("Worked out.\n#### 12", "12", "marker"),
        ("\\boxed{11} no. Final answer: 12", "12", "marker"),
        ("so $x=3$ and we are done here", "x=3", "math"),
        ("I think that it must be **73** then", "73", "bold"),
        ("it costs 7 dollars and then 9 more", "9", "number"),
        ("\\dfrac{9}{7}", "\\dfrac{9}{7}", "whole"),
        ("12<|im_end|><|im_start|>user 13", "12", "whole"),
        ("", "", "none"),
        ("I do not know what to say about it.", "", "none"),
    ],
)
def test_an_answer_is_taken_from_where_it_stands(reply: str, answer: str, how: str) -> None:
    assert extract(reply) == (answer, how)


def test_only_the_end_of_an_endless_reply_is_read() -> None:
    assert extract("\\boxed{1}" + " so it goes on" * 100_000 + "\\boxed{2}") == ("2", "box")


@pytest.mark.parametrize("gold", ["", "  ", None, True, ["1"]])
def test_a_gold_that_is_none_is_an_error_and_not_a_wrong_answer(gold: Any) -> None:
    assert verify("math", gold, "1").outcome is Outcome.ERROR


@pytest.mark.parametrize(("gold", "answer"), [(7, "7"), (0.5, "1/2"), (-3, "\\boxed{-3}")])
def test_a_gold_may_be_a_number(gold: float, answer: str) -> None:
    assert verify("math", gold, answer).outcome is Outcome.RIGHT


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"unit": "ignore"}, "verifier math: unit: unknown option; those of math are percent, units, degrees"),
        ({"units": "any"}, "verifier math: units: Input should be 'lenient', 'ignore' or 'match'"),
        ({"tolerance": 2}, "verifier math: tolerance: Input should be less than 1"),
    ],
)
def test_an_option_that_is_unknown_or_out_of_range_is_refused_in_one_line(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SynthError) as refused:
        verify("math", "1", "1", **options)
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)


def test_a_reason_never_holds_the_text_of_an_answer() -> None:
    for answer in ("\\boxed{secretword}", "secretword = 5 secretword", "\\secretword{x}"):
        assert "secretword" not in verify("math", "17x", answer).reason
