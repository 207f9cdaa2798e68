"""Degenerate traces: too long, in circles, in another script than asked, one endless paragraph."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from synth.rows import Row
from synth.selection.settings import Traces

TAIL = 4_096
SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n+")
LETTERS = re.compile(r"[^\W\d_]")
SHARED = frozenset({"LATIN", "GREEK"})
"""Scripts that belong to every trace: names and units, and letters of formulas."""


def written(row: Row) -> str:
    """All that the model wrote of a sample: reasoning and answer of its last turns, or its text."""
    sample = row.sample
    turns = [one for one in (*sample.messages[-1:], sample.chosen, sample.rejected) if one is not None]
    parts = [str(turn.get(key) or "") for turn in turns for key in ("reasoning_content", "content")]
    return "\n".join(part for part in [*parts, sample.text] if part)


def asked(row: Row) -> str:
    """What it was asked: the item's prompt and earlier turns."""
    turns = row.sample.messages[:-1] or row.item.messages
    return "\n".join([row.item.prompt, *(str(turn.get("content") or "") for turn in turns)])


def reasons(rows: Sequence[Row], limits: Traces) -> list[str]:
    """Of each row the first rule that it breaks, "" for none: select.traces.<rule>."""
    import filters

    texts = [written(row) for row in rows]
    shares = filters.measure(texts)["duplicate_5gram_character_ratio"].to_numpy() if rows else np.zeros(0)
    found = []
    for row, text, share in zip(rows, texts, shares, strict=True):
        rule = _rule(row, text, float(share), limits)
        found.append(f"select.traces.{rule}" if rule else "")
    return found


def _rule(row: Row, text: str, share: float, limits: Traces) -> str:
    tokens = row.sample.tokens
    if tokens and not limits.min_tokens <= tokens <= limits.max_tokens:
        return "tokens"
    if share > limits.max_duplicate_5gram_share:
        return "duplicate_5grams"
    following, scattered = repeated_sentences(text)
    if following > limits.max_repeated_sentences:
        return "repeated_sentences"
    if scattered > limits.max_scattered_sentences:
        return "scattered_sentences"
    if loop_characters(text) > limits.max_loop_characters:
        return "loop"
    if foreign_share(text, asked(row)) > limits.max_foreign_share:
        return "foreign_script"
    if max(map(len, text.split("\n"))) > limits.max_paragraph_characters:
        return "paragraph"
    return ""


def repeated_sentences(text: str) -> tuple[int, int]:
    """How often a sentence stands one after another, and how often one stands at all, at most; 1 where none repeats.

    Sentences of fewer than three words do not count: "Yes." may stand anywhere.
    """
    sentences = [" ".join(piece.split()) for piece in SENTENCE.split(text)]
    long = [one for one in sentences if one.count(" ") >= 2]
    following = most = 1
    for before, after in zip(long, long[1:], strict=False):
        following = following + 1 if before == after else 1
        most = max(most, following)
    return most, max(Counter(long).values(), default=1)


def loop_characters(text: str) -> int:
    """Characters of the text's end that one piece fills by standing there three times or more, the last perhaps cut; 0
    for none.

    Of the last TAIL characters, reversed, the prefix function (Knuth, Morris & Pratt 1977) tells the shortest period of
    each beginning: the longest beginning that holds its period three times is the loop.
    """
    tail = text.rstrip()[-TAIL:][::-1]
    links, longest, at = [0] * len(tail), 0, 0
    for end in range(1, len(tail)):
        while at and tail[end] != tail[at]:
            at = links[at - 1]
        at += tail[end] == tail[at]
        links[end] = at
        if (end + 1) >= 3 * (end + 1 - at):
            longest = end + 1
    return longest


def foreign_share(text: str, prompt: str) -> float:
    """Share of the letters that are of scripts that neither the prompt has nor every text may have."""
    own = set(scripts(prompt)) | SHARED
    counts = scripts(text)
    total = sum(counts.values())
    return sum(count for script, count in counts.items() if script not in own) / total if total else 0.0


def scripts(text: str) -> Counter[str]:
    """Letters by the first word of their Unicode name: LATIN, CJK, CYRILLIC, HIRAGANA ..."""
    counts: Counter[str] = Counter()
    for letter, count in Counter(LETTERS.findall(text)).items():
        counts[_script(letter)] += count
    return counts


@lru_cache(maxsize=1 << 16)
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "")
    return name.split(" ", 1)[0].split("-", 1)[0] if name else "unknown"
