"""The program in an answer."""

from __future__ import annotations

import re
from typing import Final

MAX_CHARS: Final = 1_000_000
"""Of an answer. A program of a million characters is none that a task asked for."""

_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^\n`]*$", re.MULTILINE)
_TAGS: Final = {
    "python": {"python", "python3", "py", "py3"},
    "javascript": {"javascript", "js", "node"},
    "c": {"c"},
    "cpp": {"cpp", "c++", "cc", "cxx"},
}


def program_of(answer: str, language: str, part: str) -> str | None:
    """The last block of the language; of blocks, only ones without a language count besides. None where the answer
    holds no program: it is empty, too long, or all its blocks are of other languages."""
    if len(answer) > MAX_CHARS:
        return None
    if part == "whole":
        return answer if answer.strip() else None
    blocks = fenced_blocks(answer)
    if not blocks:
        return answer if answer.strip() else None
    own = [text for tag, text in blocks if tag in _TAGS[language]]
    candidates = own or [text for tag, text in blocks if not tag]
    return candidates[-1] if candidates and candidates[-1].strip() else None


def fenced_blocks(answer: str) -> list[tuple[str, str]]:
    """(language tag in lower case, text) of each block as CommonMark reads fences: one that nothing closes ends with
    the text, as a truncated answer's does."""
    blocks: list[tuple[str, str]] = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(answer):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2]:
            blocks.append((opened[2].lower().strip("{}."), answer[opened.end() + 1 : fence.start()]))
            opened = None
    if opened is not None:
        blocks.append((opened[2].lower().strip("{}."), answer[opened.end() + 1 :]))
    return blocks
