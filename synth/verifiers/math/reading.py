"""Two texts compared in each reading that their commas allow."""

from __future__ import annotations

import re
from typing import Final

from synth.verifiers.math.cleaning import clean, squeezed
from synth.verifiers.math.comparing import same
from synth.verifiers.math.matching import Result
from synth.verifiers.math.nodes import Node, Undecided, Unread
from synth.verifiers.math.parser import read
from synth.verifiers.math.settings import Policies
from synth.verifiers.math.tokens import Commas

_COMMA_IN_DIGITS = re.compile(r"\d,\d")
_ONE_DECIMAL_COMMA = re.compile(r"(?<![\d,.])(?:\d{1,3}(?:\.\d{3})+|\d+),(\d+)(?![\d,])")
_GROUPED = re.compile(r"(?<![\d,.])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
_PAIR_OF_NUMBERS = re.compile(r"[(\[\x0e]\s*-?\d{1,3},\d{3}\s*[)\]\x0f]")
_IN_BRACKETS = re.compile(r"[(\[\x0e]")
_WORDS = re.compile(r"(?:(?:an|a|the|An|A|The) )?([A-Za-z][a-z]{2,}|[A-Za-z]{2,}(?:[ '-]+[A-Za-z]+)+)")
_CLOCK = re.compile(r"0?(\d{1,2}):(\d\d) ?([aApP])\.? ?[mM]\.?")
_LIST: Final = Commas(thousands=False, decimal=False)
_THOUSANDS: Final = Commas(thousands=True, decimal=False)
_DECIMAL: Final = Commas(thousands=False, decimal=True)


def by_words(gold: str, answer: str) -> bool | None:
    """Whether two texts are the same words; None where they are no words, or no more than names of symbols."""
    first, second = squeezed(gold), squeezed(answer)
    if first and first == second:
        return True
    clocks = [_CLOCK.fullmatch(side) for side in (first, second)]
    if clocks[0] and clocks[1]:
        return [part.lower() for part in clocks[0].groups()] == [part.lower() for part in clocks[1].groups()]
    words = [_WORDS.fullmatch(side) for side in (first, second)]
    if words[0] and words[1] and words[0][1].casefold() == words[1][1].casefold():
        return True
    return None


def readings(text: str, policies: Policies, *, gold: bool) -> list[Commas]:
    """The ways to read the commas between digits of a cleaned text, the likeliest first. A gold of `0,1` is two
    numbers, an answer may be one."""
    if not _COMMA_IN_DIGITS.search(text):
        return [_LIST]
    out = []
    if _GROUPED.search(text) and not _PAIR_OF_NUMBERS.fullmatch(text):
        out.append(_THOUSANDS)
    out.append(_LIST)
    decimals = _ONE_DECIMAL_COMMA.findall(text)
    if not decimals or _IN_BRACKETS.search(text):
        return out
    if policies.decimal_comma == "always":
        out.append(_DECIMAL)
    elif policies.decimal_comma == "auto" and len(decimals) == 1 and not _GROUPED.search(text):
        likely = len(decimals[0]) >= 2 or (not gold and re.search(r"(?<!\d)0,\d", text))
        out.extend([_DECIMAL] if likely else [])
    return out


def trees(text: str, policies: Policies, *, gold: bool) -> list[Node]:
    """Each reading of a text that is a formula as a whole."""
    cleaned = clean(text)
    found = []
    for commas in readings(cleaned, policies, gold=gold):
        try:
            tree = read(cleaned, commas)
            if tree not in found:
                found.append(tree)
        except (Unread, RecursionError):
            continue
    return found


def compared(gold: str, answer: str, policies: Policies) -> Result:
    """Whether any reading of the answer is any of the gold; None, with which side was not read, where there is none."""
    golds = trees(gold, policies, gold=True)
    if not golds:
        return None, "gold_unread"
    answers = trees(answer, policies, gold=False)
    if not answers:
        return None, "answer_unread"
    results: list[Result] = []
    for first in golds:
        for second in answers:
            try:
                result = same(first, second, policies)
            except (RecursionError, Undecided):
                result = None, "undecided"
            if result[0]:
                return result
            results.append(result)
    silent = [rule for decided, rule in results if decided is None]
    if not silent:
        return results[0]
    return None, "too_large" if "too_large" in silent else "undecided"
