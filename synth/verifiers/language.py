"""The `language` kind: an answer in the language of its prompt, throughout; what nobody can tell stays unscored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.verdicts import Outcome, Verdict
from synth.verifiers.language_text import ABSTAINED, Told, alike, code, foreign_letters, letters, prose, told
from synth.verifiers.verifier import read_options

FEW_LETTERS: Final = 8
"""From which on a text wholly in another script is wrong although too short to be identified; a symbol or a name in
another script is no answer in it."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Language:
    """Which language is right, and how much of another is borne. Code, formulas, addresses and tags are left out.

    language: fr, fra or fra_Latn; for rows without a gold. prompt: in whose language the answer must be, where
        neither names one.
    min_score: probability below which an identification says nothing. Source: FineWeb (arXiv:2406.17557), .65.
    max_foreign_script: share of letters in scripts that are neither the language's nor Latin; 5% is where
        open-instruct's filter of Chinese characters drops a row.
    max_other_paragraphs: share of letters in paragraphs that are identified as another language; from half on that
        is what the answer is in.
    """

    language: str = ""
    prompt: str = ""
    min_score: float = Field(default=0.65, ge=0, le=1)
    max_foreign_script: float = Field(default=0.05, ge=0, le=1)
    max_other_paragraphs: float = Field(default=0.25, ge=0, le=1)


class Languages:
    """Right if the answer's paragraphs are identified as the wanted language, with little of another in it.

    gold: the language, or None for the option's or the prompt's. Unscored, never wrong: a prompt or answer that is too
    short or too odd to be identified (filters.identify abstains), or identified with less than min_score.
    """

    kind = "language"
    version = "1"

    def prepare(self) -> None:
        """Load the model and kernels (1.5 s, measured) before a check's time runs."""
        told(["Some words of a language."])

    def verify(self, gold: Any, answer: str, options: Mapping[str, Any]) -> Verdict:
        settings = read_options(Language, options, kind=self.kind)
        if gold is not None and not isinstance(gold, str):
            return Verdict(outcome=Outcome.ERROR, reason="gold_is_no_language")
        named = gold or settings.language
        text = prose(answer)
        if not letters(text):
            blank = not answer.strip()
            return Verdict(
                outcome=Outcome.WRONG if blank else Outcome.UNSCORED, reason="no_answer" if blank else "no_prose"
            )
        wanted = _wanted(named, settings)
        if wanted is None:
            reason = "prompt_abstained" if settings.prompt.strip() else "no_language_to_compare_with"
            outcome = Outcome.UNSCORED if settings.prompt.strip() else Outcome.ERROR
            return Verdict(outcome=outcome, reason=reason)
        return _judged(text, wanted, settings)


def _wanted(named: str, settings: Language) -> Told | None:
    """The language that is right; its script is "" where only a language was named."""
    if named:
        return Told(language=code(named), script=named.partition("_")[2], score=1.0, letters=0)
    asked = told([prose(settings.prompt)])[0] if settings.prompt.strip() else None
    return asked if asked and _is_known(asked, settings) else None


def _judged(text: str, wanted: Told, settings: Language) -> Verdict:
    parts = _known_parts(text, settings)
    same = [part for part in parts if alike(part.language, wanted.language)]
    known, total = sum(part.letters for part in parts), letters(text)
    other = 1 - sum(part.letters for part in same) / known if known else 0.0
    if other > 0.5:
        return Verdict(outcome=Outcome.WRONG, reason="other_language", score=1 - other)
    script = max(same, key=lambda part: part.letters).script if same else wanted.script
    foreign = foreign_letters(text, script)
    if foreign > settings.max_foreign_script * total and (known or foreign >= FEW_LETTERS):
        return Verdict(outcome=Outcome.WRONG, reason="foreign_script", score=1 - foreign / total)
    if not known:
        return Verdict(outcome=Outcome.UNSCORED, reason="answer_abstained")
    mixed = other > settings.max_other_paragraphs
    outcome = Outcome.WRONG if mixed else Outcome.RIGHT
    return Verdict(outcome=outcome, reason="mixed_paragraphs" if mixed else "same", score=1 - other)


def _known_parts(text: str, settings: Language) -> list[Told]:
    """The paragraphs whose language can be told, where they hold half of the letters; else the text as one, if its
    can. Of a text in two languages an identification of the whole names either."""
    paragraphs = told([part for part in text.split("\n") if part.strip()])
    known = [part for part in paragraphs if _is_known(part, settings)]
    if 2 * sum(part.letters for part in known) >= letters(text):
        return known
    return [part for part in told([text]) if _is_known(part, settings)]


def _is_known(part: Told, settings: Language) -> bool:
    return part.language != ABSTAINED and part.score >= settings.min_score
