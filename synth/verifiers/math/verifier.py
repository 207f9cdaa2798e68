"""The `math` kind: answers of mathematics against gold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from synth.verdicts import Outcome, Verdict
from synth.verifiers.math.extraction import extract, extract_gold
from synth.verifiers.math.settings import Policies
from synth.verifiers.verifier import read_options

MAX_CHARS: Final = 5_000
"""Of a formula; none in MATH, GSM8K or the answers of math-verify's tests is above 700 (measured)."""

_CROSS: Final = re.compile(r"(?<=\d) +x +(?=\d)")
"""The letter between two numbers and apart from both: a cross, for no formula has it there."""
_PLAIN = re.compile(r"([-+]?)\s*(\d{1,3}(?:,\d{3})+|\d{1,40})(?:\.(\d{0,40}))?")
_PLAIN_FRACTION = re.compile(
    r"([-+]?)\s*(?:\\[dt]?frac\s*\{\s*([-+]?\d{1,40})\s*\}\s*\{\s*([-+]?\d{1,40})\s*\}|(\d{1,40})\s*/\s*(\d{1,40}))"
)
_OPENING = re.compile(r'(?:#{1,6}\s|\$|\\\(|\\\[|\*\*|\\?"|\s)+')
_ENDS: Final = ("\\)", "\\]", "**", '\\"', "$", '"', ".", " ", "\n", "\t")
_CHOICE = re.compile(r"(?:\\text(?:bf)?\s*\{)?\s*(?:\(?([A-J])\)?\}?$|\(([A-J])\)|([A-J])[.:)]\s)")
_BARE_CHOICE = re.compile(r"(?:\\text(?:bf)?\s*\{)?\s*\(?[A-J]\)?\s*\}?")


class Math:
    """Extraction, then a plain comparison, then our own reading; math-verify only where that does not decide.

    Our reading covers a text wholly or not at all, and compares values with many digits at several points, so its yes
    and its no are both taken. Where ours is silent math-verify's no is taken; its yes only where it holds both ways
    round, and we had read both texts and could not evaluate them (an integral), or the two are of the same signs.
    """

    kind = "math"
    version = "2"

    def prepare(self) -> None:
        """Import what takes long, before a check's time runs."""
        import math_verify  # noqa: F401

        import synth.verifiers.math.reading  # noqa: F401

    def verify(self, gold: Any, answer: str, options: Mapping[str, Any]) -> Verdict:
        policies = _policies(tuple(sorted((name, str(value)) for name, value in options.items())), options)
        if isinstance(gold, bool) or not isinstance(gold, str | int | float) or not str(gold).strip():
            return _of(Outcome.ERROR, "gold_is_no_text")
        whole = str(gold).strip()
        if answer.strip() == whole:
            return _of(Outcome.RIGHT, "as_written")
        wanted = extract_gold(whole)
        found, _ = extract(answer, bare_numbers=policies.bare_numbers)
        if max(len(found), len(wanted)) > MAX_CHARS:
            return _of(Outcome.ERROR if len(wanted) > MAX_CHARS else Outcome.WRONG, "too_long")
        wanted, found = _unwrapped(wanted), _unwrapped(found)
        if not found or not wanted:
            return _of(Outcome.WRONG, "no_answer") if wanted else _of(Outcome.ERROR, "no_gold")
        plain = _plain_verdict(wanted, found, policies)
        return plain if plain is not None else _full_verdict(wanted, found, policies)


def _of(outcome: Outcome, reason: str) -> Verdict:
    return Verdict(outcome=outcome, reason=reason)


_CACHE: dict[tuple[tuple[str, str], ...], Policies] = {}


def _policies(key: tuple[tuple[str, str], ...], options: Mapping[str, Any]) -> Policies:
    if key not in _CACHE:
        if len(_CACHE) > 1_000:
            _CACHE.clear()
        _CACHE[key] = read_options(Policies, options, kind="math")
    return _CACHE[key]


