"""Constraints on words, letters, lengths and case, after IFEval (Zhou et al. 2023, arXiv:2311.07911, table 1).

Each takes an answer that is not blank and the parameters that IFEval's rows have; True where it is kept, None where
nobody can tell. The definitions are ours, of the paper's wording; where the authors' program decides otherwise, the
docstring says so.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field

from synth.verifiers.language_text import ABSTAINED, alike, code, letters, prose, told

Relation = Literal["less than", "at least"]
Count = Annotated[int, Field(ge=0)]
Words = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
Phrase = Annotated[str, Field(min_length=1)]

_WORD = re.compile(r"\S+")
_INSIDE_WORD = re.compile(r"[^\W_]")
_ENDS = re.compile(
    "[.!?\u3002\uff01\uff1f\u0964\u061f]+[\"'\u201d\u2019)\\]*_]*(?=\\s|$)|[\u3002\uff01\uff1f]|\n[ \\t]*\n"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|inc|ltd|co|no|vol|fig|eq|approx|dept|est|gen|col|rev|hon|cf|al)"
    r"|(?-i:\b[A-Z])|\b(?:[a-z]\.)+[a-z])\.$",
    re.IGNORECASE,
)
_NO_BORDERS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_COMMAS = ",\uff0c\u060c\u3001"


def compared(count: int, relation: Relation, wanted: int) -> bool:
    """The paper's two relations."""
    return count < wanted if relation == "less than" else count >= wanted


def occurrences(text: str, phrase: str) -> int:
    """How often a phrase stands in a text, as whole words, letter case and width of white space ignored.

    IFEval's program counts a keyword inside longer words, too, and reads it as a regular expression; here `art` is not
    in `party`. Scripts that are written without spaces have no borders of words.
    """
    import regex  # type: ignore[import-untyped]

    words = r"\s+".join(regex.escape(word) for word in phrase.split())
    before, after = (rf"(?<![\w--[{_NO_BORDERS}]])", rf"(?![\w--[{_NO_BORDERS}]])")
    word, free = regex.compile(r"\w"), regex.compile(f"[{_NO_BORDERS}]")
    first, last = phrase.strip()[:1], phrase.strip()[-1:]
    start = before if word.match(first) and not free.match(first) else ""
    end = after if word.match(last) and not free.match(last) else ""
    return sum(1 for _ in regex.finditer(start + words + end, text, regex.IGNORECASE | regex.V1)) if words else 0


def words(text: str) -> list[str]:
    """Runs of other than white space that hold a letter or digit: "don't" and "well-known" are one (two in IFEval's
    program)."""
    return [word for word in _WORD.findall(text) if _INSIDE_WORD.search(word)]


def sentences(text: str) -> int:
    """How many stretches that hold a word end in . ! ? (or their like in other scripts) before white space, in a blank
    line or with the text. Abbreviations, initials and 3.14 end none. IFEval's program has NLTK's punkt instead."""
    count, start = 0, 0
    for end in _ENDS.finditer(text):
        piece = text[start : end.end()]
        if (
            end[0].startswith(".")
            and _ABBREVIATION.search(piece[-12:].rstrip("\"')]*_"))
            and end.end() < len(text.rstrip())
        ):
            continue
        count += bool(_INSIDE_WORD.search(piece))
        start = end.end()
    return count + bool(_INSIDE_WORD.search(text[start:]))


def existence(answer: str, *, keywords: Words) -> bool:
    """Each keyword stands in the answer."""
    return all(occurrences(answer, keyword) for keyword in keywords)


def frequency(answer: str, *, keyword: Phrase, frequency: Count, relation: Relation) -> bool:
    """A keyword stands in it less than, or at least, so many times."""
    return compared(occurrences(answer, keyword), relation, frequency)


def forbidden_words(answer: str, *, forbidden_words: Words) -> bool:
    """None of these words stands in it."""
    return not any(occurrences(answer, word) for word in forbidden_words)


def letter_frequency(
    answer: str,
    *,
    letter: Annotated[str, Field(min_length=1, max_length=1)],
    let_frequency: Count,
    let_relation: Relation,
) -> bool:
    """A letter (or any one character) stands in it so many times; letter case ignored."""
    return compared(answer.casefold().count(letter.casefold()), let_relation, let_frequency)


def response_language(answer: str, *, language: Phrase) -> bool | None:
    """All of it is in a language, which rows give as ISO 639-1; None where the language cannot be told."""
    found = told([prose(answer)])[0]
    if found.language == ABSTAINED or found.score < 0.65:
        return None
    return alike(found.language, code(language))


def number_sentences(answer: str, *, num_sentences: Count, relation: Relation) -> bool:
    """So many sentences."""
    return compared(sentences(answer), relation, num_sentences)


def number_words(answer: str, *, num_words: Count, relation: Relation) -> bool:
    """So many words."""
    return compared(len(words(answer)), relation, num_words)


def capital_word_frequency(answer: str, *, capital_frequency: Count, capital_relation: Relation) -> bool:
    """So many words all of whose letters are capitals; `I` is one."""
    return compared(sum(word.isupper() for word in words(answer)), capital_relation, capital_frequency)


def english_capital(answer: str) -> bool:
    """In English, no lower-case letter in it."""
    return answer.isupper() and _english(answer)


def english_lowercase(answer: str) -> bool:
    """In English, no capital in it."""
    return answer.islower() and _english(answer)


def _english(answer: str) -> bool:
    """Not identified as another language: of capitals and few words an identification is often none."""
    found = told([prose(answer)])[0]
    latin = letters(answer) == sum(map(_is_latin, answer))
    return latin and (found.language in (ABSTAINED, "eng") or found.score < 0.65)


def _is_latin(character: str) -> bool:
    return character.isalpha() and (character < "\u0250" or "\u1e00" <= character < "\u1f00")


def no_comma(answer: str) -> bool:
    """No comma, of whatever script. IFEval's program looks for the Latin one alone."""
    return not any(comma in answer for comma in _COMMAS)


WORDS: dict[str, Any] = {
    "keywords:existence": existence,
    "keywords:frequency": frequency,
    "keywords:forbidden_words": forbidden_words,
    "keywords:letter_frequency": letter_frequency,
    "language:response_language": response_language,
    "length_constraints:number_sentences": number_sentences,
    "length_constraints:number_words": number_words,
    "change_case:capital_word_frequency": capital_word_frequency,
    "change_case:english_capital": english_capital,
    "change_case:english_lowercase": english_lowercase,
    "punctuation:no_comma": no_comma,
}
