"""The exact value of a tree that is a fraction."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from synth.verifiers.math.nodes import Node

MAX_BITS: Final = 20_000
"""Of an exact fraction; beyond it many digits are compared instead."""


def exact(node: Node) -> Fraction | None:
    """The rational value of a tree of numbers and + - * / and whole powers; None for any other."""
    try:
        return _exact(node)
    except (ZeroDivisionError, OverflowError):
        return None


def _exact(node: Node) -> Fraction | None:
    if node.head in ("number", "based"):
        return node.value
    if node.head not in ("add", "multiply", "divide", "power", "negate"):
        return None
    parts = [_exact(part) for part in node.parts]
    values = [part for part in parts if part is not None]
    if len(values) < len(parts):
        return None
    if node.head == "negate":
        return -values[0]
    if node.head == "add":
        result = sum(values, Fraction(0))
    elif node.head == "multiply":
        result = math.prod(values, start=Fraction(1))
    elif node.head == "divide":
        result = values[0] / values[1]
    else:
        base, exponent = values
        if exponent.denominator != 1 or abs(exponent) * (_bits(base) + 1) > MAX_BITS:
            return None
        result = base ** int(exponent)
    return result if _bits(result) <= 4 * MAX_BITS else None


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())
