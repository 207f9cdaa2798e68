"""Numbers, symbols, words, brackets and sets of the grammar."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from synth.verifiers.math.functions import Functions
from synth.verifiers.math.nodes import Node, Unread, name_of
from synth.verifiers.math.tokens import Token

_CLOSING: Final = {"(": ")]", "[": "])"}


class Operands(Functions):
    """What operators stand between."""

    def primary(self) -> Node:
        token = self.peek()
        if token.kind == "number":
            self.at += 1
            return self.based(_number(token.text))
        if token.kind == "name":
            self.at += 1
            return self.named(token.text)
        if token.kind == "word":
            return self.words()
        if token.kind == "function":
            return self.function()
        if token.kind == "command":
            return self.command()
        if token.kind == "operator" and token.text in "([":
            return self.bracketed()
        if token.kind == "operator" and token.text == "{":
            return self.argument()
        if token.kind == "operator" and token.text == "\x0e":
            return self.braced_set()
        if token.kind == "operator" and token.text == "|":
            self.at += 1
            self.bars += 1
            inner = self.sum()
            self.expect("|")
            self.bars -= 1
            return Node("absolute", (inner,))
        raise Unread("no value")

    def based(self, node: Node) -> Node:
        """A number with a base below it: 204_5."""
        if not self.is_operator("_"):
            return node
        self.at += 1
        base = self.argument()
        if base.value is None or base.value not in range(2, 37) or node.value is None or node.value.denominator != 1:
            raise Unread("no base")
        try:
            return Node("based", value=Fraction(int(str(node.value.numerator), int(base.value))), name=str(node.value))
        except ValueError:
            raise Unread("a digit that its base does not have") from None

    def named(self, name: str) -> Node:
        """A symbol with its subscript, or a function of a name that functions have, applied."""
        if self.is_operator("_"):
            self.at += 1
            name = f"{name}_{name_of(self.argument())}"
        if (
            name[0] in "fghFGH"
            and self.is_operator("^")
            and [self.peek(at).text for at in range(1, 5)] == ["{", "-", "1", "}"]
        ):
            self.at += 5
            name = f"{name}^-1"
        if name[0] in "fghFGH" and self.is_operator("(") and not self.peek().spaced:
            return Node("apply", self.bracketed_items(), name=name)
        return Node("symbol", name=name)

    def words(self) -> Node:
        words: list[str] = []
        while self.peek().kind == "word" or (words and self.peek().kind == "name" and self.peek().spaced):
            words.append(self.peek().text)
            self.at += 1
        return Node("text", name=" ".join(words))

    def argument(self) -> Node:
        """{...}, or the next single token; of plain digits only the first, as TeX has it: \\frac13."""
        if self.is_operator("{"):
            self.at += 1
            bars, self.bars = self.bars, 0
            node = self.listing()
            self.bars = bars
            self.expect("}")
            return node
        token = self.peek()
        if token.kind == "number" and token.text.isdigit() and len(token.text) > 1:
            self.tokens[self.at : self.at + 1] = [Token("number", token.text[0]), Token("number", token.text[1:])]
            self.at += 1
            return _number(token.text[0])
        return self.primary()

    def bracketed_items(self) -> tuple[Node, ...]:
        node = self.bracketed()
        return node.parts if node.head == "tuple" else (node,)

    def bracketed(self) -> Node:
        """(a) is a; (a, b) [a, b) and the like are tuples."""
        opening = self.peek().text
        self.at += 1
        bars, self.bars = self.bars, 0
        inner = self.listing()
        self.bars = bars
        closing = self.peek().text
        if not self.is_operator(_CLOSING[opening]):
            raise Unread("a bracket that is not closed")
        self.at += 1
        if inner.head == "list" and inner.name in ",;" and not any(part.head == "list" for part in inner.parts):
            return Node("tuple", inner.parts, name=opening + closing)
        if (opening, closing) not in (("(", ")"), ("[", "]")):
            raise Unread("brackets that do not match")
        return inner

    def braced_set(self) -> Node:
        self.at += 1
        if self.is_operator("\x0f"):
            self.at += 1
            return Node("empty")
        bars, self.bars = self.bars, 1  # a bar in braces is `such that`
        inner = self.listing()
        self.bars = bars
        if self.is_operator("|") or self.is_command("mid"):
            self.at += 1
            inner = self.listing()  # of {x | ...} the condition is what it says
            self.expect("\x0f")
            return inner
        self.expect("\x0f")
        if inner.head == "ratio" and len(inner.parts) == 2:
            raise Unread("a set by a condition")
        return Node("set", inner.parts if inner.head == "list" else (inner,))


def _number(text: str) -> Node:
    mantissa = re.split("[eE]", text)[0]
    digits = mantissa.replace(".", "").lstrip("0")
    decimals = len(mantissa.partition(".")[2])
    exponent = int(text[len(mantissa) + 1 :]) if len(mantissa) < len(text) else 0
    if abs(exponent) > 4_000:
        raise Unread("an exponent too large")
    value = Fraction(mantissa if not mantissa.endswith(".") else mantissa[:-1]) * Fraction(10) ** exponent
    return Node("number", value=value, decimals=(max(decimals - exponent, 0) if decimals else 0, len(digits)))
