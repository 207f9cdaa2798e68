"""Formulas of answers, read whole or not at all.

A grammar of our own: a parser that reads the beginning of a text and drops the rest makes wrong answers right.
"""

from __future__ import annotations

from typing import Final

from synth.verifiers.math.arithmetic import Arithmetic
from synth.verifiers.math.nodes import Node, Unread
from synth.verifiers.math.tokens import Commas, tokenise

MAX_DEPTH: Final = 60
_RELATIONS: Final = {"=": "=", "<": "<", ">": ">", "\x02": "<=", "\x03": ">=", "\x04": "!=", "\x05": "~", "\x06": "in"}
_COMMANDS_OF_RELATION: Final = {"equiv": "=", "to": "=", "rightarrow": "=", "implies": "=", "mapsto": "="}
_SETS: Final = {"cup": "union", "cap": "intersection", "setminus": "difference", "backslash": "difference"}


def read(text: str, commas: Commas) -> Node:
    """The tree of a cleaned text. Raises Unread where any part of it is no formula."""
    parser = _Parser(tokenise(text, commas))
    try:
        node = parser.listing()
    except RecursionError:
        raise Unread("too deep") from None
    if parser.at < len(parser.tokens):
        raise Unread("something is left over")
    return node


class _Parser(Arithmetic):
    """Lists, relations and sets, of values."""

    def listing(self) -> Node:
        """Items parted by commas, semicolons, `and`, `or`; one item is itself."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unread("too deep")
        groups: list[tuple[list[Node], str]] = []
        items = [self.relation()]
        parts = ","
        while self.is_operator(",;\x07"):
            token = self.peek().text
            while self.is_operator(",;\x07"):
                token = self.peek().text if token == "," else token
                self.at += 1
            if self.peek().kind == "end" or self.is_operator(")]}\x0f"):
                break
            if token == ";":
                groups.append((items, ";"))
                items = []
            elif token == "\x07":
                parts = "or"
            items.append(self.relation())
        self.depth -= 1
        if groups:
            groups.append((items, ";"))
            single = [group[0] if len(group) == 1 else Node("list", tuple(group), name=",") for group, _ in groups]
            return Node("list", tuple(single), name=";")
        return items[0] if len(items) == 1 else Node("list", tuple(items), name=parts)

    def relation(self) -> Node:
        members = [self.sets()]
        operators: list[str] = []
        while True:
            token = self.peek()
            if token.kind == "operator" and token.text in _RELATIONS:
                operators.append(_RELATIONS[token.text])
            elif token.kind == "command" and token.text in _COMMANDS_OF_RELATION:
                operators.append(_COMMANDS_OF_RELATION[token.text])
            else:
                break
            self.at += 1
            members.append(self.sets())
        return Node("relation", tuple(members), name=" ".join(operators)) if operators else members[0]

    def sets(self) -> Node:
        node = self.ratio()
        while self.is_command(*_SETS):
            head = _SETS[self.peek().text]
            self.at += 1
            node = Node(head, (node, self.ratio()))
        return node

    def ratio(self) -> Node:
        parts = [self.sum()]
        while self.is_operator(":"):
            self.at += 1
            parts.append(self.sum())
        return Node("ratio", tuple(parts)) if len(parts) > 1 else parts[0]
