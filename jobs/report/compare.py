"""Two texts side by side: where they first differ, and which words differ from there on."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field

from jobs.report.visible import CUT, visible

BEFORE = 120
_WORDS = re.compile(r"\s+|[^\s]+")

Piece = tuple[str, bool]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Pieces (text, differs) of both texts, made visible. same_until: characters that both begin with; None = not
    known."""

    same_until: int | None = None
    left: list[Piece] = field(default_factory=list)
    right: list[Piece] = field(default_factory=list)


def compare(left: str | None, right: str | None, most: int = CUT) -> Comparison:
    """Compare two texts of which either may be missing; at most `most` characters of each are shown."""
    if left is None or right is None:
        return Comparison(left=_whole(left, most), right=_whole(right, most))
    same = _common(left, right)
    differ = same < max(len(left), len(right))
    start = left.rfind(" ", 0, max(same - BEFORE, 0)) + 1 if differ and same > BEFORE else 0
    one, two = _WORDS.findall(left[start : start + most]), _WORDS.findall(right[start : start + most])
    matcher = difflib.SequenceMatcher(None, one, two, autojunk=False)
    head = [("\u2026", False)] if start else []
    shown_left, shown_right = list(head), list(head)
    for tag, a, b, c, d in matcher.get_opcodes():
        for shown, words in ((shown_left, one[a:b]), (shown_right, two[c:d])):
            if words:
                shown.append((visible("".join(words)), tag != "equal"))
    for shown, text in ((shown_left, left), (shown_right, right)):
        if len(text) > start + most:
            shown.append(("\u2026", False))
    return Comparison(same_until=same if differ else None, left=shown_left, right=shown_right)


def _whole(text: str | None, most: int) -> list[Piece]:
    if text is None:
        return []
    return [(visible(text[:most]) + ("\u2026" if len(text) > most else ""), False)]


def _common(left: str, right: str) -> int:
    """Length of the common beginning."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
