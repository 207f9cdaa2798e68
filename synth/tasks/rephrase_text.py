"""What can be told of a text by rule: its parts, sentences, words, names and numbers. Linear, whatever the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate, pairwise
from math import ceil
from typing import Final

from synth.tasks.answering import STOP_WORDS

WORD: Final = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
# Looks at a run of marks once, from its start: a hundred thousand dots are one look and not their square.
_END: Final = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”\u2019»)\]]*+(?=\s)|(?<![。\uff01\uff1f])[。\uff01\uff1f]++[”」』\uff09]*+"
)
_BREAK: Final = re.compile(r"\n[ \t\r]*+\n\s*+")
_NUMBER: Final = re.compile(r"\d+(?:[.,'\u00a0\u202f\u066b\u066c]\d+)*")
_SPACED: Final = re.compile(r"\d+(?: \d{3}(?!\d))*(?:[.,]\d+)*")
_GROUPED: Final = re.compile(r"\d{1,3}(?:[.,' \u00a0\u202f\u066c]\d{3})+")
_MARKER: Final = re.compile(r"^[ \t]*(?:[(\[]?\d{1,3}[.):\]]|[QA]\d{1,3}\b[.):]?|#+|[-*•])[ \t]", re.M)
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_SHORT: Final = """
    dr mr mrs ms prof st sr jr vs etc no vol fig eq al inc ltd co corp dept gen col capt lt sgt rev hon
    jan feb mar apr jun jul aug sep sept oct nov dec approx ca cf ed eds e.g i.e u.s u.k a.m p.m
"""
_COUNTED: Final = "zero one two three four five six seven eight nine ten eleven twelve"
ABBREVIATIONS: Final = frozenset(_SHORT.split())
SMALL: Final = {word: str(value) for value, word in enumerate(_COUNTED.split())}
NO_NAMES: Final = STOP_WORDS | ABBREVIATIONS
STEM_LETTERS: Final = 6
"""Words that begin with the same six letters count as one: inflections of most languages stand behind them."""

HEADLINE: Final = 0.8
"""Share of capitalised words above which a sentence of four or more is a headline, whose words are no names."""

NAME_WORDS: Final = 4


@lru_cache(maxsize=32)
def sentences(text: str) -> tuple[str, ...]:
    """Joined, they are the text again. Ends are marks before white space and blank lines; a stop behind a common
    abbreviation or an initial, or before a small letter, is none."""
    ends = {found.end() for found in _BREAK.finditer(text)}
    for found in _END.finditer(text):
        end = found.end()
        while end < len(text) and text[end].isspace():
            end += 1
        if not _goes_on(text, found, end):
            ends.add(end)
    bounds = [0, *sorted(end for end in ends if 0 < end < len(text)), len(text)]
    return tuple(text[start:end] for start, end in pairwise(bounds) if end > start)


def _goes_on(text: str, mark: re.Match[str], behind: int) -> bool:
    if behind < len(text) and text[behind].islower():
        return True
    if mark[0] != ".":
        return False
    stop = mark.start()
    word = re.split(r"[\s(\[\"“«]", text[max(0, stop - 12) : stop])[-1]
    listed = word.isdecimal() and text[max(0, stop - len(word) - 1)] in ("\n", word[0])
    return listed or word.casefold() in ABBREVIATIONS or (len(word) == 1 and word.isupper())


def chunks(text: str, most: int) -> list[str]:
    """Parts of at most `most` characters, of about equal length, cut between paragraphs where that leaves a part at
    least half full, else between sentences, else words. Joined, they are the text again."""
    ends = list(accumulate(len(one) for one in sentences(text)))
    breaks = {found.end() for found in _BREAK.finditer(text)}
    made, start, at = [], 0, 0
    while start < len(text):
        near: list[int] = []
        while at < len(ends) and ends[at] <= start + most:
            near.append(ends[at])
            at += 1
        end = _cut(text, start, near, breaks, most)
        made.append(text[start:end])
        start = end
        while at and ends[at - 1] > start:
            at -= 1
    return made


def _cut(text: str, start: int, near: list[int], breaks: set[int], most: int) -> int:
    """Where a part ends: at the break nearest to an equal share of what is left, of the best kind that there is."""
    left = len(text) - start
    if left <= most:
        return len(text)
    aim = ceil(left / ceil(left / most))
    full = [end for end in near if end - start >= aim // 2]
    for kind in ([end for end in full if end in breaks], full):
        if kind:
            return min(kind, key=lambda end: (abs(end - start - aim), end))
    for end in range(min(len(text), start + most), start + most // 2, -1):
        if text[end - 1].isspace():
            return end
    return min(len(text), start + most)


def beginning(text: str, most: int) -> str:
    """The whole sentences of its first characters, or just these where that would leave less than half."""
    if len(text) <= most:
        return text
    whole = "".join(sentences(text[:most])[:-1])
    return whole if 2 * len(whole) >= most else text[:most]


@lru_cache(maxsize=32)
def words(text: str) -> tuple[str, ...]:
    """Folded, in order, without a possessive's ending. Kept for the few texts that are compared with each other."""
    return tuple(_bare(word) for word in WORD.findall(text.casefold()))


