"""What a formula is once it is read: a tree of nodes, compared by value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction


class Unread(Exception):
    """Our grammar does not cover a text; says nothing of whether it is right."""


class Contradiction(Exception):
    """An answer says two things of one."""


class Undecided(Exception):
    """A value is beyond what can be evaluated within bounds, or is not defined."""


@dataclass(frozen=True, slots=True)
class Node:
    """head: what it is; parts: of what; name: of a symbol, unit, function, bracket pair or operators; value and
    decimals (digits after the point, significant digits) of a number as written.

    Heads of values: number symbol text add multiply divide power negate call root factorial absolute binomial plusminus
    degree percent big. Of more than a value: tuple (name: its brackets) set list (name: its separator) matrix row union
    intersection difference reals empty ratio relation (name: its operators, blanks between).
    """

    head: str
    parts: tuple[Node, ...] = ()
    name: str = ""
    value: Fraction | None = None
    decimals: tuple[int, int] = (0, 0)

    def walk(self) -> Iterator[Node]:
        """Itself and all below it."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def symbols(self) -> frozenset[str]:
        """Names of its free symbols: e, i and pi are numbers."""
        return frozenset(
            node.name for node in self.walk() if node.head in ("symbol", "text") and node.name not in CONSTANTS
        ) | frozenset(f"{node.name}()" for node in self.walk() if node.head == "apply")


CONSTANTS = frozenset({"e", "i", "pi", "infinity"})


class Beyond(Undecided):
    """A value is too large, or has too many digits that matter, to be told from its neighbours. Nor can a computer
    algebra that compares 15 digits."""


def number(value: int | Fraction) -> Node:
    """The node of an exact number that nobody wrote."""
    return Node("number", value=Fraction(value))


def product(left: Node, right: Node) -> Node:
    """Both as one product, flat."""
    return Node("multiply", (*left.parts, right) if left.head == "multiply" else (left, right))


def signed(sign: str, node: Node) -> Node:
    """A term with its sign: + - pm mp."""
    if sign == "+":
        return node
    if sign in ("pm", "mp"):
        return Node("plusminus", (node,), name=sign)
    if node.head == "number" and node.value is not None:
        return Node("number", value=-node.value, decimals=node.decimals)
    return Node("negate", (node,))


def name_of(node: Node) -> str:
    """A node as part of a name: of subscripts, primes and moduli."""
    if node.head == "number":
        return str(node.value)
    inner = ",".join(name_of(part) for part in node.parts)
    return f"{node.name or node.head}({inner})" if inner else node.name or node.head
