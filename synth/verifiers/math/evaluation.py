"""The value of a tree at a point, in as many digits as are asked for, within bounds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import mpmath
import xxhash

from synth.verifiers.math.exact import exact
from synth.verifiers.math.nodes import Beyond, Node, Undecided

MAX_TERMS: Final = 2_000
"""Of a sum or product that is added up term by term: some 0.1 s."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """Where a tree is evaluated. ten: whether a log without base is of base ten."""

    values: Mapping[str, Fraction]
    ten: bool = False


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
        """An unknown function: at each value of its arguments, and at each point, a number of its own."""
        arguments = [mpmath.nstr(self.of(part), 25) for part in node.parts]
        drawn = xxhash.xxh3_64_intdigest(f"{node.name}{arguments}".encode()) % 9973 + 1
        size = self.point.values[f"{node.name}()"]
        return mpmath.mpf(drawn * size.numerator) / (3671 * size.denominator)

    def _add(self, node: Node) -> Any:
        values = [self.of(part) for part in node.parts]
        largest = max(abs(term) for term in values)
        lost = largest * mpmath.mpf(10) ** (20 - mpmath.mp.dps)
        for part, term in zip(node.parts, values, strict=True):
            if 0 < abs(term) < lost and exact(part) is not None:
                raise Beyond("terms too far apart")
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
            raise Beyond("too large")
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
            raise Beyond("too large")
        return mpmath.factorial(argument)

    def _binomial(self, node: Node) -> Any:
        above, below = (self.of(part) for part in node.parts)
        if abs(above) > 1e12 or abs(below) > 1e12:
            raise Beyond("too large")
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
            raise Beyond("too large")
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
