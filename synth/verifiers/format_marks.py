"""Where a reply marks its answer: boxes, answer tags, "the answer is ...". Linear in the text, whatever it says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

TAIL_CHARS: Final = 20_000
"""Of a reply that are looked at: an answer stands at the end, and a hostile reply may be endless."""

How = Literal["boxed", "tagged", "stated"]

_BOX = re.compile(r"\\f?boxed\s*\{")
_BRACE = re.compile(r"\\[{}]|[{}]")
_OPEN_TAG = re.compile(r"<answer>", re.IGNORECASE)
_CLOSE_TAG = re.compile(r"</answer>", re.IGNORECASE)
_STATED = re.compile(
    r"\b(?:answer|choice|option)\b[*_]{0,2}\s*(?:\bis\b|\bwould be\b|\bmust be\b|[:=])\s*:?\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A marked answer: its text, and how it was marked."""

    text: str
    how: How


def marks(text: str) -> list[Mark]:
    """All marked answers, boxes first, then tags, then statements; those of a kind in the order of the text.

    A box or tag that is never closed was cut off and is none. A statement's text goes to the end of its line, or to
    where the next one starts.
    """
    tail = text[-TAIL_CHARS:]
    boxed = [Mark(text=inside, how="boxed") for inside in boxes(tail)]
    tagged = [Mark(text=inside, how="tagged") for inside in _tagged(tail)]
    return [*boxed, *tagged, *(Mark(text=rest, how="stated") for rest in _stated(tail))]


def strongest(text: str) -> list[Mark]:
    """The marks of the strongest kind that there is: a box says more than a tag, a tag more than a sentence."""
    found = marks(text)
    return [mark for mark in found if mark.how == found[0].how]


def _stated(text: str) -> list[str]:
    found = list(_STATED.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)] * bool(found)
    return [text[match.end() : end].partition("\n")[0] for match, end in zip(found, ends, strict=True)]


def boxes(text: str) -> list[str]:
    r"""What stands in each whole \boxed{...}, outermost ones only."""
    found = []
    starts = [match.end() for match in _BOX.finditer(text)]
    closings = _closings(text, set(starts))
    end = 0
    for start in starts:
        if start >= end and (closing := closings.get(start)) is not None:
            found.append(text[start:closing].strip())
            end = closing
    return found


def _closings(text: str, starts: set[int]) -> dict[int, int]:
    """For each start, a position behind an opening brace, where that brace closes; one pass over all braces."""
    closings: dict[int, int] = {}
    opened: list[int] = []
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.end())
        elif brace[0] == "}" and opened:
            start = opened.pop()
            if start in starts:
                closings[start] = brace.start()
    return closings


def _tagged(text: str) -> list[str]:
    found = []
    at = 0
    while opening := _OPEN_TAG.search(text, at):
        closing = _CLOSE_TAG.search(text, opening.end())
        if closing is None:
            break
        found.append(text[opening.end() : closing.start()].strip())
        at = closing.end()
    return found
