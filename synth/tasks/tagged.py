"""Reads what a teacher was asked to put between tags. Linear in the text, whatever it is, and never a guess."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from synth.tasks.candidates import Candidate

MOST: Final = 100
"""Parts that are read of one reply at most."""


def inside(text: str, tag: str) -> str | None:
    """What stands between the first <tag> and the </tag> behind it, None where there are not both."""
    parts = every(text, tag, most=1)
    return parts[0] if parts else None


def every(text: str, tag: str, most: int = MOST) -> list[str]:
    """All that stands between such tags, in order, without the white space around it."""
    found: list[str] = []
    opening, closing, at = f"<{tag}>", f"</{tag}>", 0
    while len(found) < most and (start := text.find(opening, at)) >= 0:
        end = text.find(closing, start)
        if end < 0:
            break
        # An opening tag that is not closed before the next one is no part of what that one holds.
        start = text.rfind(opening, start, end) + len(opening)
        found.append(text[start:end].strip())
        at = end + len(closing)
    return found


def taken(candidate: Candidate, tag: str) -> Candidate:
    """With the tag's text, or rejected: parse.no_tag, parse.empty_tag."""
    if not candidate.open:
        return candidate
    text = inside(candidate.answer, tag)
    if text is None:
        return candidate.rejected("parse.no_tag")
    return replace(candidate, text=text) if text else candidate.rejected("parse.empty_tag")


def word_of(text: str, words: Sequence[str]) -> str | None:
    """The one of `words` that a reply is, begins with (before a mark or a new line) or ends with.

    None where it says none of them there, begins with one and ends with another, or ends with a line of several.
    """
    any_of = "|".join(re.escape(word) for word in words)
    begins = re.match(rf"\W*({any_of})(?:[^\w\s]|[ \t]*\n|\s*$)", text[:200], re.I)
    last = text[-200:].rstrip().rpartition("\n")[2]
    ends = re.search(rf"\b({any_of})\W*$", last, re.I)
    said = {found.casefold() for found in re.findall(rf"\b({any_of})\b", last, re.I)} if ends else set()
    if begins:
        said.add(begins[1].casefold())
    return next((word for word in words if {word.casefold()} == said), None)
