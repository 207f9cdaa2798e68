"""What a tree is worth: exactly as a fraction where it has one, else with many digits, always within bounds.

Two values are the same where they agree at several points, at each in two precisions: what is nearly equal stays apart
when digits are added, what is equal does not. No algebra is done, so nothing can run away in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import mpmath
import xxhash

from synth.verifiers.math.nodes import Node, Undecided

DIGITS: Final = (50, 100)
"""The two precisions; equal values differ by less than 10**-30 of their size in the first, and by less again by 30
digits in the second."""
MAX_BITS: Final = 20_000
"""Of an exact fraction; beyond it many digits are compared instead."""
MAX_TERMS: Final = 2_000
"""Of a sum or product that is added up term by term: some 0.1 s."""
POINTS: Final = 12
"""That are tried where there are free symbols; at least ENOUGH of them must be in both domains."""
ENOUGH: Final = 3


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


_ADDED: Final = mpmath.mpf(10) ** 30
"""By how much a difference of equal values falls between the two precisions, with 20 digits to spare."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """Where a tree is evaluated. ten: whether a log without base is of base ten."""

    values: Mapping[str, Fraction]
    ten: bool = False


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


def value(node: Node, point: Point, digits: int) -> Any:
    """The number at a point, an mpf or mpc of so many digits. Raises Undecided."""
    with mpmath.workdps(digits):
        try:
            result = _Evaluation(point).of(node)
        except (ZeroDivisionError, OverflowError, ValueError, TypeError, MemoryError, mpmath.libmp.NoConvergence):
            raise Undecided("not defined") from None
        if mpmath.isnan(result):
            raise Undecided("not defined")
        return +result


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
                return None  # more digits before the point than can be compared
            nearer, grown = _difference(left, right, place, digits, may_be_complex)
            return bool(nearer < 1e-9)
        return bool(nearer <= grown / _ADDED**2)
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


class _Evaluation:
    """One evaluation at one point, under mpmath's precision of the moment."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.bound: dict[str, Any] = {}

    def of(self, node: Node) -> Any:
        method = getattr(self, f"_{node.head}", None)
        if method is None:
            raise Undecided("no number")
        return method(node)

    def _number(self, node: Node) -> Any:
        fraction = node.value or Fraction(0)
        return mpmath.mpf(fraction.numerator) / fraction.denominator

    _based = _number

    def _symbol(self, node: Node) -> Any:
        if node.name in self.bound:
            return self.bound[node.name]
        if node.name in _CONSTANTS:
            return _CONSTANTS[node.name]()
        fraction = self.point.values[node.name]
        return mpmath.mpf(fraction.numerator) / fraction.denominator

    _text = _symbol

    def _apply(self, node: Node) -> Any:
        """An unknown function: a number of its own at each value of its arguments."""
        arguments = [mpmath.nstr(self.of(part), 25) for part in node.parts]
        return mpmath.mpf(xxhash.xxh3_64_intdigest(f"{node.name}{arguments}".encode()) % 9973 + 1) / 3671

    def _add(self, node: Node) -> Any:
        values = [self.of(part) for part in node.parts]
        largest = max(abs(term) for term in values)
        lost = largest * mpmath.mpf(10) ** (20 - mpmath.mp.dps)
        for part, term in zip(node.parts, values, strict=True):
            if 0 < abs(term) < lost and exact(part) is not None:
                raise Undecided("terms too far apart")
        return mpmath.fsum(values)

    def _negate(self, node: Node) -> Any:
        return -self.of(node.parts[0])

    def _multiply(self, node: Node) -> Any:
        result = mpmath.mpf(1)
        for part in node.parts:
            result = result * self.of(part)
        return result

    def _divide(self, node: Node) -> Any:
        return self.of(node.parts[0]) / self.of(node.parts[1])

    def _percent(self, node: Node) -> Any:
        return self.of(node.parts[0]) / 100

    def _degree(self, node: Node) -> Any:
        return self.of(node.parts[0]) * mpmath.pi / 180

    def _power(self, node: Node) -> Any:
        base, exponent = self.of(node.parts[0]), self.of(node.parts[1])
        if mpmath.isinf(base) or mpmath.isinf(exponent):
            raise Undecided("infinite")
        if base != 0 and abs(exponent) * (abs(mpmath.log(abs(base))) + 1) > mpmath.mpf(10) ** 15:
            raise Undecided("too large")
        return mpmath.power(base, exponent)

    def _root(self, node: Node) -> Any:
        radicand, index = self.of(node.parts[0]), self.of(node.parts[1])
        odd = index == int(mpmath.re(index)) and int(mpmath.re(index)) % 2 == 1
        if odd and mpmath.im(radicand) == 0 and mpmath.re(radicand) < 0:
            return -mpmath.power(-radicand, 1 / index)
        return mpmath.sqrt(radicand) if index == 2 else mpmath.power(radicand, 1 / index)

    def _factorial(self, node: Node) -> Any:
        argument = self.of(node.parts[0])
        if abs(argument) > 1e12:
            raise Undecided("too large")
        return mpmath.factorial(argument)

    def _binomial(self, node: Node) -> Any:
        above, below = (self.of(part) for part in node.parts)
        if abs(above) > 1e12 or abs(below) > 1e12:
            raise Undecided("too large")
        return mpmath.binomial(above, below)

    def _absolute(self, node: Node) -> Any:
        return abs(self.of(node.parts[0]))

    def _ratio(self, node: Node) -> Any:
        if len(node.parts) != 2:
            raise Undecided("no number")
        return self.of(node.parts[0]) / self.of(node.parts[1])

    def _call(self, node: Node) -> Any:
        if node.name == "det":
            raise Undecided("a determinant")
        values = [self.of(part) for part in node.parts]
        if any(abs(argument) > mpmath.mpf(10) ** 12 for argument in values) and node.name not in ("ln", "log", "log10"):
            raise Undecided("too large")
        if node.name in ("max", "min") and all(mpmath.im(argument) == 0 for argument in values):
            return (max if node.name == "max" else min)(mpmath.re(argument) for argument in values)
        if node.name in ("gcd", "lcm"):
            whole = [int(mpmath.nint(mpmath.re(argument))) for argument in values]
            if any(argument != known for argument, known in zip(values, whole, strict=True)):
                raise Undecided("no whole numbers")
            return mpmath.mpf((math.gcd if node.name == "gcd" else math.lcm)(*whole))
        if node.name in ("ln", "log", "log10"):
            return self._logarithm(node.name, values)
        function = _FUNCTIONS.get(node.name)
        if function is None or len(values) != 1:
            raise Undecided("no number")
        return function(values[0])

    def _logarithm(self, name: str, values: list[Any]) -> Any:
        result = mpmath.log(values[0])
        if len(values) == 2:
            return result / mpmath.log(values[1])
        return result / mpmath.log(10) if name == "log10" or (name == "log" and self.point.ten) else result

    def _big(self, node: Node) -> Any:
        """A sum or product of a bounded number of terms; an integral is not evaluated."""
        low, high, body = node.parts
        if node.name == "int" or low.head != "relation" or low.name != "=" or low.parts[0].head != "symbol":
            raise Undecided("no finite sum")
        first, last = self.of(low.parts[1]), self.of(high)
        if mpmath.isinf(last) or mpmath.isinf(first):
            raise Undecided("no finite sum")
        count = mpmath.re(last - first)
        if first != mpmath.nint(mpmath.re(first)) or count != mpmath.nint(count) or count > MAX_TERMS or self.bound:
            raise Undecided("no finite sum")
        name = low.parts[0].name
        indexed = re.compile(rf"_.*\b{re.escape(name)}\b")
        if any(below.head == "symbol" and indexed.search(below.name) for below in body.walk()):
            raise Undecided("terms of a sequence")
        result = mpmath.mpf(0 if node.name == "sum" else 1)
        try:
            for at in range(int(count) + 1):
                self.bound[name] = first + at
                term = self.of(body)
                result = result + term if node.name == "sum" else result * term
        finally:
            self.bound.clear()
        return result


_CONSTANTS: Final[dict[str, Any]] = {
    "e": lambda: +mpmath.e,
    "pi": lambda: +mpmath.pi,
    "i": lambda: mpmath.mpc(0, 1),
    "infinity": lambda: mpmath.inf,
}
_FUNCTIONS: Final[dict[str, Any]] = {
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "cot": mpmath.cot,
    "sec": mpmath.sec,
    "csc": mpmath.csc,
    "arcsin": mpmath.asin,
    "arccos": mpmath.acos,
    "arctan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "floor": mpmath.floor,
    "ceiling": mpmath.ceil,
}
