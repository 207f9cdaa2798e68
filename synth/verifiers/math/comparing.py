"""Whether two trees are the same answer: numbers, tuples, lists, sets, matrices, equations, inequalities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from synth.verifiers.math.conditions import is_condition, same_conditions, same_relations
from synth.verifiers.math.labels import Labelled, conflicting, labelled
from synth.verifiers.math.matching import MAX_ITEMS, Result, all_of, any_of, unordered
from synth.verifiers.math.nodes import Beyond, Contradiction, Node, Undecided
from synth.verifiers.math.quantities import same_quantity
from synth.verifiers.math.real_sets import real_set, same_set
from synth.verifiers.math.settings import Policies
from synth.verifiers.math.values import same_value

_SETS: Final = frozenset({"union", "intersection", "difference", "reals", "empty"})


def same(gold: Node, answer: Node, policies: Policies) -> Result:
    """Whether the answer's tree says what the gold's does."""
    if gold == answer:
        return True, "as_written"
    try:
        return _same(_expanded(gold), _expanded(answer), policies)
    except Contradiction:
        return False, "chain"
    except Beyond:
        return None, "too_large"
    except Undecided:
        return None, "undecided"


def _same(gold: Node, answer: Node, policies: Policies) -> Result:
    if gold == answer:
        return True, "as_written"
    first, second = _unwrapped(gold, policies), _unwrapped(answer, policies)
    if conflicting(first.label, second.label):
        return same_relations(gold, answer) if gold.head == answer.head == "relation" else (False, "labels")
    if is_condition(first) or is_condition(second):
        return same_conditions(gold, answer, first, second)
    if first.label is not None and second.label is not None and gold.name == answer.name == "=":
        result = _same_bare(first.value, second.value, policies)
        return result if result[0] or first.label == second.label else any_of(result, same_relations(gold, answer))
    return _same_bare(first.value, second.value, policies)


def _unwrapped(node: Node, policies: Policies) -> Labelled:
    """A label taken off; of a list, the label of its first item where the others have none: n = 1, 2, 3."""
    if node.head == "list" and node.name in (",", "or"):
        items = [labelled(part, policies) for part in node.parts]
        if items[0].label is not None and all(
            item.label is None and item.value.head != "relation" for item in items[1:]
        ):
            return Labelled(items[0].label, Node("list", tuple(item.value for item in items), name=","))
        return Labelled(None, node)
    return labelled(node, policies)


def _same_bare(gold: Node, answer: Node, policies: Policies) -> Result:
    """Of what has no label any more."""
    heads = {gold.head, answer.head}
    if gold.head == answer.head == "set":
        return unordered(_distinct(gold.parts), _distinct(answer.parts), _with(policies))
    if heads <= {"list", "set"}:
        return _lists(gold, answer, policies)
    if heads == {"list", "tuple"}:
        return _in_order(_values(gold, policies), _values(answer, policies), policies)
    if heads == {"set", "tuple"}:
        return False, "shape"
    if heads & _SETS or (gold.head == answer.head == "tuple" and len(gold.parts) == 2 and gold.name != answer.name):
        return _real_sets(gold, answer)
    if gold.head == answer.head == "tuple":
        return _in_order(_values(gold, policies), _values(answer, policies), policies)
    if "matrix" in heads:
        return _matrices(gold, answer, policies)
    if gold.head == answer.head == "ratio":
        return _ratios(gold, answer)
    if heads & {"list", "set", "tuple"}:
        single = next((side for side in (gold, answer) if side.head == "set" and len(side.parts) == 1), None)
        if single is None:
            return False, "shape"
        inner = [side.parts[0] if side is single else side for side in (gold, answer)]
        return _same_bare(inner[0], inner[1], policies)
    return same_quantity(gold, answer, policies)


def _with(policies: Policies) -> Any:
    return lambda one, other: _same(one, other, policies)


def _real_sets(gold: Node, answer: Node) -> Result:
    try:
        return same_set(real_set(gold), real_set(answer)), "set"
    except Undecided:
        return (None, "undecided") if gold.head == answer.head else (False, "shape")


def _values(node: Node, policies: Policies) -> list[Node]:
    return [labelled(part, policies).value for part in node.parts]


def _lists(gold: Node, answer: Node, policies: Policies) -> Result:
    """Lists without brackets, and sets: in any order, unless labels or the policy say which is which."""
    first = [labelled(part, policies) for part in gold.parts]
    second = [labelled(part, policies) for part in answer.parts]
    if len(second) > len(first) and policies.order == "any":
        second = [labelled(part, policies) for part in _distinct(answer.parts)]  # an answer found twice is one answer
    if len(first) != len(second):
        return False, "count"
    named = [_named(side) for side in (first, second)]
    if all(named):
        if set(named[0]) == set(named[1]):
            ordered = [named[1][label] for label in named[0]]
            return _in_order(list(named[0].values()), ordered, policies)
        if any(conflicting(one, other) for one, other in zip(named[0], named[1], strict=True)):
            return False, "labels"
    if any(named) or policies.order == "given":
        return _in_order([item.value for item in first], [item.value for item in second], policies)
    return unordered([item.value for item in first], [item.value for item in second], _with(policies))


def _named(items: Sequence[Labelled]) -> dict[Node, Node]:
    """Values by label where each has one of its own; else nothing."""
    named = {item.label: item.value for item in items if item.label is not None}
    return named if len(named) == len(items) > 1 else {}


def _in_order(gold: Sequence[Node], answer: Sequence[Node], policies: Policies) -> Result:
    if len(gold) != len(answer):
        return False, "count"
    return all_of([_same(one, other, policies) for one, other in zip(gold, answer, strict=True)])


def _distinct(parts: Sequence[Node]) -> list[Node]:
    out: list[Node] = []
    for part in parts[:MAX_ITEMS]:
        if not any(same(part, other, Policies())[0] for other in out):
            out.append(part)
    return out + list(parts[MAX_ITEMS:])


def _matrices(gold: Node, answer: Node, policies: Policies) -> Result:
    rows = [_rows(side) for side in (gold, answer)]
    if not rows[0] or not rows[1]:
        return False, "shape"
    if [len(row) for row in rows[0]] != [len(row) for row in rows[1]]:
        return False, "shape"
    first, second = ([entry for row in side for entry in row] for side in rows)
    return _in_order(first, second, policies)


def _rows(node: Node) -> list[tuple[Node, ...]]:
    """Of a matrix; a tuple is a column."""
    if node.head == "matrix":
        return [row.parts for row in node.parts]
    return [(part,) for part in node.parts] if node.head == "tuple" else []


def _ratios(gold: Node, answer: Node) -> Result:
    """In proportion; with a zero in it (12:00) as written."""
    if len(gold.parts) != len(answer.parts):
        return False, "count"
    zero = Node("number", value=None)
    for side in (gold, answer):
        if any(part.value == 0 or part == zero for part in side.parts if part.head == "number"):
            return all_of(
                [(same_value(one, other), "ratio") for one, other in zip(gold.parts, answer.parts, strict=True)]
            )
    results: list[Result] = []
    for one, other in zip(gold.parts[1:], answer.parts[1:], strict=True):
        crossed = Node("multiply", (gold.parts[0], other)), Node("multiply", (answer.parts[0], one))
        results.append((same_value(*crossed), "ratio"))
    return all_of(results)


def _expanded(node: Node) -> Node:
    """A tree with plus-minus as the list of both; lists flat."""
    if node.head == "list":
        parts: list[Node] = []
        for part in node.parts:
            wide = _expanded(part)
            parts.extend(wide.parts if wide.head == "list" and part.head != "list" else [wide])
        return Node("list", tuple(parts), name=node.name)
    if node.head == "set" and any(_has_choice(part) for part in node.parts):
        return Node("set", tuple(one for part in node.parts for one in _both(part)))
    if not _has_choice(node):
        return node
    return Node("list", tuple(_both(node)), name=",")


def _has_choice(node: Node) -> bool:
    return any(below.head == "plusminus" for below in node.walk())


def _both(node: Node) -> list[Node]:
    return [_chosen(node, upper) for upper in (True, False)] if _has_choice(node) else [node]


def _chosen(node: Node, upper: bool) -> Node:
    parts = tuple(_chosen(part, upper) for part in node.parts)
    if node.head == "plusminus":
        return parts[0] if (node.name == "pm") == upper else Node("negate", parts)
    return Node(node.head, parts, node.name, node.value, node.decimals) if parts else node
