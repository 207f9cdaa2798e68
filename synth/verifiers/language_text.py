"""What of a text is prose, which language and script it is in; code, formulas and addresses are in none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

MAX_CHARS: Final = 200_000
ABSTAINED: Final = "und"

_NO_PROSE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\$\$.{0,1000}?\$\$|\$[^$\n]{1,500}\$|\\\(.{0,1000}?\\\)|\\\[.{0,1000}?\\\]"
    r"|\\begin\{[a-z*]{1,20}\}.{0,1000}?\\end\{|\\[A-Za-z]+(?:\{[^{}\n]{0,500}\})*|https?://\S+|</?[A-Za-z][^<>\n]{0,200}>",
    re.DOTALL,
)
_SCRIPTS: Final = {
    "Arab": "Arabic", "Armn": "Armenian", "Beng": "Bengali", "Cyrl": "Cyrillic", "Deva": "Devanagari",
    "Ethi": "Ethiopic", "Geor": "Georgian", "Grek": "Greek", "Gujr": "Gujarati", "Guru": "Gurmukhi",
    "Hang": "Hangul Han", "Hani": "Han Bopomofo", "Hebr": "Hebrew", "Java": "Javanese",
    "Jpan": "Han Hiragana Katakana", "Khmr": "Khmer", "Knda": "Kannada", "Laoo": "Lao", "Latn": "Latin",
    "Mlym": "Malayalam", "Mong": "Mongolian", "Mymr": "Myanmar", "Orya": "Oriya", "Sinh": "Sinhala", "Taml": "Tamil",
    "Telu": "Telugu", "Thaa": "Thaana", "Thai": "Thai", "Tibt": "Tibetan",
}  # fmt: skip
"""ISO 15924, as labels end in it, and Unicode's names of the scripts that such a text is written in."""

_TWO_LETTERS: Final = {
    "ar": "ara", "bg": "bul", "bn": "ben", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "en": "eng",
    "es": "spa", "et": "est", "fa": "fas", "fi": "fin", "fr": "fra", "gu": "guj", "he": "heb", "hi": "hin",
    "hr": "hrv", "hu": "hun", "id": "ind", "it": "ita", "ja": "jpn", "kn": "kan", "ko": "kor", "lt": "lit",
    "lv": "lav", "ml": "mal", "mr": "mar", "ms": "msa", "ne": "nep", "nl": "nld", "no": "nor", "pa": "pan",
    "pl": "pol", "pt": "por", "ro": "ron", "ru": "rus", "sk": "slk", "sl": "slv", "sq": "sqi", "sr": "srp",
    "sv": "swe", "sw": "swa", "ta": "tam", "te": "tel", "th": "tha", "tl": "tgl", "tr": "tur", "uk": "ukr",
    "ur": "urd", "vi": "vie", "zh": "zho",
}  # fmt: skip
"""ISO 639-1 as rows of IFEval and of many sets have it; ISO 639-3 is what filters.identify answers with."""

_ALIKE: Final = (
    frozenset({"hbs", "hrv", "bos", "srp"}), frozenset({"ind", "msa", "zsm"}), frozenset({"nor", "nno", "nob"}),
    frozenset({"zho", "cmn", "wuu", "yue"}), frozenset({"ara", "arb", "arz"}), frozenset({"fas", "pes", "prs"}),
)  # fmt: skip
"""Written languages that lid.176 cannot be asked to tell apart, or names by their macrolanguage."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """language: ISO 639-3, or und; script: ISO 15924, "" for und; score: the label's probability; letters: in it."""

    language: str
    script: str
    score: float
    letters: int


def prose(text: str) -> str:
    """A text without code, formulas, commands of TeX, addresses and tags."""
    return _NO_PROSE.sub(" ", text[:MAX_CHARS])


def told(texts: list[str]) -> list[Told]:
    """What language each of some texts of prose is in."""
    from filters import identify

    found = identify([text.encode("utf-8", "replace").decode() for text in texts])
    rows = zip(texts, found.column("language").to_pylist(), found.column("score").to_pylist(), strict=True)
    return [
        Told(
            language=str(label).partition("_")[0],
            script=str(label).partition("_")[2],
            score=float(score or 0.0),
            letters=letters(text),
        )
        for text, label, score in rows
    ]


def code(language: str) -> str:
    """ISO 639-3 of what rows and recipes call a language: fr, fra, fra_Latn, fr-CA."""
    start = re.split(r"[_-]", language.strip().lower(), maxsplit=1)[0]
    return _TWO_LETTERS.get(start, start)


def alike(first: str, second: str) -> bool:
    """Whether two languages (ISO 639-3) are the same, or too near to be told apart."""
    return first == second or any({first, second} <= group for group in _ALIKE)


def letters(text: str) -> int:
    """Letters, and signs of scripts that have none."""
    return len(_pattern("").findall(text))


def foreign_letters(text: str, script: str) -> int:
    """Letters that are neither of a script nor Latin: names, units and terms stand in Latin letters everywhere."""
    if script not in _SCRIPTS:
        return 0
    return letters(text) - len(_pattern(f"{_SCRIPTS[script]} Latin Common Inherited").findall(text))


@lru_cache(maxsize=64)
def _pattern(scripts: str) -> Any:
    import regex  # type: ignore[import-untyped]

    if not scripts:
        return regex.compile(r"\p{L}")
    wanted = "".join(rf"\p{{Script={script}}}" for script in sorted(set(scripts.split())))
    return regex.compile(rf"[[{wanted}]&&\p{{L}}]", regex.V1)
