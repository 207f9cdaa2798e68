"""The `exact` kind: answers that are a word, a name or a phrase, equal to gold once both are normalised."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from synth.verdicts import Outcome, Verdict
from synth.verifiers.format_marks import TAIL_CHARS, strongest
from synth.verifiers.verifier import read_options

_ARTICLES = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Normalisation:
    """How gold and answer are made alike before they are compared, and which part of a reply is the answer.

    case, white_space: ignored or matched. unicode: the normal form; none compares code points. punctuation: match, or
        ignored at both edges, or dropped everywhere (all of Unicode's classes P and S).
    articles: drop removes a, an and the. SQuAD's own normalisation (Rajpurkar et al. 2016, arXiv:1606.05250) is
        punctuation: drop, articles: drop and the rest as it stands.
    part: whole, all of the answer; marked, the last \\boxed{}, <answer> or "the answer is" of the strongest such mark
        and no answer where there is none; last_line, the last line that is not blank.
    """

    case: Literal["ignore", "match"] = "ignore"
    white_space: Literal["ignore", "match"] = "ignore"
    punctuation: Literal["edges", "drop", "match"] = "edges"
    articles: Literal["match", "drop"] = "match"
    unicode: Literal["NFC", "NFKC", "none"] = "NFC"
    part: Literal["whole", "marked", "last_line"] = "whole"


class Exact:
    """Right if the answer equals the gold, or one of several golds, once normalised.

    gold: a text or number, or a list of these of which any is right. Numbers are compared as text: for values use
    `math`.
    """

    kind = "exact"
    version = "1"

    def verify(self, gold: Any, answer: str, options: Mapping[str, Any]) -> Verdict:
        settings = read_options(Normalisation, options, kind=self.kind)
        golds = texts_of(gold)
        wanted = {normalised(text, settings) for text in golds or ()}
        if golds is None or "" in wanted or not wanted:
            reason = "gold_is_no_text" if golds is None else "gold_normalises_to_nothing"
            return Verdict(outcome=Outcome.ERROR, reason=reason)
        part = answer_part(answer, settings.part)
        if part is None or len(part) > TAIL_CHARS:
            return Verdict(outcome=Outcome.WRONG, reason="no_answer" if part is None else "too_long")
        same = normalised(part, settings) in wanted
        return Verdict(outcome=Outcome.RIGHT if same else Outcome.WRONG, reason="equal" if same else "different")


def texts_of(gold: Any) -> list[str] | None:
    """A gold's texts: one, or several of which any is right. None for anything that is no text or number."""
    several = list(gold) if isinstance(gold, list | tuple) else [gold]
    texts = [str(one) for one in several if isinstance(one, str | int | float) and not isinstance(one, bool)]
    return texts if texts and len(texts) == len(several) else None


def answer_part(answer: str, part: str) -> str | None:
    """The part of an answer that is compared, None where it has none."""
    if part == "marked":
        found = strongest(answer)
        # A sentence ends in a full stop that is none of the answer's; edges are for the normalisation.
        return found[-1].text if found else None
    if part == "last_line":
        lines = [line for line in answer.splitlines() if line.strip()]
        return lines[-1] if lines else None
    return answer if answer.strip() else None


@lru_cache(maxsize=8_192)
def normalised(text: str, settings: Normalisation) -> str:
    """A text as it is compared."""
    if settings.unicode != "none":
        text = unicodedata.normalize(settings.unicode, text)
    if settings.case == "ignore":
        text = text.casefold()
    if settings.punctuation == "drop":
        text = "".join(character for character in text if not _is_punctuation(character))
    if settings.articles == "drop":
        text = _ARTICLES.sub(" ", text)
    if settings.punctuation == "edges":
        text = _without_edges(text)
    if settings.white_space == "ignore":
        text = " ".join(text.split())
    # Case folding takes apart what a normal form had put together (Unicode 3.13, D145).
    return text if settings.unicode == "none" else unicodedata.normalize(settings.unicode, text)


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _without_edges(text: str) -> str:
    """Without brackets, quotes, emphasis and ends of sentences at both ends, unless the text is nothing else. Signs,
    currency and percent stay: they say something."""
    start, end = 0, len(text)
    while start < end and _at_edge(text[start]):
        start += 1
    while end > start and _at_edge(text[end - 1]):
        end -= 1
    return text[start:end] or text.strip()


def _at_edge(character: str) -> bool:
    if character in ".,;:!?*_`\"'" or character.isspace():
        return True
    return unicodedata.category(character) in {"Ps", "Pe", "Pi", "Pf"}
