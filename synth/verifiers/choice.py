"""The `choice` kind: the letter of one option, found in whatever words a reply wraps it, or refused as ambiguous."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from string import ascii_uppercase
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.verdicts import Outcome, Verdict
from synth.verifiers.exact import Normalisation, normalised
from synth.verifiers.format_marks import TAIL_CHARS, Mark, strongest
from synth.verifiers.verifier import read_options

_LETTER = re.compile(r"(?<![A-Za-z0-9])([A-Z])(?![A-Za-z0-9'\u2019])")
_ONLY = re.compile(r"[\s*_`$(\[{\\]*(?:\\?text(?:bf|rm)?\s*\{)?\s*\(?([A-Za-z])[\s)\].:,;!*_`$}\\]*$")
_LED = re.compile(r"[\s*_`$(\[\\]*(?:text(?:bf|rm)?\s*\{)?\(?([A-Za-z])(?:[)\].:}]|\*\*)+\s*\S")
_NOUN = re.compile(r"^[\s*_`]*(?:the\s+)?(?:correct\s+)?(?:option|choice|answer|letter)\s*[:#]?\s*", re.IGNORECASE)
_NEGATED = re.compile(r"^[\s*_`]*(?:not|neither|isn't|cannot|never|definitely not|certainly not)\b", re.IGNORECASE)
_SEVERAL = re.compile(
    r"^[\s*_`$(]*\(?([A-Z])\)?[\s*_`$)]*(?:,|/|&|\bor\b|\band\b)[\s*_`$(]*(?:option\s+|choice\s+)?\(?([A-Z])\b"
)
# A and I are words, too: as letters only before what cannot follow these words.
_START = re.compile(
    r"[\s*_`$(]*([A-Z])(?![A-Za-z0-9'\u2019])(?:(?<![AI])|(?!\s+[a-z])|(?=\s+(?:because|since|as|for)\b))"
)
_MENTIONED = re.compile(r"(?<![A-Za-z0-9])(?:\(([A-Z])\)|([A-Z])[.):](?=\s|\*|$)|\*\*([A-Z])\*\*)")
_PREFIX = re.compile(r"^\s*\(?[A-Z]\s*[).:]\s*")
_TEXTS: Final = Normalisation()
AMBIGUOUS: Final = "ambiguous"


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Choices:
    """How a letter is read.

    choices: the options' texts, in order; then an answer may give an option's text instead of its letter, and a letter
        with the text of another option is ambiguous. A letter before a text ("A) 5") is left away.
    count: how many options there are where their texts are not given; letters beyond are no answers.
    several: marks of the strongest kind that name different letters: the last is the answer, for a reply may think
        again, or refuse them as ambiguous.
    mentions: a reply that marks nothing, and mentions several letters as (B) or B.: refuse it as ambiguous, or take
        the last.
    """

    choices: tuple[str, ...] = ()
    count: int = Field(default=10, ge=2, le=26)
    several: Literal["last", "refuse"] = "last"
    mentions: Literal["refuse", "last"] = "refuse"

    @property
    def letters(self) -> str:
        """The letters that are options."""
        return ascii_uppercase[: min(len(self.choices), 26) or self.count]

    @property
    def texts(self) -> tuple[str, ...]:
        """The options as they are compared, without letters before them."""
        prefixed = [_PREFIX.match(text) for text in self.choices]
        lettered = bool(self.choices) and all(
            match and letter in match[0] for match, letter in zip(prefixed, self.letters, strict=False)
        )
        return tuple(normalised(_PREFIX.sub("", text) if lettered else text, _TEXTS) for text in self.choices)


@plain_dataclass(frozen=True, kw_only=True)
class Found:
    """What was read: a letter, AMBIGUOUS or "" for none; and where: boxed, tagged, stated, alone, mentioned."""

    letter: str
    how: str


class Choice:
    """Right if the letter that is read is the gold's.

    gold: a letter ("B", "(B)"), an option's text, or its number from 0 as benchmarks such as MMLU have it. Read in
    this order, the first kind of mark that there is deciding: \\boxed{}, <answer>, "the answer is", a reply or a last
    line that is the letter alone or starts with it, letters mentioned as (B) or B. A sentence that names two letters,
    or says "not", decides nothing. Wrong answers tell why: different, ambiguous, no_answer.
    """

    kind = "choice"
    version = "1"

    def verify(self, gold: Any, answer: str, options: Mapping[str, Any]) -> Verdict:
        settings = read_options(Choices, options, kind=self.kind)
        wanted = gold_letter(gold, settings)
        if not wanted:
            return Verdict(outcome=Outcome.ERROR, reason="gold_is_no_option")
        found = letter_of(answer, settings)
        if found.letter in ("", AMBIGUOUS):
            return Verdict(outcome=Outcome.WRONG, reason=found.letter or "no_answer")
        same = found.letter == wanted
        return Verdict(outcome=Outcome.RIGHT if same else Outcome.WRONG, reason=found.how if same else "different")


def gold_letter(gold: Any, settings: Choices) -> str:
    """The letter of a gold, "" for one that names no option."""
    letters = settings.letters
    if isinstance(gold, bool) or not isinstance(gold, str | int):
        return ""
    if isinstance(gold, int):
        return letters[gold] if 0 <= gold < len(letters) else ""
    if len(gold) < 80 and (match := _ONLY.match(gold)) and match[1].upper() in letters:
        return match[1].upper()
    named = _by_text(gold, settings.texts, letters)
    return named if len(named) == 1 else ""


def letter_of(answer: str, settings: Choices) -> Found:
    """The letter that a reply answers with."""
    letters, texts = settings.letters, settings.texts
    found = strongest(answer)
    read = [(mark, _in_mark(mark, letters, texts)) for mark in found]
    said = [letter for mark, letter in read if letter or mark.how != "stated"]
    if said:
        several = len(set(said)) > 1 and settings.several == "refuse"
        return Found(letter=AMBIGUOUS if several else said[-1], how=found[0].how)
    tail = answer[-TAIL_CHARS:]
    mentioned = [next(filter(None, groups)) for groups in _MENTIONED.findall(tail)]
    mentioned = [letter for letter in mentioned if letter in letters]
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    ends = lines[-1:] + lines[:1]
    # A line that only starts with a letter may be one of a list of options, or go on to another letter.
    for line in [*filter(_is_letter, ends), *(ends if len(set(mentioned)) <= 1 else [])]:
        if letter := _leading(line, letters, texts):
            return Found(letter=letter, how="alone")
    if len(lines) == 1 and (named := _by_text(lines[0], texts, letters)):
        return Found(letter=named if len(named) == 1 else AMBIGUOUS, how="alone")
    several = len(set(mentioned)) > 1 and settings.mentions == "refuse"
    return Found(letter=AMBIGUOUS if several else (mentioned[-1] if mentioned else ""), how="mentioned")


def _in_mark(mark: Mark, letters: str, texts: Sequence[str]) -> str:
    """A mark's letter, AMBIGUOUS, or "" where it names none."""
    text = _NOUN.sub("", mark.text.strip(), count=1)
    if _NEGATED.match(text[:80]):
        return ""
    if (several := _SEVERAL.match(text[:80])) and several[1] != several[2] and {several[1], several[2]} <= set(letters):
        return AMBIGUOUS
    if letter := _leading(text, letters, texts):
        return letter
    # The whole mark first, as an option's text may hold full stops; then its first sentence.
    for part in (text, re.split(r"[.;]\s|\n", text, maxsplit=1)[0]):
        if named := _by_text(part, texts, letters):
            return named if len(named) == 1 else AMBIGUOUS
    if (start := _START.match(text[:80])) and start[1] in letters:
        return start[1]
    inside = {letter for letter in _LETTER.findall(text) if letter in letters} if mark.how != "stated" else set()
    return inside.pop() if len(inside) == 1 else AMBIGUOUS if inside else ""


def _is_letter(line: str) -> bool:
    return len(line) < 80 and _ONLY.match(line) is not None


def _leading(text: str, letters: str, texts: Sequence[str]) -> str:
    """The letter that a text is, or starts with as in "B. Paris"; AMBIGUOUS where another option's text follows."""
    text = text.strip()
    if len(text) < 80 and (only := _ONLY.match(text)) and only[1].upper() in letters:
        return only[1].upper()
    led = _LED.match(text[:80])
    if not led or led[1] not in letters:
        return ""
    behind = _by_text(text[led.end() - 1 :], texts, letters)
    return AMBIGUOUS if behind and led[1] not in behind else led[1]


def _by_text(text: str, texts: Sequence[str], letters: str) -> str:
    """Letters of the options whose text this is, in order; "" for none."""
    if not texts:
        return ""
    plain = normalised(text[:TAIL_CHARS], _TEXTS)
    return "".join(letter for letter, option in zip(letters, texts, strict=False) if option and option == plain)
