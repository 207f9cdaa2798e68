"""Where a parser stands in its tokens, and what all levels of the grammar ask of it."""

from __future__ import annotations

from synth.verifiers.math.nodes import Node, Unread
from synth.verifiers.math.tokens import Token


class Cursor:
    """Each method of the grammar reads one level of binding and leaves `at` behind it. The levels stand in modules of
    their own, the tighter below: functions, then values, then arithmetic, then lists and relations (the parser)."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.bars = 0

    def peek(self, ahead: int = 0) -> Token:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else Token("end", "")

    def is_operator(self, texts: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind == "operator" and token.text in texts

    def is_command(self, *names: str) -> bool:
        token = self.peek()
        return token.kind == "command" and token.text in names

    def expect(self, text: str) -> None:
        if not self.is_operator(text):
            raise Unread(f"no {text!r}")
        self.at += 1

    def listing(self) -> Node:
        """Whole answers, parted by commas."""
        raise NotImplementedError

    def relation(self) -> Node:
        """An equation, an inequality or a value."""
        raise NotImplementedError

    def sum(self) -> Node:
        """A value with + and - in it."""
        raise NotImplementedError

    def term(self) -> Node:
        """A product."""
        raise NotImplementedError

    def power(self) -> Node:
        """A factor."""
        raise NotImplementedError

    def postfix(self, node: Node) -> Node:
        """A value with the signs behind it."""
        raise NotImplementedError

    def argument(self) -> Node:
        """{...}, or the next single token."""
        raise NotImplementedError

    def bracketed(self) -> Node:
        """(...) or [...]."""
        raise NotImplementedError

    def bracketed_items(self) -> tuple[Node, ...]:
        """What stands in brackets, item by item."""
        raise NotImplementedError

    def named(self, name: str) -> Node:
        """A symbol, with what belongs to its name."""
        raise NotImplementedError

    def sign(self) -> str:
        """The signs before a term as one: + - pm mp."""
        raise NotImplementedError

    def starts_factor(self) -> bool:
        """Whether a factor follows that needs no sign of multiplication."""
        raise NotImplementedError
