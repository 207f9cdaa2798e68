"""Regular expressions of tiktoken in the dialect of the library `tokenizers`, or an error where the two disagree.

tiktoken matches with Rust's fancy-regex, tokenizers with Oniguruma's Ruby syntax. The classes of characters are the
same; these are not, and none of them is an error there:

    X{m,n}+     possessive in Rust; X{m,n} repeated in Ruby, so that \\p{N}{1,3}+ takes a number of any length
    $  ^        ends of the text in Rust; ends of each line in Ruby
    (?m) (?s)   other meanings, as \\w, \\b, \\< and some more have
"""

from __future__ import annotations

import re

ESCAPE = re.compile(r"\\(?:[pP](?:\{[^}]*\}|.)|x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)", re.DOTALL)
REPEAT = re.compile(r"\{\d+(?:,\d*)?\}|[*+?]")
GROUP = re.compile(r"\((?:\?(?::|=|!|>|<=|<!|i:|-i:|i\)))?")
KNOWN_ESCAPES = frozenset("pPsSdDnrtfvxuAz")


class PatternError(ValueError):
    """A pattern that would mean another thing than it does to tiktoken."""


def translated(pattern: str) -> str:
    """The pattern that tokenizers matches as tiktoken matches `pattern`. Raises PatternError where that is not sure."""
    return _Translation(pattern).all()


class _Translation:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.out: list[str] = []
        self.atom = 0  # where in `out` the last atom begins
        self.opened: list[int] = []  # where in `out` the open groups begin

    def all(self) -> str:
        while self.at < len(self.pattern):
            self._next()
        if self.opened:
            raise PatternError("a ( is not closed")
        return "".join(self.out)

    def _next(self) -> None:
        letter = self.pattern[self.at]
        if letter == "(":
            self._open()
        elif letter == ")":
            if not self.opened:
                raise PatternError("a ) closes nothing")
            self.atom = self.opened.pop()
            self._take(1)
        elif letter in "*+?{" and (repeat := REPEAT.match(self.pattern, self.at)):
            self._repeat(repeat)
        elif letter == "|":
            self._take(1)
        elif letter in "^$":
            self.at += 1
            self._atom(r"\A" if letter == "^" else r"\z")
        elif letter == "[":
            self._atom(self._class())
        elif letter == "\\":
            self._atom(self._escape())
        else:
            self.at += 1
            self._atom(letter)

    def _open(self) -> None:
        found = GROUP.match(self.pattern, self.at)
        assert found is not None
        told = found.group()
        if told == "(" and self.pattern.startswith("(?", self.at):
            raise PatternError(
                f"{self.pattern[self.at : self.at + 4]!r}: only (?: (?= (?! (?> (?<= (?<! (?i: are known"
            )
        if told == "(?i)":
            raise PatternError("'(?i)': write (?i:...) around what it is for")
        self.opened.append(len(self.out))
        self._take(len(told))

    def _repeat(self, found: re.Match[str]) -> None:
        told, after = found.group(), self.pattern[found.end() : found.end() + 1]
        self.at = found.end()
        if told.startswith("{") and after == "+":
            self.at += 1
            self.out[self.atom :] = ["(?>", *self.out[self.atom :], told, ")"]
            return
        if told.startswith("{") and after == "?":
            raise PatternError("a lazy {m,n}? is not known")
        if after in ("?", "+"):  # lazy, possessive
            self.at += 1
            told += after
        self.out.append(told)

    def _class(self) -> str:
        start, depth = self.at, 0
        if self.pattern.startswith(("[]", "[^]"), start):
            raise PatternError(r"a class that begins with ]: write \]")
        while self.at < len(self.pattern):
            letter = self.pattern[self.at]
            if letter == "\\":
                self._escape()
                continue
            if self.pattern.startswith(("--", "~~"), self.at) and depth:
                raise PatternError("a class with -- or ~~: write it with && and [^...]")
            depth += (letter == "[") - (letter == "]")
            self.at += 1
            if depth == 0:
                return self.pattern[start : self.at]
        raise PatternError("a [ is not closed")

    def _escape(self) -> str:
        found = ESCAPE.match(self.pattern, self.at)
        if found is None:
            raise PatternError("it ends in a backslash")
        told = found.group()
        if told[1] in "<>" or (told[1].isalnum() and told[1] not in KNOWN_ESCAPES):
            raise PatternError(f"{told!r} is not known")
        self.at = found.end()
        return told

    def _atom(self, told: str) -> None:
        self.atom = len(self.out)
        self.out.append(told)

    def _take(self, count: int) -> None:
        self.out.append(self.pattern[self.at : self.at + count])
        self.at += count
