"""Sets of real numbers as intervals: of unions, of intervals, of inequalities in one unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import mpmath

from synth.verifiers.math.evaluation import Point, value
from synth.verifiers.math.nodes import Node, Undecided, number

_DIGITS: Final = 50
_NOWHERE: Final = Point(values={})


@dataclass(frozen=True, slots=True)
class Interval:
    """From low to high; closed where the end itself belongs to it. A single number is closed on both ends."""

    low: Any
    low_closed: bool
    high: Any
    high_closed: bool


RealSet = tuple[Interval, ...]
EVERYTHING: Final[RealSet] = (Interval(-mpmath.inf, False, mpmath.inf, False),)


def _close(left: Any, right: Any) -> bool:
    if mpmath.isinf(left) or mpmath.isinf(right):
        return bool(left == right)
    with mpmath.workdps(_DIGITS):
        return bool(abs(left - right) <= mpmath.mpf(10) ** -35 * max(abs(left), abs(right), 1))


def _end(node: Node) -> Any:
    if node.symbols():
        raise Undecided("an end that is no number")
    result = value(node, _NOWHERE, _DIGITS)
    if abs(mpmath.im(result)) > 1e-30:
        raise Undecided("an end that is not real")
    return mpmath.re(result)


def merged(intervals: list[Interval]) -> RealSet:
    """In order, with what touches or overlaps put together and what is empty left out."""
    real = sorted((part for part in intervals if not _is_empty(part)), key=lambda part: (part.low, not part.low_closed))
    out: list[Interval] = []
    for part in real:
        if not out or not _touch(out[-1], part):
            out.append(part)
            continue
        last = out[-1]
        if _close(part.high, last.high):
            high, closed = last.high, last.high_closed or part.high_closed
        else:
            high, closed = max((last.high, last.high_closed), (part.high, part.high_closed), key=lambda end: end[0])
        low_closed = last.low_closed or (_close(part.low, last.low) and part.low_closed)
        out[-1] = Interval(last.low, low_closed, high, closed)
    return tuple(out)


def _is_empty(part: Interval) -> bool:
    if _close(part.low, part.high):
        return not (part.low_closed and part.high_closed)
    return bool(part.low > part.high)


def _touch(before: Interval, after: Interval) -> bool:
    """Whether two intervals, the first of the lower start, have no gap between them."""
    if _close(after.low, before.high):
        return after.low_closed or before.high_closed
    return bool(after.low < before.high)


def complement(of: RealSet) -> RealSet:
    out, low, closed = [], -mpmath.inf, False
    for part in of:
        out.append(Interval(low, closed, part.low, not part.low_closed))
        low, closed = part.high, not part.high_closed
    out.append(Interval(low, closed, mpmath.inf, False))
    return merged([part for part in out if not (mpmath.isinf(part.low) and part.low == part.high)])


def intersection(left: RealSet, right: RealSet) -> RealSet:
    return complement(merged([*complement(left), *complement(right)]))


def same_set(left: RealSet, right: RealSet) -> bool:
    return len(left) == len(right) and all(
        _close(one.low, other.low)
        and _close(one.high, other.high)
        and one.low_closed == other.low_closed
        and one.high_closed == other.high_closed
        for one, other in zip(left, right, strict=True)
    )


def real_set(node: Node) -> RealSet:
    """The set that a tree is. Raises Undecided for what is none, or is not of numbers alone."""
    if node.head == "reals":
        return EVERYTHING
    if node.head == "empty":
        return ()
    if node.head == "tuple" and len(node.parts) == 2:
        low, high = (_end(part) for part in node.parts)
        closed = node.name[0] == "[" and not mpmath.isinf(low), node.name[1] == "]" and not mpmath.isinf(high)
        return merged([Interval(low, closed[0], high, closed[1])])
    if node.head == "set":
        return merged([Interval(end, True, end, True) for end in map(_end, node.parts)])
    if node.head in ("union", "intersection", "difference"):
        left, right = (real_set(part) for part in node.parts)
        if node.head == "union":
            return merged([*left, *right])
        return intersection(left, complement(right) if node.head == "difference" else right)
    if node.head == "list":
        return _of_several(node)
    if node.head == "relation":
        return _of_relation(node)
    raise Undecided("no set of numbers")


def unknown(node: Node) -> Node | None:
    """The one unknown that all inequalities in a tree are about: a symbol or an applied function."""
    found = {
        below
        for below in node.walk()
        if below.head == "apply" or (below.head == "symbol" and below.name not in ("e", "i", "pi", "infinity"))
    }
    applied = {below for below in found if below.head == "apply"}
    inner = {under for one in applied for part in one.parts for under in part.walk()}
    found -= inner
    return found.pop() if len(found) == 1 else None


def _of_several(node: Node) -> RealSet:
    """Inequalities with `or` between them, or with a comma: the latter is `and` where both can hold at once."""
    if any(part.head not in ("relation", "tuple", "union") for part in node.parts):
        raise Undecided("no set of numbers")
    parts = [real_set(part) for part in node.parts]
    both = parts[0]
    for part in parts[1:]:
        both = intersection(both, part)
    if node.name == "or" or not both:
        return merged([interval for part in parts for interval in part])
    return both


def _of_relation(node: Node) -> RealSet:
    operators = node.name.split()
    if operators == ["in"]:
        return real_set(node.parts[1])
    about = unknown(node)
    if about is None or "in" in operators or "~" in operators:
        raise Undecided("no inequality in one unknown")
    result = EVERYTHING
    for left, operator, right in zip(node.parts, operators, node.parts[1:], strict=False):
        result = intersection(result, _of_inequality(left, operator, right, about))
    return result


def _of_inequality(left: Node, operator: str, right: Node, about: Node) -> RealSet:
    """Of slope * unknown + constant <operator> 0, or of such with |unknown|."""
    absolute = Node("absolute", (about,))
    inside = any(below == absolute for side in (left, right) for below in side.walk())
    difference = Node("add", (left, Node("negate", (right,))))
    values = [_end(_put(difference, absolute if inside else about, at)) for at in (-3, 0, 2, 5)]
    with mpmath.workdps(_DIGITS):
        slope = (values[2] - values[1]) / 2
        for at, result in ((-3, values[0]), (5, values[3])):
            if not _close(result, values[1] + slope * at):
                raise Undecided("not linear")
        if abs(slope) < 1e-30:
            raise Undecided("no unknown in it")
        at = -values[1] / slope
    if slope < 0:
        operator = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(operator, operator)
    if not inside:
        return _ray(operator, at)
    return _bands(operator, at)


def _ray(operator: str, at: Any) -> RealSet:
    point = (Interval(at, True, at, True),)
    if operator in ("<", "<="):
        return merged([Interval(-mpmath.inf, False, at, operator == "<=")])
    if operator in (">", ">="):
        return merged([Interval(at, operator == ">=", mpmath.inf, False)])
    return point if operator == "=" else complement(point)


def _bands(operator: str, at: Any) -> RealSet:
    """Of |unknown| <operator> at."""
    if operator == "=":
        return merged([Interval(end, True, end, True) for end in ((-at, at) if at >= 0 else ())])
    if operator == "!=":
        return complement(_bands("=", at))
    if operator in ("<", "<="):
        return merged([Interval(-at, operator == "<=", at, operator == "<=")])
    return complement(_bands("<" if operator == ">=" else "<=", at))


def _put(node: Node, what: Node, at: int) -> Node:
    """The tree with a number in the place of the unknown."""
    if node == what:
        return number(at)
    if not node.parts:
        return node
    return Node(node.head, tuple(_put(part, what, at) for part in node.parts), node.name, node.value, node.decimals)