def _bare(word: str) -> str:
    return word[:-2] if word.endswith(("'s", "\u2019s")) else word


def stems(text: str) -> frozenset[str]:
    """What a text is about: the beginnings of its longer words that are no stop words; of scripts without blanks,
    pairs of characters."""
    found: set[str] = set()
    for word in words(text):
        if word > "\u0e00" and _UNSPACED.search(word):
            found.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif len(word) >= (4 if word < "\u0900" else 2) and word not in STOP_WORDS:
            found.add(word[:STEM_LETTERS])
    return frozenset(found)


def ngrams(text: str, size: int) -> frozenset[tuple[str, ...]]:
    """Of its words."""
    told = words(text)
    return frozenset(told[at : at + size] for at in range(len(told) - size + 1))


def numbers(text: str) -> frozenset[str]:
    """Values that are written in digits, however they are grouped: 1,000.50 and 1 000,5 are one. Numbers of list items
    at the start of a line are none."""
    plain = _MARKER.sub("", text)
    return frozenset(map(_value, (*_NUMBER.findall(plain), *_SPACED.findall(plain))))


def numbers_said(text: str) -> frozenset[str]:
    """The same with small numbers that English spells out."""
    return numbers(text) | {SMALL[word] for word in words(text) if word in SMALL}


def _value(written: str) -> str:
    # Digits of all scripts are those of ASCII.
    told = "".join(str(int(one)) if one.isdecimal() else one for one in written)
    if _GROUPED.fullmatch(told):
        return re.sub(r"\D", "", told).lstrip("0") or "0"
    *whole, fraction = re.split(r"\D", told)
    if not whole:
        return fraction.lstrip("0") or "0"
    joined = "".join(whole).lstrip("0") or "0"
    fraction = fraction.rstrip("0")
    return f"{joined}.{fraction}" if fraction else joined


Name = tuple[str, ...]


def names(text: str) -> frozenset[Name]:
    """Runs of capitalised words, folded. A sentence's first word counts where another stands beside it, or where it is
    capitalised within a sentence, too. Scripts without capitals have none."""
    inner: set[Name] = set()
    first: set[Name] = set()
    for sentence in sentences(_MARKER.sub("", text)):
        found = list(WORD.finditer(sentence))
        large = [_capital(one[0]) for one in found]
        if len(found) >= 4 and sum(large) > HEADLINE * len(found):
            continue
        for run in _runs(found, sentence):
            leading = run[0] is found[0]
            told = tuple(_bare(one[0].casefold()) for one in run)
            acronym = len(told[0]) > 1 and _bare(run[0][0]).isupper()
            if leading and (told[0] in STOP_WORDS or (len(told) == 1 and not acronym)):
                first.add(told[:1])
                told = told[1:]
            if told := tuple(word for word in told[:NAME_WORDS] if len(word) > 1 and word not in NO_NAMES):
                inner.add(told)
    known = {word for name in inner for word in name}
    return frozenset(inner | {name for name in first if name[0] in known and name[0] not in STOP_WORDS})


def _runs(found: list[re.Match[str]], sentence: str) -> Iterator[list[re.Match[str]]]:
    run: list[re.Match[str]] = []
    for one in found:
        joined = run and sentence[run[-1].end() : one.start()].isspace()
        if run and not (joined and _capital(one[0])):
            yield run
            run = []
        if _capital(one[0]):
            run.append(one)
    if run:
        yield run


def _capital(word: str) -> bool:
    return word[0].isupper() and word not in ("I", "I'm", "I've", "I'd", "I'll")


def share(wanted: Iterable[object], there: frozenset[object]) -> float:
    """Of those that are wanted; 1 where none is."""
    all_ = list(wanted)
    return sum(one in there for one in all_) / len(all_) if all_ else 1.0


def names_share(wanted: frozenset[Name], text: str) -> float:
    """Of names, those of which a text holds at least half of the words."""
    there = frozenset(words(text))
    held = [2 * sum(word in there for word in name) >= len(name) for name in wanted]
    return sum(held) / len(held) if held else 1.0
