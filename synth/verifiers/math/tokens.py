"""A cleaned text as tokens: numbers in one reading of their commas, names, words, operators."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from synth.verifiers.math.nodes import Unread

MAX_DIGITS: Final = 2_000
"""Of one number; Python refuses to read more than 4,300 by default, as the time grows with their square."""
MAX_TOKENS: Final = 1_500


@dataclass(frozen=True, slots=True)
class Token:
    """kind: number, name (one symbol), word (text), function, command, operator. spaced: white space stands before."""

    kind: str
    text: str
    spaced: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Commas:
    """One reading of the commas within digits: grouping thousands, or before decimals, or parting a list."""

    thousands: bool
    decimal: bool


FUNCTIONS: Final = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "arcsin",
        "arccos",
        "arctan",
        "sinh",
        "cosh",
        "tanh",
        "ln",
        "log",
        "lg",
        "exp",
        "sqrt",
        "gcd",
        "lcm",
        "max",
        "min",
    ]
)
_UNITS: Final = {
    "mm": "mm", "cm": "cm", "dm": "dm", "km": "km", "m": "m", "ft": "ft", "in": "in", "mi": "mi", "kg": "kg",
    "g": "g", "mg": "mg", "lb": "lb", "lbs": "lb", "oz": "oz", "ml": "ml", "s": "s", "sec": "s", "min": "min",
    "hr": "h", "hrs": "h", "h": "h", "mph": "mile/h", "kmh": "km/h", "km/h": "km/h", "m/s": "m/s", "cents":
    "cent", "cent": "cent", "dollars": "dollar", "dollar": "dollar", "rad": "radian", "radians": "radian",
    "radian": "radian", "deg": "degree", "degree": "degree", "degrees": "degree", "second": "s", "seconds": "s",
    "minute": "min", "minutes": "min", "hour": "h", "hours": "h", "day": "day", "days": "day", "week": "week",
    "weeks": "week", "month": "month", "months": "month", "year": "year", "years": "year", "meter": "m",
    "meters": "m", "metre": "m", "metres": "m", "centimeter": "cm", "centimeters": "cm", "kilometer": "km",
    "kilometers": "km", "kilometre": "km", "kilometres": "km", "millimeter": "mm", "millimeters": "mm", "inch":
    "in", "inches": "in", "foot": "ft", "feet": "ft", "yard": "yd", "yards": "yd", "yd": "yd", "mile": "mile",
    "miles": "mile", "gram": "g", "grams": "g", "kilogram": "kg", "kilograms": "kg", "pound": "lb", "pounds":
    "lb", "ounce": "oz", "ounces": "oz", "liter": "l", "liters": "l", "litre": "l", "litres": "l",
    "milliliters": "ml", "usd": "dollar", "am": "am", "pm": "pm", "a.m": "am", "p.m": "pm",
}  # fmt: skip
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<words>\\(?:words|styled)\{[^{}]*\})|(?P<command>\\[A-Za-z]+|\\\\)"
    r"|(?P<letters>[A-Za-z]+)|(?P<operator>[-+*/^_!%=<>()\[\]{}|,;:&'\x02-\x06\x0e\x0f.])"
)
_PLAIN_NUMBER = r"\d+(?:\.\d+)?|\.\d+"
_GROUPED_NUMBER = r"\d{1,3}(?:[\x01,]\d{3})+(?!\d)(?:\.\d+)?|\d{1,3}(?: \d{3})+(?!\d)(?:\.\d+)?"
_DOTTED_NUMBER = r"\d{1,3}(?:\.\d{3})+,\d+|\d+,\d+"
_EXPONENT = r"(?:[eE][-+]?\d{1,6}(?![\d.]))?"


def _number_pattern(commas: Commas) -> re.Pattern[str]:
    kinds = [r"\d{1,3}(?:\x01\d{3})+(?!\d)(?:\.\d+)?|\d+\x01\d+|\d{1,3}(?: \d{3})+(?!\d)(?:\.\d+)?"]
    if commas.decimal:
        kinds.append(_DOTTED_NUMBER)
    if commas.thousands:
        kinds.append(_GROUPED_NUMBER)
    return re.compile(f"(?:{'|'.join([*kinds, _PLAIN_NUMBER])}){_EXPONENT}")


_NUMBERS = {
    (thousands, decimal): _number_pattern(Commas(thousands=thousands, decimal=decimal))
    for thousands in (False, True)
    for decimal in (False, True)
}


def unit_of(words: str) -> str:
    """A unit's one name, or the words themselves, in lower case; singular and plural of a known one are the same."""
    plain = re.sub(r"\s+", " ", words).strip(" .").lower()
    named = " ".join(_UNITS.get(word, word) for word in plain.split()).replace(" per ", "/")
    power = re.match(r"(square|sq\.?|cubic|cu\.?) (\w+)(.*)", named)
    return f"{power[2]}^{2 if power[1][0] == 's' else 3}{power[3]}" if power else _UNITS.get(plain, named)


