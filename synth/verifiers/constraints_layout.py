"""Constraints on paragraphs, marks, format, start and end, after IFEval (arXiv:2311.07911, table 1).

As in constraints_words: an answer that is not blank, the parameters of IFEval's rows, definitions of our own.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field

from synth.verifiers.constraints_words import Count, Phrase
from synth.verifiers.json_schema import NotJson, json_part, strict_json

_STARS = re.compile(r"^[ \t]*\*\*\*[ \t]*$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")
_PLACEHOLDER = re.compile(r"\[[^\[\]\n]*[^\[\]\s][^\[\]\n]*\](?!\()")
_BULLET = re.compile(r"^[ \t]*[*-][ \t]+\S", re.MULTILINE)
_HIGHLIGHT = re.compile(r"(?<!\*)(\*{1,2})(?![*\s])([^*\n]+)(?<!\s)\1(?!\*)")
_TITLE = re.compile(r"<<[^<>\n]*[^<>\s][^<>\n]*>>")
_SIX_STARS = re.compile(r"(?<!\*)\*{6}(?!\*)")
_OPENING_QUOTES = '"\u201c\u201e\u00ab'
_CLOSING_QUOTES = '"\u201d\u201c\u00bb'
OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
"""Of detectable_format:constrained_response; the paper's, which rows do not repeat."""


def number_paragraphs(answer: str, *, num_paragraphs: Count) -> bool:
    """Exactly so many paragraphs, with *** on a line of its own between them and none of them blank; one before the
    first or behind the last is borne."""
    parts = [part.strip() for part in _STARS.split(answer)]
    inner = [part for at, part in enumerate(parts) if part or 0 < at < len(parts) - 1]
    return all(inner) and len(inner) == num_paragraphs


def nth_paragraph_first_word(
    answer: str, *, num_paragraphs: Count, nth_paragraph: Annotated[int, Field(ge=1)], first_word: Phrase
) -> bool:
    """Exactly so many paragraphs, with blank lines between them, and the nth (from 1) starts with a word; letter case,
    and marks around the word, ignored."""
    parts = [part for part in _BLANK_LINES.split(answer.strip()) if part.strip()]
    if len(parts) != num_paragraphs or nth_paragraph > len(parts):
        return False
    start = parts[nth_paragraph - 1].split()[0]
    return _bare(start) == _bare(first_word)


def _bare(word: str) -> str:
    return re.sub(r"^\W+|\W+$", "", word).casefold()


def number_placeholders(answer: str, *, num_placeholders: Count) -> bool:
    """At least so many placeholders such as [address]. A link's text in brackets, before (, is none."""
    return sum(1 for _ in _PLACEHOLDER.finditer(answer)) >= num_placeholders


def postscript(answer: str, *, postscript_marker: Phrase) -> bool:
    """A line starts with the marker and says something behind it. Full stops and spaces in P.S. may be left out."""
    marked = [re.escape(character) for character in postscript_marker if character not in ". "]
    pattern = r"^[ \t*_]*" + r"[. ]{0,2}".join(marked) + r"(?![^\W_])[.:*_ \t]*+\S"
    return re.search(pattern, answer, re.IGNORECASE | re.MULTILINE) is not None


def number_bullet_lists(answer: str, *, num_bullets: Count) -> bool:
    """Exactly so many bullet points: lines that start with * or - and a space."""
    return sum(1 for _ in _BULLET.finditer(answer)) == num_bullets


def constrained_response(answer: str) -> bool:
    """Says exactly one of the paper's three sentences."""
    return sum(option in answer for option in OPTIONS) == 1


def number_highlighted_sections(answer: str, *, num_highlights: Count) -> bool:
    """At least so many stretches in *single* or **double** asterisks, within a line."""
    return sum(1 for _ in _HIGHLIGHT.finditer(answer)) >= num_highlights


def multiple_sections(answer: str, *, section_spliter: Phrase, num_sections: Count) -> bool:
    """At least so many lines start with the word and a number, each with another number; marks before are borne."""
    pattern = rf"^[ \t#*_]*{re.escape(section_spliter.strip())}[ \t]*(\d{{1,4}})\b"
    return len(set(re.findall(pattern, answer, re.MULTILINE))) >= num_sections


def json_format(answer: str) -> bool:
    """All of it is one JSON object or array, in a ``` fence or none."""
    text = answer.strip()
    try:
        if text.startswith("```"):
            if not text.endswith("```") or text.count("```") != 2:
                return False
            text = json_part(text, "fenced")
        return isinstance(strict_json(text), dict | list)
    except NotJson:
        return False


def title(answer: str) -> bool:
    """A title in <<double angular brackets>>."""
    return _TITLE.search(answer) is not None


def two_responses(answer: str) -> bool:
    """Two different responses, with ****** between them."""
    parts = [part.strip() for part in _SIX_STARS.split(answer)]
    return len(parts) == 2 and all(parts) and parts[0] != parts[1]


def repeat_prompt(answer: str, *, prompt_to_repeat: Phrase) -> bool:
    """Starts with the request, word for word (letter case and white space ignored), and goes on."""
    said, wanted = " ".join(answer.casefold().split()), " ".join(prompt_to_repeat.casefold().split())
    return said.startswith(wanted) and any(character.isalnum() for character in said[len(wanted) :])


def end_checker(answer: str, *, end_phrase: Phrase) -> bool:
    """Ends with a phrase, letter case ignored, nothing but white space or quotes behind it."""
    ending = " ".join(end_phrase.casefold().split()).strip(_CLOSING_QUOTES)
    return " ".join(answer.casefold().split()).rstrip(_CLOSING_QUOTES + " ").endswith(ending)


def quotation(answer: str) -> bool:
    """All of it stands in double quotation marks."""
    text = answer.strip()
    return len(text) > 2 and text[0] in _OPENING_QUOTES and text[-1] in _CLOSING_QUOTES


LAYOUT: dict[str, Any] = {
    "length_constraints:number_paragraphs": number_paragraphs,
    "length_constraints:nth_paragraph_first_word": nth_paragraph_first_word,
    "detectable_content:number_placeholders": number_placeholders,
    "detectable_content:postscript": postscript,
    "detectable_format:number_bullet_lists": number_bullet_lists,
    "detectable_format:constrained_response": constrained_response,
    "detectable_format:number_highlighted_sections": number_highlighted_sections,
    "detectable_format:multiple_sections": multiple_sections,
    "detectable_format:json_format": json_format,
    "detectable_format:title": title,
    "combination:two_responses": two_responses,
    "combination:repeat_prompt": repeat_prompt,
    "startend:end_checker": end_checker,
    "startend:quotation": quotation,
}
