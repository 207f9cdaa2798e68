"""For a gold, answers that are right or wrong by how they are made, whatever a verifier may say of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from string import ascii_uppercase
from typing import Any, Final

Made = tuple[str, str]
"""How an answer was made, and the answer."""


@dataclass(frozen=True, kw_only=True)
class Variants:
    """Answers to plant."""

    right: Sequence[Made] = ()
    wrong: Sequence[Made] = ()


_INTEGER = re.compile(r"-?\d{1,15}")
_DECIMAL = re.compile(r"(-?\d{1,12})\.(\d{1,8})")
_FRACTION = re.compile(r"(-?)(?:\\[dt]?frac\s*\{(\d{1,9})\}\s*\{(\d{1,9})\}|(\d{1,9})/(\d{1,9}))")
_TERM = re.compile(r"(?=.*[\d\\^+])(?:\\(?:d?frac|sqrt|pi|left|right|cdot)(?![a-z])|[0-9a-zA-Z{}()^+\-*/ .])+")
_WRAPPED: Final = (
    ("boxed", r"So it is \boxed{%s}."),
    ("stated", "Of 12 and 30 we take neither. The final answer is $%s$."),
    ("boxed_behind_steps", "First 3 + 4 = 7.\n\nThen the rest follows.\n\n$$\\boxed{%s}$$"),
)


def math(gold: Any, options: Mapping[str, Any]) -> Variants:
    """Of numbers: other spellings of the value, and neighbours of it. Of other terms: the term itself, and it plus 1.
    What is neither (sets, equations, words) gets right answers only. Nothing that a policy may decide either way."""
    text = str(gold).strip()
    value = number(text)
    if value is None:
        more = f"{text}+1"
        term = _TERM.fullmatch(text) and options.get("rounding", "exact") == "exact"
        return Variants(right=_wrapped("as_written", text), wrong=_wrapped("plus_one", more) if term else ())
    right = [("as_written", text), *(("other_spelling", spelling) for spelling in spellings(value))]
    near = [("sign", -value), ("tenfold", value * 10)]
    if options.get("rounding", "exact") != "tolerance":
        near += [("plus_one", value + 1), ("minus_one", value - 1), ("digits", _transposed(value))]
    wrong = [(how, spelling) for how, other in near if other != value for spelling in spellings(other)[:1]]
    return Variants(
        right=[made for how, spelling in right for made in _wrapped(how, spelling)],
        wrong=[made for how, spelling in wrong for made in _wrapped(how, spelling)],
    )


def number(text: str) -> Fraction | None:
    """The value of a plain integer, decimal or fraction."""
    bare = text.replace(",", "") if re.fullmatch(r"-?\d{1,3}(,\d{3})+", text) else text
    if _INTEGER.fullmatch(bare) or _DECIMAL.fullmatch(bare):
        return Fraction(bare)
    if match := _FRACTION.fullmatch(bare):
        above, below = match[2] or match[4], match[3] or match[5]
        return Fraction(int(match[1] + above), int(below)) if int(below) else None
    return None


def spellings(value: Fraction) -> list[str]:
    """Ways to write a value, the plainest first."""
    sign, above, below = "-" if value < 0 else "", abs(value.numerator), value.denominator
    if below == 1:
        written = [f"{sign}{above}", f"{sign}{above}.0", f"{sign}\\frac{{{2 * above}}}{{2}}"]
        return [*written, f"{sign}{above:,}"] if above >= 1_000 else written
    written = [
        f"{sign}\\frac{{{above}}}{{{below}}}",
        f"{sign}{above}/{below}",
        f"{sign}\\dfrac{{{3 * above}}}{{{3 * below}}}",
    ]
    if 10**8 % below == 0:
        decimal = f"{above * 10**8 // below:09d}"
        written.append(f"{sign}{decimal[:-8]}.{decimal[-8:].rstrip('0')}")
    return written


def _transposed(value: Fraction) -> Fraction:
    """With its first two digits that differ swapped."""
    digits = str(abs(value.numerator))
    for at in range(len(digits) - 1):
        if digits[at] != digits[at + 1] and (at or digits[1] != "0"):
            swapped = digits[:at] + digits[at + 1] + digits[at] + digits[at + 2 :]
            return Fraction(int(swapped), value.denominator) * (-1 if value < 0 else 1)
    return value


def _wrapped(how: str, answer: str) -> list[Made]:
    return [(f"{how}, {name}", form % answer) for name, form in _WRAPPED]


def exact(gold: Any, options: Mapping[str, Any]) -> Variants:
    """Of the first gold: what normalisation makes alike, as far as the options have it do so; and the gold with a
    letter less, a word less or a word more."""
    golds = [str(one) for one in gold] if isinstance(gold, list | tuple) else [str(gold)]
    text = golds[0].strip()
    if not _bare(text):
        return Variants()  # signs alone: what is at their edges is for nobody to say
    right = [("as_written", text)]
    if options.get("case", "ignore") == "ignore":
        right += [("case", form) for form in (text.upper(), text.lower()) if form.casefold() == text.casefold()]
    if options.get("white_space", "ignore") == "ignore":
        right.append(("white_space", f"  {text.replace(' ', '  ')}\n"))
    if options.get("punctuation", "edges") != "match":
        right += [("full_stop", f"{text}."), ("quotes", f'"{text}"')]
    if options.get("articles", "match") == "drop":
        right.append(("article", f"the {text}"))
    if options.get("unicode", "NFC") != "none" and unicodedata.normalize("NFD", text) != text:
        right.append(("decomposed", unicodedata.normalize("NFD", text)))
    known = {_bare(one) for one in golds}
    wrong = [("not", f"not {text}"), ("word_more", f"{text} mostly")]
    if long := re.search(r"[^\W\d_]{4,}", text):
        wrong.append(("letter_less", text[: long.start() + 1] + text[long.start() + 2 :]))
    if " " in text:
        wrong.append(("word_less", text.rsplit(None, 1)[0]))
    wrong = [(how, answer) for how, answer in wrong if _bare(answer) not in known and _bare(answer)]
    form = {"marked": "I thought of other things first.\nThe answer is %s", "last_line": "Other things.\n%s"}
    wrap = form.get(str(options.get("part", "whole")), "%s")
    return Variants(
        right=[(how, wrap % answer) for how, answer in right], wrong=[(how, wrap % answer) for how, answer in wrong]
    )


def _bare(text: str) -> str:
    return "".join(re.findall(r"[^\W_]+", unicodedata.normalize("NFC", text).casefold()))


def choice(gold: Any, options: Mapping[str, Any]) -> Variants:
    """The gold's letter, and another, in the ways that replies give letters; two at once, and the letter denied."""
    letters = ascii_uppercase[: len(options.get("choices", ())) or options.get("count", 10)]
    if isinstance(gold, int) and not isinstance(gold, bool) and 0 <= gold < len(letters):
        letter = letters[gold]
    else:
        letter = str(gold).strip("() .").upper()
    if len(letter) != 1 or letter not in letters or len(letters) < 2:
        return Variants()
    other = letters[(letters.index(letter) + 1) % len(letters)]
    forms = [
        ("alone", "{0}"), ("in_brackets", "({0})"), ("with_stop", "{0}."), ("bold", "**{0}**"),
        ("boxed", r"Hence $\boxed{{{0}}}$."), ("boxed_text", r"\boxed{{\text{{{0}}}}}"),
        ("tagged", "<answer>{0}</answer>"), ("stated", "The answer is {0}."),
        ("stated_after_another", "({1}) looks right, but is not. The answer is ({0})."),
        ("last_line", "Let us see what holds.\n\n{0}"),
        ("corrected", "The answer is {1}. No, wait: the answer is {0}."),
    ]  # fmt: skip
    undecided = [
        ("two_at_once", f"The answer is {letter} or {other}."),
        ("two_boxed", rf"\boxed{{{letter}, {other}}}"),
        ("two_mentioned", f"It could be ({letter}), but it could be ({other}) as well"),
        ("denied", f"The answer is not ({letter}), and not ({other})."),
    ]
    if options.get("several", "last") == "refuse":
        forms = [form for form in forms if form[0] != "corrected"]
    if options.get("mentions", "refuse") == "last":
        undecided = undecided[:2]
    return Variants(
        right=[(how, form.format(letter, other)) for how, form in forms],
        wrong=[(how, form.format(other, letter)) for how, form in forms] + undecided,
    )


PLANTERS: Final[dict[str, Callable[[Any, Mapping[str, Any]], Variants]]] = {
    "choice": choice,
    "exact": exact,
    "math": math,
}
"""Kinds that answers can be planted for. The others have golds that say what is checked, not what is right."""
