"""What holds of any text and any number."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.verdicts import Outcome
from synth.verifiers import verify

PIECES = st.sampled_from([
    "1", "23", "0.5", "x", "y", "e", "\\pi", "+", "-", "*", "/", "^", "_", "(", ")", "[", "]", "{", "}", "|", ",",
    ";", "\\frac", "\\sqrt", "\\pm", "=", "<", "\\le", "\\cup", "\\{", "\\}", "\\text{ cm}", "and", "!", "%",
    "^\\circ", " ", "\\infty", "\\sin", "\\log", "\\begin{pmatrix}", "\\end{pmatrix}", "&", "\\\\", ":", "\\sum",
    "\\boxed{", "$", ".",
])  # fmt: skip
FORMULAS = st.lists(PIECES, max_size=14).map("".join)
NUMBERS = st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=10**4)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=60), FORMULAS), st.one_of(st.text(max_size=60), FORMULAS))
def test_any_two_texts_get_a_verdict(gold: str, answer: str) -> None:
    assert verify("math", gold, answer, second_opinion="never").outcome in (
        Outcome.RIGHT, Outcome.WRONG, Outcome.ERROR)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.text(min_size=1, max_size=60), FORMULAS))
def test_a_gold_against_itself_is_right(text: str) -> None:
    verdict = verify("math", text, text, second_opinion="never")
    assert verdict.outcome is Outcome.RIGHT or not text.strip()


@settings(max_examples=100, deadline=None)
@given(NUMBERS)
def test_a_number_is_right_in_each_form(number: Fraction) -> None:
    above, below = number.numerator, number.denominator
    forms = [f"{above}/{below}", f"\\frac{{{above}}}{{{below}}}", f"\\boxed{{\\frac{{{3 * above}}}{{{3 * below}}}}}",
             f"The answer is ${above}/{below}$.", f"x = \\dfrac{{{above}}}{{{below}}}"]  # fmt: skip
    for form in forms:
        assert verify("math", forms[0], form).outcome is Outcome.RIGHT


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**15), st.integers(0, 14), st.integers(1, 9))
def test_one_changed_digit_is_wrong(number: int, place: int, by: int) -> None:
    digits = list(str(number))
    at = place % len(digits)
    digits[at] = str((int(digits[at]) + by) % 10)
    changed = int("".join(digits))
    for gold, answer in (
        (f"{number}", f"{changed}"),
        (f"{number}x+1", f"{changed}x+1"),
        (f"({number}, 2)", f"({changed}, 2)"),
        (f"\\sqrt{{{number}}}", f"\\sqrt{{{changed}}}"),
        (f"\\frac{{{number}}}{{7}}", f"\\frac{{{changed}}}{{7}}"),
        (f"[{number}, \\infty)", f"[{changed}, \\infty)"),
        (f"{number} \\text{{ cm}}", f"{changed} \\text{{ cm}}"),
    ):
        assert verify("math", gold, answer).outcome is Outcome.WRONG


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-99, 99), min_size=2, max_size=5, unique=True))
def test_a_list_is_right_in_any_order_and_a_tuple_in_its_own_alone(numbers: list[int]) -> None:
    turned = numbers[1:] + numbers[:1]
    gold, answer = (", ".join(map(str, items)) for items in (numbers, turned))
    assert verify("math", gold, answer).outcome is Outcome.RIGHT
    assert verify("math", gold, answer, order="given").outcome is Outcome.WRONG
    assert verify("math", f"({gold})", f"({answer})").outcome is Outcome.WRONG
    assert verify("math", f"\\{{{gold}\\}}", f"\\{{{answer}\\}}").outcome is Outcome.RIGHT


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=4), st.integers(-9, 9))
def test_a_polynomial_is_right_in_factors_and_wrong_with_another_root(roots: list[int], shift: int) -> None:
    coefficients = [1]
    for root in roots:
        coefficients = [
            (coefficients[at] if at < len(coefficients) else 0) - root * (coefficients[at - 1] if at else 0)
            for at in range(len(coefficients) + 1)
        ]
    degree = len(coefficients) - 1
    expanded = "+".join(f"({value})x^{{{degree - at}}}" for at, value in enumerate(coefficients))
    factors = "".join(f"(x-({root}))" for root in roots)
    assert verify("math", expanded, factors).outcome is Outcome.RIGHT
    if shift:
        assert verify("math", expanded, factors + f"+{abs(shift)}").outcome is Outcome.WRONG


@pytest.mark.parametrize(
    "text",
    ["\\[" * 10_000, "\\boxed{" * 3_000, "answer" + " " * 20_000, "(" * 5_000, "2^" * 2_000 + "2", "\\frac" * 900,
     "|" * 1_500, "1" * 20_000, "x!" * 1_000, "\\pm1" * 300, "<answer>" * 2_500, "\\text{" * 3_000, "$" * 20_000,
     "10^{10^{10^{10^{10}}}}", "(1+\\frac{1}{10^9})^{10^9}", "123456789^{123456789}", "\\lfloor 10^{10^{10}}\\rfloor",
     "\\binom{10^9}{5\\cdot 10^8}", "\\sum_{i=1}^{1000}\\sum_{j=1}^{1000}1", "\\tan(10^{40})", "1e99999999"],
    ids=lambda text: text[:16],
)  # fmt: skip
def test_a_hostile_text_is_read_at_once(text: str) -> None:
    began = time.process_time()
    for gold in ("7", "x+1", "(1,2)"):
        assert verify("math", gold, text, second_opinion="never").outcome is not Outcome.RIGHT
        verify("math", text, gold, second_opinion="never")
    assert time.process_time() - began < 2
