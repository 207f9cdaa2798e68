"""Equations and inequalities: as the sets that they are of, or up to a factor."""

from __future__ import annotations

from typing import Any

import mpmath

from synth.verifiers.math.evaluation import value
from synth.verifiers.math.labels import Labelled, conflicting, labelled
from synth.verifiers.math.matching import Result, all_of, any_of, unordered
from synth.verifiers.math.nodes import Node, Undecided
from synth.verifiers.math.real_sets import real_set, same_set, unknown
from synth.verifiers.math.settings import Policies
from synth.verifiers.math.values import ENOUGH, points


def is_condition(side: Labelled) -> bool:
    """Whether it is an equation or inequality still, or several."""
    node = side.value
    return node.head == "relation" or (
        node.head == "list"
        and any(part.head == "relation" and set(part.name.split()) - {"=", "~"} for part in node.parts)
    )


def same_conditions(gold: Node, answer: Node, first: Labelled, second: Labelled) -> Result:
    """Of two of which at least one is a condition; as written, and with their labels off."""
    if conflicting(unknown(gold), unknown(answer)):
        return same_relations(gold, answer)
    sides = [side if side.head == "relation" else bare.value for side, bare in ((gold, first), (answer, second))]
    try:
        return same_set(real_set(sides[0]), real_set(sides[1])), "set"
    except Undecided:
        pass
    if gold.head == answer.head == "relation":
        return same_relations(gold, answer)
    if gold.head == answer.head == "list" and len(gold.parts) == len(answer.parts):
        return unordered(gold.parts, answer.parts, _conditions_of)
    return False, "shape"


def _conditions_of(gold: Node, answer: Node) -> Result:
    plain = Policies()
    return same_conditions(gold, answer, labelled(gold, plain), labelled(answer, plain))


def same_relations(gold: Node, answer: Node) -> Result:
    """Equations and inequalities up to a factor: both sides brought to one, pair by pair."""
    if gold.head != "relation" or answer.head != "relation":
        return False, "shape"
    first, second = _pairs(gold), _pairs(answer)
    if len(first) != len(second):
        return False, "shape"
    results = [_scaled(one, other) for one, other in zip(first, second, strict=True)]
    turned = [_scaled(one, other) for one, other in zip(first, reversed(second), strict=True)]
    return any_of(all_of(results), all_of(turned))


def _pairs(node: Node) -> list[tuple[str, Node]]:
    """(= or < or <= or !=, left - right) of each neighbouring pair of a chain."""
    out = []
    for left, operator, right in zip(node.parts, node.name.split(), node.parts[1:], strict=False):
        if operator in (">", ">="):
            left, right, operator = right, left, operator.replace(">", "<")
        out.append((operator, Node("add", (left, Node("negate", (right,))))))
    return out


def _scaled(gold: tuple[str, Node], answer: tuple[str, Node]) -> Result:
    """Whether one difference is a constant times the other; of an inequality, a positive one."""
    if gold[0] != answer[0]:
        return False, "operator"
    symbols = gold[1].symbols() | answer[1].symbols()
    if gold[1].symbols() != answer[1].symbols() or not symbols:
        return False, "symbols"
    ratio: Any = None
    agreed = 0
    for place in points(symbols):
        try:
            first, second = value(gold[1], place, 60), value(answer[1], place, 60)
        except Undecided:
            continue
        if abs(second) < 1e-30 or abs(first) < 1e-30:
            continue
        with mpmath.workdps(60):
            here = first / second
            if ratio is not None and abs(here - ratio) > abs(ratio) * mpmath.mpf(10) ** -40:
                return False, "equation"
            ratio = here
        agreed += 1
    if agreed < ENOUGH + 1 or ratio is None:
        return None, "undecided"
    return (bool(gold[0] in ("=", "!=", "~") or mpmath.re(ratio) > 0)), "equation"
