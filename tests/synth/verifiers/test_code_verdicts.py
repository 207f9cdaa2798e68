"""Programs that are right or wrong, golds that are no good, and how values and outputs are compared."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.errors import SynthError
from synth.verdicts import Outcome
from synth.verifiers import load, verify
from synth.verifiers.code.comparing import same_output, same_value
from synth.verifiers.code.extraction import program_of
from synth.verifiers.code.inside.values import NotPlainError, decode, encode

SQUARES = {"entry_point": "f", "hidden": [{"args": [2], "expected": 4}, {"args": [-3], "expected": 9}]}
SUMS = {"hidden": [{"stdin": "1 2\n", "stdout": "3\n"}, {"stdin": "10 -4\n", "stdout": "6\n"}]}
NODE_SUM = """
const [a, b] = require('fs').readFileSync(0, 'utf8').split(' ').map(Number)
console.log(a + b)
"""
C_SUM = """
#include <stdio.h>
int main(void) { int a, b; scanf("%d %d", &a, &b); printf("%d\\n", a + b); }
"""
COMMANDS = {"c": "gcc", "cpp": "g++", "javascript": "node"}
TWO_TESTS = """
def test_one():
    assert f(2) == 4
def test_two():
    assert f(4) == 16
"""
STACK = """
class Empty(Exception): pass
class Stack:
    def __init__(self): self.values = []
    def push(self, value): self.values.append(value); return self
    def pop(self):
        if not self.values: raise Empty()
        return self.values.pop()
    def __len__(self): return len(self.values)
    def __getitem__(self, at): return self.values[at]
def rotated(values): values.append(values.pop(0))
def numbers():
    yield from range(3)
"""
STACK_TESTS = """
s = Stack()
s.push(1).push(2)
assert len(s) == 2 and s[0] == 1 and s.pop() == 2
try:
    s.pop()
    s.pop()
    raise SystemError
except Empty:
    pass
