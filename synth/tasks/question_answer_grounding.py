"""Whether a question can be asked by itself, and whether a document says what its answer says: by rule."""

from __future__ import annotations

import re
from typing import Final

from synth.tasks.rephrase_fidelity import chatter
from synth.tasks.rephrase_text import names, names_share, numbers, numbers_said, share, stems, words
from synth.tasks.tagged import word_of

SHORT_ANSWER: Final = 5
"""Words up to which an answer is a span: each of its content words must be the document's."""

_POINTS: Final = re.compile(
    r"\b(?:the|this|that|these) (?:(?:above|given|following|provided) )?"
    r"(?:passage|text|document|excerpt|paragraph|article|snippet|source text|section above)s?\b"
    r"|\b(?:mentioned|described|stated|provided|given) (?:above|below|here)\b",
    re.I,
)


def question_fault(question: str, answer: str, alone: bool) -> str:
    """Why a question is none, "" where it is one. alone: it is asked without its document. In English, for most."""
    if not stems(question):
        return "question.no_words"
    if alone and _POINTS.search(question):
        return "question.points_to_text"
    told = stems(answer) | numbers(answer)
    gives = told and told <= stems(question) | numbers(question) and " or " not in question.casefold()
    return "question.gives_answer" if gives and len(words(answer)) <= SHORT_ANSWER else ""


def answer_fault(question: str, answer: str, evidence: str, document: str, least: float) -> str:
    """Why an answer is not the document's, "" where it is.

    evidence: what is said to stand in the document, word for word. least: share of a long answer's content words that
    must be the document's or the question's.
    """
    if chatter(answer, document):
        return "leak.chatter"
    if not holds(document, evidence):
        return "ground.no_quote"
    known = f"{document}\n{question}"
    if share(numbers(answer), numbers_said(known)) < 1:
        return "ground.number"
    if names_share(names(answer), known) < 1:
        return "ground.name"
    wanted = 1.0 if len(words(answer)) <= SHORT_ANSWER else least
    return "ground.words" if share(stems(answer), frozenset(stems(known))) < wanted else ""


def holds(document: str, quote: str) -> bool:
    """Whether a quote's words stand in a document, in a row, whatever case and marks they are written with."""
    told = words(quote)
    return bool(told) and f" {' '.join(told)} " in f" {' '.join(words(document))} "


def agree(first: str, second: str, least: float) -> bool:
    """Whether two answers say the same, as far as words tell: both yes or both no, no number of the shorter one that
    the other has not, and at least this share of its content words."""
    said = [word_of(answer, ("yes", "no")) for answer in (first, second)]
    if None not in said:
        return said[0] == said[1]
    shorter, longer = sorted((first, second), key=lambda answer: (len(words(answer)), answer))
    if share(numbers(shorter), numbers_said(longer)) < 1:
        return False
    return share(stems(shorter), frozenset(stems(longer))) >= least
