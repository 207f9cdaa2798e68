"""Questions translated, and solved in their reader's language from the first thought to the last.

Source: Magistral (arXiv:2506.10910): a tenth of the English questions, into French, Spanish, Italian, German, Chinese
and Russian; reasoning and answer must be in the question's language. Differs from it: the language is a filter with a
reason of its own, and a translation that loses a number is rejected before anybody solves it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np
from pydantic import ConfigDict, Field, field_validator, model_validator
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item
from synth.requests import digest
from synth.rollouts.settings import Rollouts
from synth.tasks.answering import posed
from synth.tasks.asking import Asking, Deciding, filled, given
from synth.tasks.candidates import Candidate, Stage, ask, verify
from synth.tasks.choice import Choice, chosen
from synth.tasks.rolling import Judge, allocation, check_heat, rolled, verified_by
from synth.tasks.tagged import taken
from synth.verdicts import Check
from synth.verdicts import Outcome as Says

LANGUAGES: Final = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "gl": "Galician", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian",
    "hu": "Hungarian", "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ko": "Korean",
    "lt": "Lithuanian", "lv": "Latvian", "ms": "Malay", "nb": "Norwegian", "nl": "Dutch", "pl": "Polish",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sr": "Serbian",
    "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog", "tr": "Turkish",
    "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""By ISO 639-1 code, the name that prompts call a language by."""
_DIGITS = re.compile(r"\d+(?:[.,'\u00a0\u202f\u066b\u066c]\d+)*")
_SPACED = re.compile(r"\d+(?: \d{3}(?!\d))*(?:[.,]\d+)*")


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Translated:
    """Translate a share of the rows' prompts and solve them as `distill` does, in the language asked for.

    languages: to translate into, as ISO 639-1 codes; each chosen row goes into one of them, drawn by its id, or into
        every one. share: of the rows that are chosen, by a hash of their ids.
    check_language: have the translation, the reasoning and the answer checked by the verifier `language`.
        unidentified: what becomes of those too short to tell: kept, or failed as unscored.
    keep_numbers: reject a translation that lacks a number of the question's.
    translation_prompt: template of the translation; prompt: of the question, given its language's name, too.
    translating, answering: how each is asked. rollouts, choice: as in distill.
    """

    name: ClassVar[str] = "translated"
    version: ClassVar[int] = 1

    languages: Annotated[tuple[str, ...], Field(min_length=1)] = ("fr", "es", "it", "de", "zh", "ru")
    into: Literal["one", "each"] = "one"
    share: float = Field(default=0.1, gt=0, le=1)
    check_language: bool = True
    unidentified: Literal["keep", "fail"] = "keep"
    keep_numbers: bool = True
    translation_prompt: Annotated[str, given("text", "language")] = "translate"
    prompt: Annotated[str, given()] = "answer_in_language"
    translating: Deciding = Field(default_factory=Deciding)
    answering: Asking = Field(default_factory=lambda: Asking(max_tokens=8192))
    rollouts: Rollouts = Field(default_factory=Rollouts)
    choice: Choice = Field(default_factory=Choice)

    @field_validator("languages")
    @classmethod
    def _known(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [code for code in languages if code not in LANGUAGES]:
            raise ValueError(f"{unknown[0]}: no code that is known here; there are {', '.join(LANGUAGES)}")
        return languages

    @model_validator(mode="after")
    def _heated(self) -> Translated:
        check_heat(self.rollouts, self.answering)
        return self

    @property
    def pilot_rollouts(self) -> int | None:
        """Of every item in a first pass, where rollouts are shared out over all of them; None where they are not."""
        return self.rollouts.pilot_rollouts

    def allocate(self, pilots: Sequence[tuple[int, int]], seed: int) -> Sequence[int]:
        """Of each pilot's trials and right ones, the rollouts that its item gets in all."""
        return allocation(self.rollouts, pilots, seed)

    def items(self, rows: Iterable[Item]) -> Iterator[Item]:
        """The chosen rows, each once for a language it goes into; its own language is none of them."""
        for row in rows:
            number = int(digest(["translated", row.id])[:13], 16)
            if number / 16**13 >= self.share:
                continue
            into = [code for code in dict.fromkeys(self.languages) if code != row.language]
            if into and self.into == "one":
                rng = np.random.default_rng(number)
                into = [into[int(rng.integers(len(into)))]]
            for code in into:
                yield replace(row, id=f"{row.id}/{code}", language=code)

    def flow(self, item: Item, desk: Desk) -> Flow:
        if not item.prompt.strip():
            return [Candidate().rejected("item.no_prompt").sample(item, 0)]
        translated = yield from self._translation(item)
        language = LANGUAGES[item.language]
        values = {**item.options, "question": translated.text, "language": language}
        start = posed(replace(translated, reply=None, parsed=None), self.prompt, values, item.messages)
        made = yield from rolled(start, self.rollouts, self.answering, desk, self._judge(item))
        return [one.sample(item, one.at) for one in chosen(made, self.choice)]

    def _translation(self, item: Item) -> Generator[Any, Any, Candidate]:
        messages = filled(self.translation_prompt, text=item.prompt, language=LANGUAGES[item.language])
        made = yield from ask([Candidate()], self.translating, lambda one: self.translating.request(messages))
        made = [taken(one, "translation") for one in made]
        if self.keep_numbers and made[0].open and not keeps_numbers(item.prompt, made[0].text):
            made = [made[0].rejected("translate.number_lost")]
        return (yield from self._in_language(item, made, "translate"))[0]

    def _judge(self, item: Item) -> Judge:
        """First whether it is right, then whether it is in the language: that is no part of the pass rate."""
        right = verified_by(item)

        def judge(candidates: Sequence[Candidate]) -> Stage:
            judged = yield from right(candidates)
            return (yield from self._in_language(item, judged, "language"))

        return judge

    def _in_language(self, item: Item, candidates: Sequence[Candidate], stage: str) -> Stage:
        """What is open goes through the verifier `language`; the verdict before it stays the candidate's own."""
        if not self.check_language:
            return list(candidates)
        told = yield from verify(candidates, lambda one: _language_check(item, one, stage), stage)
        return [self._concluded(one, before) for one, before in zip(told, candidates, strict=True)]

    def _concluded(self, one: Candidate, before: Candidate) -> Candidate:
        unsure = one.verdict is not None and one.verdict.outcome is Says.UNSCORED
        if before.open and unsure and self.unidentified == "keep":
            return replace(before, facts={**before.facts, "language": "unidentified"})
        return replace(one, verdict=before.verdict)


def _language_check(item: Item, one: Candidate, stage: str) -> Check:
    """Of the translation, or of reasoning and answer; formulas and code the verifier leaves out itself."""
    reasoning = (one.parsed.reasoning or "") if one.parsed else ""
    said = one.text if stage == "translate" else f"{reasoning}\n\n{one.answer}"
    return Check(kind="language", gold=item.language, answer=said)


def keeps_numbers(text: str, translation: str) -> bool:
    """Whether each number of a text stands in its translation as often, whatever digits or separators it is written
    with there: 1,000.5 is 1 000,5 in French. Blanks between groups of three are read both ways."""
    return not _numbers(text, _DIGITS) - (_numbers(translation, _DIGITS) | _numbers(translation, _SPACED))


def _numbers(text: str, pattern: re.Pattern[str]) -> Counter[str]:
    found = ("".join(str(unicodedata.digit(c)) for c in match if c.isdigit()) for match in pattern.findall(text))
    return Counter(number.lstrip("0") for number in found)
