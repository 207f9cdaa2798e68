"""Formulas of answers, read whole or not at all.

A grammar of our own: a parser that reads the beginning of a text and drops the rest makes wrong answers right.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from synth.verifiers.math.nodes import Node, Unread, number
from synth.verifiers.math.tokens import Commas, Token, tokenise

MAX_DEPTH: Final = 60
_RELATIONS: Final = {"=": "=", "<": "<", ">": ">", "\x02": "<=", "\x03": ">=", "\x04": "!=", "\x05": "~", "\x06": "in"}
_COMMANDS_OF_RELATION: Final = {"equiv": "=", "to": "=", "rightarrow": "=", "implies": "=", "mapsto": "="}
_SETS: Final = {"cup": "union", "cap": "intersection", "setminus": "difference", "backslash": "difference"}
_SYMBOLS: Final = frozenset(
    [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "varepsilon",
        "zeta",
        "eta",
        "theta",
        "vartheta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "rho",
        "sigma",
        "tau",
        "upsilon",
        "phi",
        "varphi",
        "chi",
        "psi",
        "omega",
        "Gamma",
        "Delta",
        "Theta",
        "Lambda",
        "Xi",
        "Pi",
        "Sigma",
        "Phi",
        "Psi",
        "Omega",
        "ell",
        "hbar",
        "zzz",
        "angle",
        "triangle",
    ]
)
_CLOSING: Final = {"(": ")]", "[": "])"}


def read(text: str, commas: Commas) -> Node:
    """The tree of a cleaned text. Raises Unread where any part of it is no formula."""
    parser = _Parser(tokenise(text, commas))
    try:
        node = parser.listing("")
    except RecursionError:
        raise Unread("too deep") from None
    if parser.at < len(parser.tokens):
        raise Unread("something is left over")
    return node


class _Parser:
    """Recursive descent over tokens; each method reads one level of binding and leaves `at` behind it."""

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

    # Lists, relations, sets

    def listing(self, stops: str) -> Node:
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

    # Values

    def sum(self) -> Node:
        terms: list[Node] = []
        sign = self.sign()
        terms.append(self.signed(sign, self.term()))
        while self.is_operator("+-") or self.is_command("pm", "mp"):
            sign = self.sign()
            terms.append(self.signed(sign, self.term()))
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

    @staticmethod
    def signed(sign: str, node: Node) -> Node:
        if sign == "+":
            return node
        if sign == "-":
            if node.head == "number" and node.value is not None:
                return Node("number", value=-node.value, decimals=node.decimals)
            return Node("negate", (node,))
        return Node("plusminus", (node,), name=sign)

    def term(self) -> Node:
        node = self.power()
        while True:
            if self.is_operator("*/"):
                divide = self.peek().text == "/"
                self.at += 1
                sign = self.sign()
                right = self.signed(sign, self.power())
                node = Node("divide", (node, right)) if divide else self.product(node, right)
            elif self.mixed(node):
                whole = node.value or Fraction(0)
                node = Node("number", value=whole + self.fraction_of(self.power()))
            elif self.starts_factor():
                node = self.product(node, self.power())
            else:
                return node

    @staticmethod
    def product(left: Node, right: Node) -> Node:
        return Node("multiply", (*left.parts, right) if left.head == "multiply" else (left, right))

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
        if token.kind in ("number", "name", "function", "word"):
            return True
        if token.kind == "command":
            return token.text not in _SETS and token.text not in _COMMANDS_OF_RELATION and token.text not in (
                "pm", "mp", "end", "\\", "mid", "rfloor", "rceil", "pmod", "degrees", "prime")  # fmt: skip
        return token.text in "([{\x0e" or (token.text == "|" and not self.bars) if token.kind == "operator" else False

    def power(self) -> Node:
        node = self.postfix(self.primary())
        if self.is_operator("^"):
            self.at += 1
            sign = self.sign()
            exponent = self.signed(sign, self.argument() if self.is_operator("{") else self.power())
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
                node = Node("symbol", name=f"{_name_of(node)}'")
            elif self.is_command("pmod"):
                self.at += 1
                modulus = self.argument()
                node = Node("multiply", (node, Node("text", name=f"mod {_name_of(modulus)}")))
                continue
            else:
                return node
            self.at += 1

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
        if base.head != "number" or base.value not in range(2, 37) or node.value is None or node.value.denominator != 1:
            raise Unread("no base")
        try:
            return Node("based", value=Fraction(int(str(node.value.numerator), int(base.value))), name=str(node.value))
        except ValueError:
            raise Unread("a digit that its base does not have") from None

    def named(self, name: str) -> Node:
        """A symbol with its subscript, or a function of a name that functions have, applied."""
        if self.is_operator("_"):
            self.at += 1
            name = f"{name}_{_name_of(self.argument())}"
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
        words = []
        while self.peek().kind == "word" or (words and self.peek().kind == "name" and self.peek().spaced):
            words.append(self.peek().text)
            self.at += 1
        return Node("text", name=" ".join(words))

    def argument(self) -> Node:
        """{...}, or the next single token; of plain digits only the first, as TeX has it: \\frac13."""
        if self.is_operator("{"):
            self.at += 1
            bars, self.bars = self.bars, 0
            node = self.listing("}")
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
        inner = self.listing(")")
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
        inner = self.listing("}")
        self.bars = bars
        if self.is_operator("|") or self.is_command("mid"):
            self.at += 1
            inner = self.listing("}")  # of {x | ...} the condition is what it says
            self.expect("\x0f")
            return inner
        self.expect("\x0f")
        if inner.head == "ratio" and len(inner.parts) == 2:
            raise Unread("a set by a condition")
        return Node("set", inner.parts if inner.head == "list" else (inner,))

    def function(self) -> Node:
        name = self.peek().text
        self.at += 1
        if name == "sqrt":
            return self.root()
        base = exponent = None
        for _ in range(2):
            if self.is_operator("^"):
                self.at += 1
                sign = self.sign()
                exponent = self.signed(sign, self.argument())
            if self.is_operator("_"):
                self.at += 1
                base = self.argument()
        if name in ("gcd", "lcm", "max", "min"):
            return Node("call", self.bracketed_items(), name=name)
        argument = self.applied()
        if name == "exp":
            node = Node("power", (Node("symbol", name="e"), argument))
        else:
            node = Node("call", (argument, base) if base else (argument,), name="log10" if name == "lg" else name)
        if exponent is None:
            return node
        if exponent.head == "number" and exponent.value == -1 and name[:3] in ("sin", "cos", "tan"):
            return Node("call", (argument,), name=f"arc{name}")
        return Node("power", (node, exponent))

    def applied(self) -> Node:
        """What a function without brackets takes: \\sin 2x, but not \\sin x \\cos x."""
        if self.is_operator("({"):
            node = self.bracketed() if self.is_operator("(") else self.argument()
            return self.postfix(node)
        node = self.power()
        while self.starts_factor() and self.peek().kind not in ("function", "word") and not self.is_operator("(["):
            node = self.product(node, self.power())
        return node

    def root(self) -> Node:
        index = number(2)
        if self.is_operator("["):
            self.at += 1
            index = self.sum()
            self.expect("]")
        return Node("root", (self.bracketed() if self.is_operator("(") else self.argument(), index))

    def command(self) -> Node:
        name = self.peek().text
        self.at += 1
        if name == "frac":
            return Node("divide", (self.argument(), self.argument()))
        if name == "binom":
            return Node("binomial", (self.argument(), self.argument()))
        if name == "boxed":
            return self.argument()
        if name in ("sum", "prod", "int"):
            return self.big(name)
        if name == "pi":
            return Node("symbol", name="pi")
        if name == "infty":
            return Node("symbol", name="infinity")
        if name == "reals":
            return Node("reals")
        if name in ("lfloor", "lceil"):
            node = Node("call", (self.sum(),), name="floor" if name == "lfloor" else "ceiling")
            if not self.is_command(name.replace("l", "r", 1)):
                raise Unread("a bracket that is not closed")
            self.at += 1
            return node
        if name in ("emptyset", "varnothing"):
            return Node("empty")
        if name == "begin":
            return self.matrix()
        if name in _SYMBOLS:
            return self.named(f"\\{name}")
        raise Unread("a command that is not known")

    def big(self, name: str) -> Node:
        """A sum, product or integral with its bounds and body."""
        low = high = Node("empty")
        for _ in range(2):
            if self.is_operator("_"):
                self.at += 1
                low = self.argument()
            elif self.is_operator("^"):
                self.at += 1
                high = self.argument()
        return Node("big", (low, high, self.term()), name=name)

    def matrix(self) -> Node:
        """A matrix environment; rows parted by \\\\, entries by &."""
        environment = self.environment()
        if environment == "array":
            self.argument_skipped()
        elif environment.rstrip("*") not in ("matrix", "pmatrix", "bmatrix", "vmatrix", "Bmatrix", "smallmatrix"):
            raise Unread("an environment that is no matrix")
        rows: list[list[Node]] = [[]]
        while not self.is_command("end"):
            if self.is_command("\\"):
                self.at += 1
                rows.append([])
            elif self.is_operator("&"):
                self.at += 1
            elif self.is_command("hline"):
                raise Unread("a table")
            else:
                rows[-1].append(self.relation())
        self.at += 1
        self.environment_end(environment)
        kept = [Node("row", tuple(row)) for row in rows if row]
        if not kept or len({len(row.parts) for row in kept}) > 1:
            raise Unread("rows of unlike lengths")
        node = Node("matrix", tuple(kept))
        return Node("call", (node,), name="det") if environment == "vmatrix" else node

    def environment(self) -> str:
        self.expect("{")
        name = ""
        while not self.is_operator("}"):
            if self.peek().kind == "end":
                raise Unread("an environment without a name")
            name += self.peek().text
            self.at += 1
        self.at += 1
        return name

    def environment_end(self, begun: str) -> None:
        if self.environment() != begun:
            raise Unread("an environment that ends as another")

    def argument_skipped(self) -> None:
        if self.is_operator("{"):
            self.environment()


def _number(text: str) -> Node:
    mantissa = re.split("[eE]", text)[0]
    digits = mantissa.replace(".", "").lstrip("0")
    decimals = len(mantissa.partition(".")[2])
    exponent = int(text[len(mantissa) + 1 :]) if len(mantissa) < len(text) else 0
    if abs(exponent) > 4_000:
        raise Unread("an exponent too large")
    value = Fraction(mantissa if not mantissa.endswith(".") else mantissa[:-1]) * Fraction(10) ** exponent
    return Node("number", value=value, decimals=(max(decimals - exponent, 0) if decimals else 0, len(digits)))


def _name_of(node: Node) -> str:
    """A node as part of a name: of subscripts, primes and moduli."""
    if node.head == "number":
        return str(node.value)
    inner = ",".join(_name_of(part) for part in node.parts)
    return f"{node.name or node.head}({inner})" if inner else node.name or node.head
