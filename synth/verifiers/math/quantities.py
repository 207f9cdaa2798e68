"""One number against another: with its unit, percent or degree sign, and in the digits that were given."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import mpmath

from synth.verifiers.math.evaluation import Point, value
from synth.verifiers.math.exact import exact
from synth.verifiers.math.nodes import Node, Undecided, number
from synth.verifiers.math.settings import Policies
from synth.verifiers.math.tokens import is_known_unit, unit_of
from synth.verifiers.math.values import same_value

FULL_PRECISION_DIGITS: Final = 10
"""A decimal of so many significant digits that are all right was computed, not guessed or rounded for a reader."""
DOUBLE_DIGITS: Final = 15
"""Of what a computer printed: its last digits may be those of rounding errors, 0.30000000000000004."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """node: the bare value. unit: its words, "" for none."""

    node: Node
    unit: str
    percent: bool
    degrees: bool


def quantity(node: Node) -> Quantity:
    """A value taken apart from its unit. Words before a value (`Area 12`) are no unit, and stay in it."""
    if node.head == "percent":
        inner = quantity(node.parts[0])
        return Quantity(inner.node, inner.unit, True, inner.degrees)
    if node.head == "degree":
        inner = quantity(node.parts[0])
        return Quantity(inner.node, inner.unit, inner.percent, True)
    if node.head == "negate":
        inner = quantity(node.parts[0])
        return Quantity(Node("negate", (inner.node,)), inner.unit, inner.percent, inner.degrees)
    if node.head in ("multiply", "divide") and node.parts[0].head not in ("text",):
        split = next((at for at, part in enumerate(node.parts) if at and _is_unit(part)), None)
        if split is not None and all(_is_unit(part) for part in node.parts[split:]):
            rest = node.parts[:split]
            bare = rest[0] if len(rest) == 1 else Node("multiply", rest)
            words = " ".join(_unit_name(part) for part in node.parts[split:])
            inner = quantity(bare)
            joined = f"{inner.unit}/{words}" if node.head == "divide" else f"{inner.unit} {words}".strip()
            degrees = words in ("degree", "degrees")
            return Quantity(inner.node, "" if degrees else joined, inner.percent, inner.degrees or degrees)
    return Quantity(node, "", False, False)


def _is_unit(node: Node) -> bool:
    return (
        node.head == "text"
        or (node.head == "power" and node.parts[0].head == "text" and node.parts[1].head == "number")
        or (node.head == "divide" and all(_is_unit(part) for part in node.parts))
    )


def _unit_name(node: Node) -> str:
    if node.head == "text":
        return unit_of(node.name)
    if node.head == "divide":
        return "/".join(_unit_name(part) for part in node.parts)
    return f"{_unit_name(node.parts[0])}^{node.parts[1].value}"


def same_quantity(gold: Node, answer: Node, policies: Policies) -> tuple[bool | None, str]:
    """(whether they are the same, which rule said so)."""
    first, second = quantity(gold), quantity(answer)
    if policies.degrees == "match" and first.degrees != second.degrees:
        return False, "degrees"
    if not _units_agree(first.unit, second.unit, policies):
        return False, "units"
    return _first_that_holds(
        [
            _same_number(one, other, policies)
            for one, other in _percent_readings(first, second, policies)
        ]
    )  # fmt: skip


def _first_that_holds(results: list[tuple[bool | None, str]]) -> tuple[bool | None, str]:
    for wanted in (True, None, False):
        for result in results:
            if result[0] is wanted:
                return result
    return None, "no_reading"


def _units_agree(gold: str, answer: str, policies: Policies) -> bool:
    if policies.units == "ignore" or gold == answer:
        return True
    if policies.units == "match":
        return False
    return not (gold and answer and is_known_unit(gold) and is_known_unit(answer))


def _percent_readings(gold: Quantity, answer: Quantity, policies: Policies) -> list[tuple[Node, Node]]:
    if gold.percent == answer.percent:
        return [(gold.node, answer.node)]
    hundredths = tuple(
        Node("divide", (side.node, number(100))) if side.percent else side.node for side in (gold, answer)
    )
    by_value = (hundredths[0], hundredths[1])
    by_number = (gold.node, answer.node)
    return {"value": [by_value], "number": [by_number], "either": [by_value, by_number]}[policies.percent]


def _same_number(gold: Node, answer: Node, policies: Policies) -> tuple[bool | None, str]:
    if policies.bases == "optional" and (gold.head == "based") != (answer.head == "based"):
        based, bare = (gold, answer) if gold.head == "based" else (answer, gold)
        return bare.head == "number" and str(bare.value) == based.name, "base"
    if gold.head in ("text", "empty") or answer.head in ("text", "empty"):
        return gold == answer, "words"
    result = same_value(gold, answer)
    if result is not False:
        return result, "value"
    if _agrees_in_digits(gold, answer, policies) or _agrees_in_digits(answer, gold, policies):
        return True, "digits"
    if policies.rounding == "tolerance" and _within(gold, answer, policies.tolerance):
        return True, "tolerance"
    return False, "value"


def _agrees_in_digits(exactly: Node, decimal: Node, policies: Policies) -> bool:
    """Whether a decimal as written is the other value rounded, or cut, to its digits."""
    bare = decimal.parts[0] if decimal.head == "negate" else decimal
    if bare.head == "divide" and exact(bare.parts[1]) == 100:  # a percentage
        return _agrees_in_digits(Node("multiply", (exactly, number(100))), bare.parts[0], policies)
    places, digits = bare.decimals
    enough = digits >= FULL_PRECISION_DIGITS or policies.rounding == "digits_given"
    if bare.head != "number" or not places or not enough or exactly.symbols():
        return False
    with_all, given = _real(exactly), exact(decimal)
    if with_all is None or given is None:
        return False
    with mpmath.workdps(60):
        written = mpmath.mpf(given.numerator) / given.denominator
        off = abs(with_all - written) * mpmath.mpf(10) ** places
        if digits >= DOUBLE_DIGITS and abs(with_all - written) <= abs(with_all) * mpmath.mpf(10) ** -15:
            return True
        return bool(off < 1 if digits >= FULL_PRECISION_DIGITS else off <= 0.5)


def _within(gold: Node, answer: Node, tolerance: float) -> bool:
    first, second = _real(gold), _real(answer)
    if first is None or second is None:
        return False
    return bool(abs(first - second) <= tolerance * abs(first))


def _real(node: Node) -> mpmath.mpf | None:
    fraction: Fraction | None = exact(node)
    try:
        result = value(node if fraction is None else number(fraction), Point(values={}), 60)
    except (Undecided, KeyError):
        return None
    return None if mpmath.im(result) else mpmath.re(result)