values = [1, 2, 3]
rotated(values)
assert values == [2, 3, 1]
assert list(numbers()) == [0, 1, 2]
"""


def outcome(answer: str, gold: Any, **options: Any) -> tuple[str, str]:
    verdict = load("code").verify(gold, answer, options)
    return str(verdict.outcome), verdict.reason


@pytest.mark.parametrize(
    ("program", "gold", "reason"),
    [
        ("def f(x): return x * x", SQUARES, "passed"),
        ("def f(x): return x + x", SQUARES, "wrong_value"),
        ("def f(x): return abs(x) * abs(x) if x > 0 else None", SQUARES, "wrong_value"),
        ("def g(x): return x * x", SQUARES, "raised"),
        ("def f(x): return (lambda y: y)", SQUARES, "not_plain"),
        ("def f(x) return x * x", SQUARES, "does_not_load"),
        ("import no_such_module\ndef f(x): return x * x", SQUARES, "does_not_load"),
        ("print('a log line')\ndef f(x):\n    print(x)\n    return x * x", SQUARES, "passed"),
        ("from collections import namedtuple\nP = namedtuple('P', 'x')\nf = lambda x: P(x * x).x", SQUARES, "passed"),
        ("if __name__ == '__main__': print(sum(map(int, input().split())))", SUMS, "passed"),
        ("import sys\nfor line in sys.stdin: print(sum(map(int, line.split())))", SUMS, "passed"),
        ("print(3)", SUMS, "wrong_output"),
        ("print(sum(map(int, input().split())), 0)", SUMS, "wrong_output"),
        ("print(sum(map(int, input().split())))\nraise SystemExit(3)", SUMS, "exit_code"),
        ("print(sum(map(int, input().split())))\ninput()", SUMS, "exit_code"),
    ],
)  # fmt: skip
def test_programs_get_the_verdict_of_what_they_return_or_write(program: str, gold: Any, reason: str) -> None:
    assert outcome(program, gold) == ("right" if reason == "passed" else "wrong", reason)


@pytest.mark.parametrize(
    ("language", "program", "reason"),
    [
        ("c", C_SUM, "passed"),
        ("c", C_SUM.replace("a + b", "a - b"), "wrong_output"),
        ("c", "int main(void) { return 0 }", "does_not_compile"),
        ("c", "int main(void) { *(volatile int *)8 = 0; }", "exit_code"),
        ("cpp", "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b; }", "passed"),
        ("javascript", NODE_SUM, "passed"),
        ("javascript", NODE_SUM.replace("a + b", "b + 'a'"), "wrong_output"),
        ("javascript", "while (true) {}", "cpu_limit"),
    ],
)  # fmt: skip
def test_other_languages_run_too_or_are_an_error_where_not_installed(language: str, program: str, reason: str) -> None:
    found = outcome(program, SUMS, language=language)
    if shutil.which(COMMANDS[language], path="/usr/local/bin:/usr/bin") is None:
        assert found == ("error", "no_interpreter")
    else:
        assert found == ("right" if reason == "passed" else "wrong", reason)


@pytest.mark.parametrize(
    ("program", "code", "reason"),
    [
        ("def f(x): return x * x", "assert f(3) == 9", "passed"),
        ("def f(x): return x * x", TWO_TESTS, "passed"),
        ("def f(x): return x + x", TWO_TESTS, "failed_assertion"),
        ("def f(x): return x * x", "from solution import f as g\nassert g(3) == 9", "passed"),
        ("def f(x): return x / 3", "import math\nassert math.isclose(f(1), 1 / 3)", "passed"),
        ("def f(x):\n    raise ValueError(x)", "try:\n    f(1)\n    assert False\nexcept ValueError: pass", "passed"),
        ("def f(x):\n    raise KeyError(x)", "try:\n    f(1)\n    assert False\nexcept ValueError: pass", "raised"),
        ("def f(x): return {1: (2, {3})}", "assert f(0) == {1: (2, {3})}", "passed"),
        ("def f(x): return {1: [2, {3}]}", "assert f(0) == {1: (2, {3})}", "failed_assertion"),
        ("ANSWER = 42", "assert ANSWER == 42", "passed"),
        (STACK, STACK_TESTS, "passed"),
        (STACK.replace("pop(0)", "pop()"), STACK_TESTS, "failed_assertion"),
        (STACK.replace("raise Empty()", "return None"), STACK_TESTS, "raised"),
    ],
)  # fmt: skip
def test_assertions_ask_the_program_from_another_process(program: str, code: str, reason: str) -> None:
    assert outcome(program, [{"code": code}], part="whole") == ("right" if reason == "passed" else "wrong", reason)


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        (None, "gold_is_no_tests"),
        ("assert f(1) == 1", "gold_is_no_tests"),
        ([], "no_hidden_test"),
        ({"visible": [{"args": [1], "expected": 1}], "hidden": [], "entry_point": "f"}, "no_hidden_test"),
        ({"visible": [{"args": [1], "expected": 1}], "entry_point": "f"}, "no_hidden_test"),
        ([{"args": [1], "expected": 1}], "no_entry_point"),
        ([{"args": [1], "expected": 1, "expect": 2}], "gold_is_no_tests"),
        ([{"code": "assert True"}], "test_calls_nothing"),
        ([{"code": "assert f(1) =="}], "test_does_not_run"),
        ([{"code": "import no_such_module\nassert f(1) == 1"}], "test_does_not_run"),
        ([{"code": "raise SystemExit"}], "test_does_not_run"),
        ([{"code": "import os\nos._exit(0)"}], "test_does_not_run"),
        ([{"code": "assert f(lambda: 1) == 1"}], "test_passes_an_object"),
        ({"entry_point": "f", "hidden": [{"args": [1]}], "checker": "check = 3"}, "checker_failed"),
        ({"entry_point": "f", "hidden": [{"args": [1]}], "checker": "def check(*a): return 1"}, "checker_failed"),
        ({"hidden": [{"stdin": "", "stdout": ""}], "checker": "def check(*a): return x"}, "checker_failed"),
    ],
)  # fmt: skip
def test_a_gold_that_is_no_good_is_an_error_and_never_a_wrong_answer(gold: Any, reason: str) -> None:
    assert outcome("def f(x): return x", gold) == ("error", reason)


def test_calls_need_python_and_are_an_error_for_another_language() -> None:
    assert outcome("int f(int x) { return x * x; }", SQUARES, language="c") == ("error", "test_needs_python")


def test_visible_and_hidden_tests_must_both_pass() -> None:
    gold = {"entry_point": "f", "visible": [{"args": [2], "expected": 4}], "hidden": [{"args": [3], "expected": 9}]}
    assert outcome("def f(x): return x * x", gold)[0] == "right"
    assert outcome("def f(x): return 4", gold)[0] == "wrong"
    assert outcome("def f(x): return 9", gold)[0] == "wrong"


def test_a_checker_accepts_what_is_right_in_several_ways() -> None:
    checker = (
        "def check(given, expected, found):\n    return isinstance(found, list) and sorted(found) == sorted(expected)"
    )
    gold = {"entry_point": "f", "hidden": [{"args": [3], "expected": [0, 1, 2]}], "checker": checker}
    assert outcome("def f(n): return [2, 0, 1][:n]", gold) == ("right", "passed")
    assert outcome("def f(n): return [2, 2, 1]", gold) == ("wrong", "checker_refused")
    text = "def check(given, expected, found):\n    return sum(map(int, found.split())) == int(given)"
    runs = {"hidden": [{"stdin": "7", "stdout": ""}], "checker": text}
    assert outcome("n = int(input())\nprint(n - 1, 1)", runs) == ("right", "passed")
    assert outcome("n = int(input())\nprint(n, 1)", runs) == ("wrong", "checker_refused")


def test_expected_exceptions_and_methods_and_changed_types() -> None:
    raises = {"entry_point": "f", "hidden": [{"args": [0], "raises": "ZeroDivisionError"}]}
    assert outcome("def f(x): return 1 / x", raises) == ("right", "passed")
    assert outcome("def f(x): return None", raises) == ("wrong", "did_not_raise")
    method = {"entry_point": "Solution.double", "hidden": [{"kwargs": {"value": [1]}, "expected": [1, 1]}]}
    assert outcome("class Solution:\n    def double(self, value): return value * 2", method) == ("right", "passed")
    counted = {"entry_point": "f", "hidden": [{"args": ["aab"], "expected": {"a": 2, "b": 1}}]}
    assert outcome("from collections import Counter\ndef f(x): return Counter(x)", counted) == ("right", "passed")


@pytest.mark.parametrize(
    ("found", "gold", "loosely", "strictly"),
    [
        (4, 4, True, True),
        (4.0, 4, True, False),
        (True, 1, True, False),
        (1, True, True, False),
        ("4", 4, False, False),
        (4, "4", False, False),
        (None, None, True, True),
        (0, None, False, False),
        (False, None, False, False),
        (0.3, 0.30000000000000004, True, True),
        (1 / 3, 0.3333333, True, True),
        (1 / 3, 0.333, False, False),
        (1e6 + 0.9, 1e6 + 0.1, True, True),
        (1e6 + 2.1, 1e6 + 0.1, False, False),
        (3, 3.0, True, False),
        (10**400, 3.0, False, False),
        (float("nan"), 0.0, False, False),
        (float("inf"), 1e308, False, False),
        ((1, 2), [1, 2], True, False),
        ([1, 2], [2, 1], False, False),
        ([1, 2, 3], [1, 2], False, False),
        ({1, 2}, [2, 1], True, False),
        ({1, 2}, [2, 1, 1], False, False),
        ({0.1 + 0.2}, [0.3], True, False),
        ({1: "a"}, {"1": "a"}, True, True),
        ({"1": "a"}, {"1": "a"}, True, True),
        ({1: "a", "1": "a"}, {"1": "a"}, False, False),
        ({None: 1, True: 2}, {"null": 1, "true": 2}, True, True),
        ({"a": 1}, {"a": 2}, False, False),
        ([], {}, False, False),
        ({}, [], False, False),
        ("", [], False, False),
        (b"a", "a", False, False),
        (complex(4, 0), 4, True, False),
    ],
)
def test_values_are_equal_as_python_has_it_or_strictly_by_type(
    found: Any, gold: Any, loosely: bool, strictly: bool
) -> None:
    assert same_value(found, gold, tolerance=1e-6, strict=False) is loosely
    assert same_value(found, gold, tolerance=1e-6, strict=True) is strictly


@pytest.mark.parametrize(
    ("found", "gold", "tokens", "lines", "exact"),
    [
        ("3\n", "3\n", True, True, True),
        ("3", "3\n", True, True, False),
        ("1  2\n3 ", "1 2\n3", True, False, False),
        ("1 2 \n\n", "1 2\n", True, True, False),
        ("0.3333333", "0.333333333", True, False, False),
        ("0.334", "0.333333333", False, False, False),
        ("1e-1", "0.1", True, False, False),
        ("3.0", "3", False, False, False),
        ("nan", "0.5", False, False, False),
        ("inf", "1e999", False, False, False),
        ("1_0.0", "10.0", False, False, False),
        ("YES", "yes", False, False, False),
        ("1 2 3", "1 2", False, False, False),
        ("", "0", False, False, False),
    ],
)
def test_outputs_are_compared_by_tokens_lines_or_exactly(
    found: str, gold: str, tokens: bool, lines: bool, exact: bool
) -> None:
    for how, same in (("tokens", tokens), ("lines", lines), ("exact", exact)):
        assert same_output(found, gold, how=how, tolerance=1e-6) is same, how


@pytest.mark.parametrize(
    ("answer", "program"),
    [
        ("x = 1", "x = 1"),
        ("Here:\n```python\nx = 1\n```\nDone.", "x = 1\n"),
        ("```python\nx = 1\n```\nBetter:\n```py\nx = 2\n```", "x = 2\n"),
        ("```python\nx = 1\n```\nIt prints\n```\n1\n```", "x = 1\n"),
        ("```\nx = 1\n```", "x = 1\n"),
        ("```bash\nls\n```", None),
        ("~~~python\nx = '''```'''\n~~~", "x = '''```'''\n"),
        ("````python\n```\n````", "```\n"),
        ("```python\nx = 1", "x = 1"),
        ("```Python3\nx = 1\n```", "x = 1\n"),
        ("", None),
        (" \n", None),
        ("```python\n\n```", None),
        ("a" * 1_000_001, None),
    ],
)
def test_the_program_is_the_last_block_of_its_language(answer: str, program: str | None) -> None:
    assert program_of(answer, "python", "fenced") == program


def test_options_that_are_unknown_or_out_of_range_are_refused_in_a_line() -> None:
    with pytest.raises(SynthError, match=r"^verifier code: colour: unknown option; those of code are language, "):
        verify("code", SQUARES, "x", colour="red")
    with pytest.raises(SynthError, match=r"^verifier code: limits\.processes: Input should be greater than or equal"):
        verify("code", SQUARES, "x", limits={"processes": 0})
    with pytest.raises(SynthError, match=r"^verifier code: language: "):
        verify("code", SQUARES, "x", language="cobol")


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.integers(-(10**400), 10**400),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["int", "float", "complex", "bytes", "tuple", "set", "dict", "object"]) | st.text(), inner
    ),
)  # fmt: skip


@given(PLAIN)
def test_plain_values_cross_the_wall_unchanged(value: Any) -> None:
    assert repr(decode(encode(value))) == repr(value)


@given(JSON)
@settings(max_examples=300)
def test_whatever_claims_to_be_a_value_is_one_or_is_refused(told: Any) -> None:
    try:
        value = decode(told)
    except NotPlainError:
        return
    same_value(value, [1, 2.5, {"a": None}], tolerance=1e-6, strict=False)
    encode(value)


@given(st.text(max_size=200))
@settings(max_examples=10, deadline=None)
def test_any_text_gets_a_verdict(answer: str) -> None:
    assert load("code").verify(SQUARES, answer, {}).outcome == Outcome.WRONG
