"""Sums, products, powers and signs of the grammar."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from synth.verifiers.math.nodes import Node, Unread, name_of, product, signed
from synth.verifiers.math.operands import Operands
from synth.verifiers.math.tokens import Token

_NO_FACTORS: Final = frozenset({
    "pm", "mp", "end", "\\", "mid", "rfloor", "rceil", "pmod", "degrees", "prime", "cup", "cap", "setminus",
    "backslash", "equiv", "to", "rightarrow", "implies", "mapsto",
})  # fmt: skip
"""Commands that end a product."""


class Arithmetic(Operands):
    """Values with operators between them."""

    def sum(self) -> Node:
        terms: list[Node] = []
        sign = self.sign()
        terms.append(signed(sign, self.term()))
        while self.is_operator("+-") or self.is_command("pm", "mp"):
            sign = self.sign()
            terms.append(signed(sign, self.term()))
        return terms[0] if len(terms) == 1 else Node("add", tuple(terms))

    def sign(self) -> str:
        """The signs before a term as one: + - pm mp."""
        sign = "+"
        while self.is_operator("+-") or self.is_command("pm", "mp"):
            token = self.peek().text
            if token == "-":
                sign = {"+": "-", "-": "+", "pm": "mp", "mp": "pm"}[sign]
            elif token != "+":
                sign = token if sign == "+" else {"pm": "mp", "mp": "pm"}[token]
            self.at += 1
        return sign

    def term(self) -> Node:
        node = self.power()
        while True:
            if self.is_operator("*/"):
                divide = self.peek().text == "/"
                self.at += 1
                sign = self.sign()
                right = signed(sign, self.power())
                node = Node("divide", (node, right)) if divide else product(node, right)
            elif self.mixed(node):
                whole = node.value or Fraction(0)
                node = Node("number", value=whole + self.fraction_of(self.power()))
            elif self.starts_factor():
                node = product(node, self.power())
            else:
                return node

    def mixed(self, node: Node) -> bool:
        """Whether an integer stands right before a fraction of plain integers below one: 1\\frac{1}{4}, 1 1/4."""
        if node.head != "number" or node.decimals[0] or node.value is None or node.value.denominator != 1:
            return False
        before = self.tokens[self.at - 1]
        if before.kind != "number":
            return False
        began = self.at
        if self.is_command("frac"):
            try:
                fraction = self.power()
            except Unread:
                return False
            finally:
                self.at = began
            return self.fraction_of(fraction) > 0
        plain = [self.peek(ahead) for ahead in range(3)]
        if (
            plain[0].spaced
            and [token.kind for token in plain] == ["number", "operator", "number"]
            and plain[1].text == "/"
        ):
            self.tokens[self.at : self.at + 3] = [
                Token("command", "frac"), Token("operator", "{"), plain[0], Token("operator", "}"),
                Token("operator", "{"), plain[2], Token("operator", "}"),
            ]  # fmt: skip
            return self.mixed(node)
        return False

    @staticmethod
    def fraction_of(node: Node) -> Fraction:
        """The value of a fraction of positive integers below one; else 0."""
        if node.head != "divide" or any(part.head != "number" for part in node.parts):
            return Fraction(0)
        above, below = (part.value or Fraction(0) for part in node.parts)
        return above / below if 0 < above < below and above.denominator == below.denominator == 1 else Fraction(0)

    def starts_factor(self) -> bool:
        token = self.peek()
        if token.kind == "number" and self.tokens[self.at - 1].kind == "number":
            return False  # 12 13 is no product
        if token.kind in ("number", "name", "function", "word"):
            return True
        if token.kind == "command":
            return token.text not in _NO_FACTORS
        return token.text in "([{\x0e" or (token.text == "|" and not self.bars) if token.kind == "operator" else False

    def power(self) -> Node:
        node = self.postfix(self.primary())
        if self.is_operator("^"):
            self.at += 1
            sign = self.sign()
            exponent = signed(sign, self.argument() if self.is_operator("{") else self.power())
            node = self.postfix(Node("power", (node, exponent)))
        return node

    def postfix(self, node: Node) -> Node:
        while True:
            if self.is_operator("!"):
                node = Node("factorial", (node,))
            elif self.is_operator("%"):
                node = Node("percent", (node,))
            elif self.is_command("degrees"):
                node = Node("degree", (node,))
            elif self.is_command("prime") or self.is_operator("'"):
                node = Node("symbol", name=f"{name_of(node)}'")
            elif self.is_command("pmod"):
                self.at += 1
                modulus = self.argument()
                node = Node("multiply", (node, Node("text", name=f"mod {name_of(modulus)}")))
                continue
            else:
                return node
            self.at += 1
