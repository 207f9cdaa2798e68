"""Whether two trees have the same value.

Two values are the same where they agree at several points, at each in two precisions: what is nearly equal stays apart
when digits are added, what is equal does not. No algebra is done, so nothing can run away in it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import mpmath
import xxhash

from synth.verifiers.math.evaluation import Point, value
from synth.verifiers.math.exact import exact
from synth.verifiers.math.nodes import Beyond, Node, Undecided

DIGITS: Final = (50, 100)
"""The two precisions; equal values differ by less than 10**-30 of their size in the first, and by less again by 30
digits in the second."""
POINTS: Final = 12
"""That are tried where there are free symbols; at least ENOUGH of them must be in both domains."""
ENOUGH: Final = 3
_ADDED: Final = mpmath.mpf(10) ** 30
"""By how much a difference of equal values falls between the two precisions, with 20 digits to spare."""


def points(symbols: frozenset[str]) -> list[Point]:
    """Where to compare trees of these symbols: fixed fractions drawn of the symbols' names, of both signs, then whole
    numbers for what is only defined at those."""
    if not symbols:
        return [Point(values={})]
    places = []
    for at in range(POINTS):
        drawn = {}
        for name in symbols:
            bits = xxhash.xxh3_64_intdigest(f"{name}/{at}".encode())
            size = Fraction(bits % 9973 + 1, 3671)
            drawn[name] = -size if (at % 3 == 2 and bits >> 40 & 1) or at in (5, 7) else size
        places.append(Point(values=drawn))
    for at in range(4):
        places.append(
            Point(values={name: Fraction(2 + at + xxhash.xxh3_64_intdigest(name.encode()) % 5) for name in symbols})
        )
    return places


def same_value(left: Node, right: Node) -> bool | None:
    """Whether two trees are the same number or the same function of their symbols; None where it cannot be said."""
    if left == right:
        return True
    first, second = exact(left), exact(right)
    if first is not None and second is not None:
        return first == second
    left, right = _without_common_terms(left, right)
    symbols = left.symbols() | right.symbols()
    imaginary = any(node.name == "i" and node.head == "symbol" for side in (left, right) for node in side.walk())
    agreed = 0
    for place in points(symbols):
        answer = _same_at(left, right, place, may_be_complex=imaginary or not symbols)
        if answer is False:
            return _decimal_logarithm(left, right, symbols)
        agreed += answer is True
    return True if agreed >= (ENOUGH if symbols else 1) else None


def _decimal_logarithm(left: Node, right: Node, symbols: frozenset[str]) -> bool:
    """Whether they agree where a log without a base is of base ten, as some write it."""
    if not any(node.head == "call" and node.name == "log" and len(node.parts) == 1
               for side in (left, right) for node in side.walk()):  # fmt: skip
        return False
    agreed = 0
    for place in points(symbols):
        answer = _same_at(left, right, Point(values=place.values, ten=True), may_be_complex=not symbols)
        if answer is False:
            return False
        agreed += answer is True
    return agreed >= (ENOUGH if symbols else 1)


def _same_at(left: Node, right: Node, place: Point, *, may_be_complex: bool) -> bool | None:
    """Whether two trees have one value at a point; None outside of either's domain, or where it cannot be said."""
    try:
        near, size = _difference(left, right, place, DIGITS[0], may_be_complex)
        nearer, grown = _difference(left, right, place, DIGITS[1], may_be_complex)
        if mpmath.isinf(size):
            return bool(near == 0)
        if grown > size * _ADDED:
            return None  # a pole: the more digits, the larger
        if near > size / _ADDED:
            return bool(nearer < near / _ADDED)  # two that vanish as digits are added are both nothing
        if size > mpmath.mpf(10) ** 40 and not place.values:
            digits = int(mpmath.log10(size)) + 50 if size < mpmath.mpf(10) ** 3_000 else 0
            if not digits:
                raise Beyond("more digits before the point than can be compared")
            nearer, grown = _difference(left, right, place, digits, may_be_complex)
            return bool(nearer < 1e-9)
        return bool(nearer <= grown / _ADDED**2)
    except Beyond:
        if place.values:
            return None  # another point may be nearer
        raise
    except Undecided:
        return None


def _difference(left: Node, right: Node, place: Point, digits: int, may_be_complex: bool) -> tuple[Any, Any]:
    """(|left - right|, the larger of the two) at a point in so many digits."""
    first, second = value(left, place, digits), value(right, place, digits)
    if mpmath.isinf(first) or mpmath.isinf(second):
        return (mpmath.mpf(0) if first == second else mpmath.inf), mpmath.inf
    with mpmath.workdps(digits):
        if not may_be_complex and (abs(mpmath.im(first)) > 1e-20 or abs(mpmath.im(second)) > 1e-20):
            raise Undecided("not real")
        return abs(first - second), max(abs(first), abs(second))


def _without_common_terms(left: Node, right: Node) -> tuple[Node, Node]:
    """Both without the terms that stand in each: 9^{9^9} + 1 against 9^{9^9} is 1 against 0, however large the rest."""
    first, second = _terms(left), _terms(right)
    for term in list(first):
        if term in second:
            first.remove(term)
            second.remove(term)
    zero = Node("number", value=Fraction(0))
    return (
        Node("add", tuple(first)) if first else zero,
        Node("add", tuple(second)) if second else zero,
    )


def _terms(node: Node) -> list[Node]:
    return [term for part in node.parts for term in _terms(part)] if node.head == "add" else [node]
