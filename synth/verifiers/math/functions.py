"""Functions, roots, sums and matrices of the grammar."""

from __future__ import annotations

from typing import Final

from synth.verifiers.math.cursor import Cursor
from synth.verifiers.math.nodes import Node, Unread, number, product, signed

_SYMBOLS: Final = frozenset({
    "alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "vartheta", "iota",
    "kappa", "lambda", "mu", "nu", "xi", "rho", "sigma", "tau", "upsilon", "phi", "varphi", "chi", "psi",
    "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega", "ell", "hbar",
    "zzz", "angle", "triangle",
})  # fmt: skip


class Functions(Cursor):
    """What begins with a function's name or a command."""

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
                exponent = signed(sign, self.argument())
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
            node = product(node, self.power())
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
