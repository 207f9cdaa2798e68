"""Where in a reply its answer stands. The end of a reply counts, and only what follows its reasoning."""

from __future__ import annotations

import re
from typing import Final

TAIL_CHARS: Final = 20_000
"""Of a reply that are looked at: an answer stands at the end, and a hostile reply may be endless."""

_CONTROL = re.compile(r"<\|[A-Za-z_]{1,24}\|>")
_BOX = re.compile(r"\\f?boxed\s*(\{|(?=[\w.\-]))")
_MARKER = re.compile(
    r"(?:\b(?:final\s{1,8}|correct\s{1,8})?answer\b(?:\s{1,8}to\s[^.\n]{1,60}?)?\s{0,8}\*{0,3}\s{0,8}"
    r"(?:is|are|:|=|(?=\$|\\\(|\\\[))\s{0,8}:?|(?m:^)[ \t]{0,8}####)\s{0,8}\*{0,3}\s{0,8}",
    re.IGNORECASE,
)
_TAG = re.compile(r"<answer>(.{0,2000}?)</answer>", re.DOTALL | re.IGNORECASE)
_MATH = re.compile(
    r"\$\$(.{1,2000}?)\$\$|\\\[(.{1,2000}?)\\\]|\\\((.{1,2000}?)\\\)|(?<!\\)\$([^$]{1,2000}?)(?<!\\)\$", re.DOTALL
)
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_NUMBER = re.compile(
    r"(?<![\w.])[-+\u2212]?[$\u20ac\u00a3]?(?:\d{1,3}(?:[, ]\d{3})+(?:\.\d+)?|\d+[.,]\d+|\d+|\.\d+)(?:/\d+|\s?\\?%)?"
)
_SENTENCE_END = re.compile(r"\.\s+(?=[A-Z])|\.\s*$|\n")
_ONLY_JOINING = re.compile(r"(?:[\s,;&]|\\[,;:! ]|\\quad|\\qquad|and\b|or\b)*")
_ENDS_JOINING = re.compile(r"[^.\n=]{0,60}\b(?:and|or)\s*")


def boxes(text: str) -> list[tuple[int, int, str]]:
    """(start, end, content) of each whole \\boxed{...}; one whose brace is never closed was cut off and is none."""
    found = []
    at = 0
    closings = _closings(text)
    while match := _BOX.search(text, at):
        if match[1]:
            end = closings.get(match.end() - 1)
            if end is None:
                at = match.end()
                continue
            found.append((match.start(), end + 1, text[match.end() : end]))
            at = end + 1
        else:
            bare = re.compile(r"[-\w.]+").match(text, match.end())
            at = bare.end() if bare else match.end()
            found.append((match.start(), at, text[match.end() : at]))
    return found


def _closings(text: str) -> dict[int, int]:
    """Where each opening brace is closed."""
    open_at: list[int] = []
    closed = {}
    for brace in re.finditer(r"\\[{}]|[{}]", text):
        if brace[0] == "{":
            open_at.append(brace.start())
        elif brace[0] == "}" and open_at:
            closed[open_at.pop()] = brace.start()
    return closed


def _joining(between: str) -> bool:
    """Whether two results with this between them are one answer: `, and`, `papers and`, but not `. So`."""
    if "\n\n" in between:
        return False
    words = re.sub(r"\\(?:text|mbox|textrm|mathrm)\s*\{([^{}]*)\}|\\[()\[\]]|[$*]", r"\1", between)
    words = words.replace("\\n", "\n")
    return _ONLY_JOINING.fullmatch(words) is not None or _ENDS_JOINING.fullmatch(words) is not None


def _joined(text: str, parts: list[tuple[int, int, str]], *, after: int = 0) -> str:
    """The last part, with those before it that belong to the same answer."""
    chosen = [parts[-1]]
    for part in reversed(parts[:-1]):
        if part[0] < after or not _joining(text[part[1] : chosen[0][0]]):
            break
        chosen.insert(0, part)
    contents = list(dict.fromkeys(content.strip() for _, _, content in chosen))
    return ", ".join(contents)


def after_reasoning(text: str) -> str:
    """What follows the last closing think tag; nothing where a reply ends within its reasoning."""
    for opening, closing in (("<think>", "</think>"), ("[THINK]", "[/THINK]")):
        at = text.rfind(closing)
        if at >= 0:
            text = text[at + len(closing) :]
        if opening in text:
            text = text[: text.index(opening)]
    return text