def _unwrapped(text: str) -> str:
    """Without the delimiters, bold marks, quotes and stops around it."""
    if opening := _OPENING.match(text):
        text = text[opening.end() :]
    end = len(text)
    while ending := next((ending for ending in _ENDS if text.endswith(ending, 0, end)), ""):
        end -= len(ending)
    return _CROSS.sub(" \\\\times ", text[:end])


def _plain_number(text: str) -> tuple[Fraction, int] | None:
    """(value, significant digits) of a number that anyone reads alike."""
    if match := _PLAIN.fullmatch(text):
        digits = match[2].replace(",", "") + (match[3] or "")
        value = Fraction(int(digits), 10 ** len(match[3] or ""))
        return (-value if match[1] == "-" else value), len(digits.lstrip("0")) if match[3] else 0
    if match := _PLAIN_FRACTION.fullmatch(text):
        above, below = int(match[2] or match[4]), int(match[3] or match[5])
        if below:
            return Fraction(above, below) * (-1 if match[1] == "-" else 1), 0
    return None


def _plain_verdict(gold: str, answer: str, policies: Policies) -> Verdict | None:
    """Of plain numbers and of equal texts, which need no grammar; None of anything else."""
    if gold == answer:
        return _of(Outcome.RIGHT, "as_written")
    first, second = _plain_number(gold), _plain_number(answer)
    if first is None or second is None:
        return None
    if first[0] == second[0]:
        return _of(Outcome.RIGHT, "plain_number")
    commas = "," in gold or "," in answer
    if policies.rounding == "exact" and max(first[1], second[1]) < 10 and not commas:
        return _of(Outcome.WRONG, "plain_number")
    return None


def _full_verdict(gold: str, answer: str, policies: Policies) -> Verdict:
    from synth.verifiers.math.reading import by_words, compared

    if (words := by_words(gold, answer)) is not None:
        return _of(Outcome.RIGHT if words else Outcome.WRONG, "words")
    letters = _letter(gold), _letter(answer)
    if all(letters) and any(_BARE_CHOICE.fullmatch(side) for side in (gold, answer)):
        return _of(Outcome.RIGHT if letters[0] == letters[1] else Outcome.WRONG, "choice")
    own, rule = compared(gold, answer, policies)
    asked = {"never": False, "undecided": own is None, "always": True}[policies.second_opinion]
    if not asked or rule == "too_large":
        return _own_verdict(own, rule)
    from synth.verifiers.math.second_opinion import math_verify_says

    other = math_verify_says(gold, answer)
    if own is not None:
        verdict = _own_verdict(own, rule)
        agree = other is None or other == own
        return verdict if agree else _of(verdict.outcome, f"{rule}; math_verify disagrees")
    if other is None:
        return _own_verdict(None, rule)
    right = other and (rule == "undecided" or _same_signs(gold, answer))
    return _of(Outcome.RIGHT if right else Outcome.WRONG, f"{rule}; math_verify {_SAID[other]}")


_SAID: Final = {True: "holds it", False: "does not"}


def _letter(text: str) -> str:
    """Of a choice: B, (B), \\text{(B)}, B. 12, (B) 12; "" of anything else."""
    match = _CHOICE.match(text)
    return (match[1] or match[2] or match[3]) if match else ""


def _own_verdict(own: bool | None, rule: str) -> Verdict:
    if own is None:
        unread = rule == "answer_unread"
        return _of(Outcome.WRONG if unread else Outcome.ERROR, rule)
    return _of(Outcome.RIGHT if own else Outcome.WRONG, rule)


def _same_signs(gold: str, answer: str) -> bool:
    """Whether both texts have the same digits, letters and operators in them, in whatever order: what we could not
    read as a whole, math-verify may have read in part."""
    return sorted(re.findall(r"[^\s\\{}$,;]", gold)) == sorted(re.findall(r"[^\s\\{}$,;]", answer))