def is_known_unit(name: str) -> bool:
    """Whether two units of other names are certainly other units."""
    return name.startswith("mod ") or re.split(r"[\^/ ]", name)[0] in _UNITS.values()


def tokenise(text: str, commas: Commas) -> list[Token]:
    """Tokens of a cleaned text. Raises Unread for a sign that no formula has, or where it is too long."""
    numbers = _NUMBERS[commas.thousands, commas.decimal]
    tokens: list[Token] = []
    at, spaced = 0, False
    while at < len(text):
        match = numbers.match(text, at)
        if match:
            written = match[0]
            if len(written) > MAX_DIGITS:
                raise Unread("a number of too many digits")
            tokens.append(Token("number", _as_point(written, commas), spaced))
        else:
            match = _TOKEN.match(text, at)
            if match is None:
                raise Unread("a sign that is not of mathematics")
            if match.lastgroup != "space":
                tokens.extend(_tokens_of(match.lastgroup or "", match[0], spaced, tokens))
        spaced = match.lastgroup == "space"
        at = match.end()
        if len(tokens) > MAX_TOKENS:
            raise Unread("too long")
    return tokens


def _as_point(written: str, commas: Commas) -> str:
    """A number as written, with a decimal point and nothing between its thousands."""
    if commas.decimal and re.fullmatch(rf"(?:{_DOTTED_NUMBER}){_EXPONENT}", written):
        return written.replace(".", "").replace(",", ".")
    return re.sub(r"[,\x01 ]", "", written)


def _tokens_of(kind: str, text: str, spaced: bool, before: list[Token]) -> list[Token]:
    if kind == "words":
        return _words(text[text.index("{") + 1 : -1], spaced, before)
    if kind == "command":
        name = text[1:]
        return [Token("function" if name in FUNCTIONS else "command", name, spaced)]
    if kind == "letters":
        return _letters(text, spaced, before)
    if kind != "operator":
        raise Unread("a sign that is not of mathematics")
    return [Token("operator", text, spaced)]


def _words(inner: str, spaced: bool, before: list[Token]) -> list[Token]:
    """Of \\text{...}: a formula in it is read, one letter is a name, anything else is words."""
    plain = inner.strip()
    if not plain:
        return []
    if before and before[-1].kind == "number" and plain in _UNITS:
        return [Token("word", plain, spaced)]
    if re.fullmatch(r"\(?[A-Za-z]\)?", plain):
        return [Token("name", plain.strip("()"), spaced)]
    if re.fullmatch(r"[-+]?[\d.,/ ]*\d%?", plain):
        return tokenise(plain, Commas(thousands=True, decimal=False))
    if quantity := re.fullmatch(r"([-+]?\d[\d.,]*) ([A-Za-z][A-Za-z ]*)", plain):
        return [*tokenise(quantity[1], Commas(thousands=True, decimal=False)), Token("word", quantity[2], True)]
    if plain.lower() in ("and", "or"):
        return [Token("operator", ",", spaced)]
    if plain in FUNCTIONS:
        return [Token("function", plain, spaced)]
    return [Token("word", plain, spaced)]


def _letters(text: str, spaced: bool, before: list[Token]) -> list[Token]:
    """Letters without a command: a function, a unit behind a number, a word, or a product of symbols."""
    lower = text.lower()
    if lower in ("and", "or"):
        return [Token("operator", "," if lower == "and" else "\x07", spaced)]
    if lower in FUNCTIONS and text[1:].islower():
        return [Token("function", lower, spaced)]
    if lower in ("pi", "infinity", "inf", "infty"):
        return [Token("command", "pi" if lower == "pi" else "infty", spaced)]
    if len(text) == 1:
        return [Token("name", text, spaced)]
    if lower == "per":
        return [Token("word", text, spaced)]
    known = (
        lower in _UNITS
        and bool(before)
        and (before[-1].kind in ("number", "word") or before[-1].text in ("}", "%", ")"))
    )
    capitalised = text[0].isupper() and text[1:].islower()
    if len(text) >= 4 or text.isupper() or capitalised or known:
        return [Token("word", text, spaced)]
    return [Token("name", letter, spaced and not at) for at, letter in enumerate(text)]