def extract(text: str, *, bare_numbers: bool = True) -> tuple[str, str]:
    """(answer, how it was found) of a reply: box, tag, marker, whole, math, bold, number; ("", "none") where a reply
    marks nothing that is an answer."""
    text = after_reasoning(text)[-TAIL_CHARS:]
    turns = [turn for turn in _CONTROL.split(text) if turn.strip()]
    text = turns[0] if turns else ""
    found = boxes(text)
    markers = list(_MARKER.finditer(text))
    if found and not (markers and markers[-1].start() > found[-1][1] and markers[-1][0].lower().startswith("final")):
        answer = _joined(text, found)
        rest = re.match(r"[\s$*]*(\\?%|percent(?:age)?\b|pct\b)", text[found[-1][1] :])
        return (f"{answer} %" if rest and answer else answer), "box"
    if "\\boxed{" in text and not found:
        return "", "none"  # cut off within its box
    if tags := _TAG.findall(text):
        return tags[-1].strip(), "tag"
    if markers:
        marked = text[markers[-1].end() :].lstrip()
        if marked:
            return _first_statement(marked, bare_numbers), "marker"
    return _unmarked(text, bare_numbers)


def _unmarked(text: str, bare_numbers: bool) -> tuple[str, str]:
    """The answer of a text that says nowhere which it is."""
    stripped = text.strip()
    if _is_bare(stripped):
        return stripped, "whole"
    if segments := [(match.start(), match.end(), next(filter(None, match.groups()))) for match in _MATH.finditer(text)]:
        after = list(_NUMBER.finditer(text, segments[-1][1])) if bare_numbers else []
        return (after[-1][0], "number") if after else (_joined(text, segments), "math")
    if bold := _BOLD.findall(text):
        return bold[-1].strip(), "bold"
    if bare_numbers and (numbers := list(_NUMBER.finditer(text))):
        return numbers[-1][0], "number"
    return "", "none"


def _first_statement(marked: str, bare_numbers: bool) -> str:
    """Of what follows `the answer is`: its formulas, or else its first sentence without its full stop."""
    display = re.match(r"\s*(\$\$|\\\[)", marked)
    if not display and not re.match(r"\(?[A-J]\)?[.:)]\s", marked):
        end = _SENTENCE_END.search(marked)
        marked = marked[: end.start()] if end else marked
    if not display and not _is_bare(marked) and (said := list(re.finditer(r"\b(?:is|are|equals)\b:?", marked))):
        marked = marked[said[-1].end() :]
    marked = marked.strip().strip("*").strip()
    if _is_bare(marked):
        return marked
    if segments := [
        (match.start(), match.end(), next(filter(None, match.groups()))) for match in _MATH.finditer(marked)
    ]:
        return _joined(marked, segments[:1] if display else segments)
    numbers = _NUMBER.findall(marked) if bare_numbers else []
    return numbers[-1] if numbers else marked


def _is_bare(text: str) -> bool:
    """Whether a text is an answer without any sentence around it."""
    if not text or len(text) > 400 or "\n" in text:
        return False
    if re.match(r"\(?[A-J]\)?[.:)]\s*\S+$", text):
        return True
    plain = re.sub(r"\\[A-Za-z]+(\{[^{}]*\})?", " ", text)
    words = [word for word in re.findall(r"[A-Za-z]{2,}", plain) if word.lower() not in _BARE_WORDS]
    return len(words) <= 2 and not re.search(r"[.!?:]\s+\S|\bis\b|\bit's\b|\bAnswer\b|\bSo\b|\bThus\b", text)


_BARE_WORDS = frozenset(
    [
        "and",
        "or",
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "ln",
        "log",
        "exp",
        "sqrt",
        "pi",
        "per",
        "square",
        "cubic",
        "percent",
        "degrees",
        "percentage",
        "pct",
    ]
)


def extract_gold(text: str) -> str:
    """A gold: its box where it has one, else all of it; of a whole solution, what `extract` finds."""
    if len(text) <= 400 and "\\boxed" not in text and "####" not in text and "answer" not in text.lower():
        return text.strip()
    found, how = extract(text, bare_numbers=False)
    return found if how != "none" else text.strip()
