"""`x = 5` says 5 of x: what an answer is called, and what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from synth.verifiers.math.nodes import Contradiction, Node
from synth.verifiers.math.settings import Policies
from synth.verifiers.math.values import same_value

_CALLED: Final = frozenset({"symbol", "text", "tuple", "divide", "multiply", "ratio", "absolute", "apply", "list"})
_FUNCTION_NAMES: Final = "PpqQfghFGHEV"


@dataclass(frozen=True, slots=True)
class Labelled:
    """label: what a value is of, None where it stands alone."""

    label: Node | None
    value: Node


def is_label(node: Node) -> bool:
    """Whether a tree names something, rather than being a condition on it: x, f(2), AB/CD, (p, q), |AB|, P(A)."""
    if node.head == "apply" or node.name == "infinity":
        return node.head == "apply"
    if node.head == "multiply" and len(node.parts) == 2 and node.parts[0].head == "symbol":
        name = node.parts[0].name
        if name[0] in _FUNCTION_NAMES or name.endswith("'"):
            return True
    return node.head in _CALLED and all(is_label(part) for part in node.parts)


def labelled(node: Node, policies: Policies) -> Labelled:
    """A relation as a label and its value; what is none stands alone. Raises Contradiction for a chain that says
    two things, where the policy forbids it."""
    if node.head != "relation":
        return Labelled(None, node)
    operators = node.name.split()
    if operators == ["in"] and is_label(node.parts[0]):
        return Labelled(node.parts[0], node.parts[1])
    if set(operators) - {"=", "~"}:
        return Labelled(None, node)
    before = operators.index("~") + 1 if "~" in operators else len(node.parts)
    members = node.parts[:before]
    if len(members) == 1 and is_label(members[0]):
        members = node.parts
    if policies.chains == "consistent":
        _consistent(members)
    label = members[0] if is_label(members[0]) else None
    if len(members) != 2:
        return Labelled(label, members[-1])
    if label is None and is_label(members[1]) and not members[0].symbols():
        return Labelled(members[1], members[0])
    if label is None and not any(member.symbols() for member in members):
        return Labelled(None, members[1])
    return Labelled(label, members[1]) if label is not None else Labelled(None, node)


def _consistent(members: tuple[Node, ...]) -> None:
    numbers = [member for member in members if not member.symbols()]
    if any(same_value(numbers[0], other) is False for other in numbers[1:]):
        raise Contradiction


def conflicting(gold: Node | None, answer: Node | None) -> bool:
    """Whether two labels are certainly of other things: x and y are, f(2) and f(3), AB/CD and CD/AB; f(x) and y are
    not, nor A and S, nor S and `area`, as such names are chosen by whoever writes."""
    if gold is None or answer is None or gold == answer or gold.head != answer.head or gold.head == "text":
        return False
    return gold.head != "symbol" or (gold.name[0].islower() and answer.name[0].islower()) or "_" in gold.name
