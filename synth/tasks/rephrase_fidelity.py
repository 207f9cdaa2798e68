"""Whether a rewritten text still says what its source says, by rule, with a reason for each way in which it does not.

Kimi K2 (arXiv:2507.20534) checks each rewritten chunk against its source with a model; here numbers, names and words
are counted, which costs nothing and cannot be talked round. It does not see a claim that is turned into its contrary
by the same words: for that, judge the kept samples.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict
from dataclasses import dataclass as plain_dataclass
from typing import Final

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.tasks.rephrase_text import (
    names,
    names_share,
    ngrams,
    numbers,
    numbers_said,
    sentences,
    share,
    stems,
    words,
)

COPY_WORDS: Final = 8
"""Runs of so many words count as copied: Tulu 3 (arXiv:2411.15124) calls that much an overlap."""

LONG_SENTENCE: Final = 5
"""Words from which on a sentence can be told from others that happen to say the same."""

EDGE_STEMS: Final = 4
"""Content words that stand nowhere else in the source, from which on a sentence must leave a trace."""


@plain_dataclass(frozen=True, kw_only=True)
class Fidelity:
    """Shares: of the source's numbers, names and content words that the rewriting has; of the rewriting's numbers and
    names that the source has; of its 8-word runs that are the source's. length_ratio: its characters to the source's.
    """

    number_recall: float
    name_recall: float
    word_recall: float
    number_precision: float
    name_precision: float
    copied: float
    length_ratio: float

    def figures(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Bounds:
    """What a rewriting must keep to. The shares are those of Fidelity; 0 (for max_copied, 1) switches one off.

    min_edge_recall: of what a source's first and last sentence alone say, lest one is lost at a seam.
    The numbers of each style are our own; which planted faults they find is measured in the tests of this module.
    """

    min_number_recall: float = Field(default=0.8, ge=0, le=1)
    min_name_recall: float = Field(default=0.7, ge=0, le=1)
    min_word_recall: float = Field(default=0.4, ge=0, le=1)
    min_number_precision: float = Field(default=0.9, ge=0, le=1)
    min_name_precision: float = Field(default=0.7, ge=0, le=1)
    max_copied: float = Field(default=0.8, ge=0, le=1)
    min_length_ratio: float = Field(default=0.5, ge=0)
    max_length_ratio: float = Field(default=2.0, gt=0)
    min_edge_recall: float = Field(default=0.15, ge=0, le=1)

    def broken(self, told: Fidelity) -> str:
        """The first rule that a rewriting breaks, "" for none."""
        rules = (
            ("too_short", told.length_ratio < self.min_length_ratio),
            ("too_long", told.length_ratio > self.max_length_ratio),
            ("numbers_lost", told.number_recall < self.min_number_recall),
            ("names_lost", told.name_recall < self.min_name_recall),
            ("words_lost", told.word_recall < self.min_word_recall),
            ("numbers_invented", told.number_precision < self.min_number_precision),
            ("names_invented", told.name_precision < self.min_name_precision),
            ("copied", told.copied > self.max_copied),
        )
        return next((f"fidelity.{name}" for name, broken in rules if broken), "")


def fidelity(source: str, rewriting: str) -> Fidelity:
    """The figures of a rewriting. Any two texts have them."""
    runs = ngrams(rewriting, COPY_WORDS)
    return Fidelity(
        number_recall=share(numbers(source), numbers_said(rewriting)),
        name_recall=names_share(names(source), rewriting),
        word_recall=share(stems(source), frozenset(stems(rewriting))),
        number_precision=share(numbers(rewriting), numbers_said(source)),
        name_precision=names_share(names(rewriting), source),
        copied=share(runs, frozenset(ngrams(source, COPY_WORDS))) if runs else 0.0,
        length_ratio=len(rewriting) / max(1, len(source)),
    )


def edge_lost(source: str, rewriting: str, least: float) -> str:
    """seam.start_lost or seam.end_lost where less than this share of what only the source's first, or last, telling
    sentence says is in the rewriting; "" where both left their trace."""
    there = frozenset(stems(rewriting))
    told = [stems(one) for one in sentences(source)]
    times = Counter(stem for one in told for stem in one)
    telling = [own for one in told if len(own := [stem for stem in one if times[stem] == 1]) >= EDGE_STEMS]
    if telling and share(telling[0], there) < least:
        return "seam.start_lost"
    return "seam.end_lost" if telling and share(telling[-1], there) < least else ""


class Seen:
    """Long sentences of the texts so far."""

    def __init__(self) -> None:
        self._sentences: set[tuple[str, ...]] = set()

    def add(self, text: str) -> None:
        self._sentences.update(_long(text))

    def repeats(self, text: str) -> int:
        """How many long sentences of a text were seen, or stand in it a second time."""
        told = _long(text)
        return len(told) - len(set(told) - self._sentences)


def _long(text: str) -> list[tuple[str, ...]]:
    return [told for one in sentences(text) if len(told := words(one)) >= LONG_SENTENCE]


def leaks(text: str, hidden: str, known: str = "", size: int = COPY_WORDS) -> bool:
    """Whether a text holds a run of so many words of what should not be seen, and that is not in what is known."""
    return bool((ngrams(text, size) & ngrams(hidden, size)) - ngrams(known, size))


_MADE: Final = r"(?:re-?(?:written|phrased|worded)|paraphras\w+|revis\w+|simplif\w+|summar\w+|version|condensed)"
_OPENING: Final = re.compile(
    r"\W*(?:(?:sure|certainly|absolutely|of course|okay|ok|great|understood)\b\W{1,3}(?:here|below|i |let|$)"
    rf"|(?:here|below)(?:['\u2019]s| is| are)\b[^\n]{{0,80}}?(?:\b{_MADE}|:\s*$)"
    rf"|i(?:['\u2019]ve| have| will|['\u2019]ll)? {_MADE}"
    rf"|(?:the )?{_MADE} (?:text|version|passage|paragraph|answer)\W*:"
    r"|as an ai\b|i(?:['\u2019]m| am) (?:sorry|unable|an ai)\b|i (?:can(?:not|['\u2019]t)|apologi[sz]e)\b)",
    re.I | re.M,
)
_CLOSING: Final = re.compile(
    r"\b(?:let me know if|i hope (?:this|that|it)\b|feel free to (?:ask|let me)|is there anything else"
    r"|would you like me to|do you want me to)"
    rf"|^\W*note\W{{1,3}}(?:i|this {_MADE}|the {_MADE})\b",
    re.I | re.M,
)
EDGE_CHARACTERS: Final = 300


def chatter(text: str, source: str = "") -> bool:
    """Whether a text begins or ends as an assistant who speaks to its user ("Here is ..."), and its source does not.

    In English alone.
    """
    opens = _OPENING.match(text[:EDGE_CHARACTERS]) and not _OPENING.match(source[:EDGE_CHARACTERS])
    closes = _CLOSING.search(text[-EDGE_CHARACTERS:]) and not _CLOSING.search(source[-EDGE_CHARACTERS:])
    return bool(opens or closes)
