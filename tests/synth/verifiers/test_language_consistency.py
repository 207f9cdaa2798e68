"""An answer in its prompt's language, throughout; what cannot be told is unscored, never wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.verdicts import Check, Outcome
from synth.verifiers import Workers, verify
from synth.verifiers.language_text import code, foreign_letters, prose

ENGLISH = "This is the answer to your question, and all of it stands in English."
GERMAN = "Das ist die Antwort auf deine Frage, und sie ist ganz auf Deutsch geschrieben."
CHINESE = (
    "\u8fd9\u662f\u5bf9\u4f60\u95ee\u9898\u7684\u56de\u7b54\uff0c"
    "\u5168\u90e8\u7528\u4e2d\u6587\u5199\u6210\u7684\u53e5\u5b50\u3002"
)
ASKED = "What is the answer to the question that I asked you yesterday?"


@pytest.mark.parametrize(
    ("answer", "options", "outcome", "reason"),
    [
        (ENGLISH, {"prompt": ASKED}, "right", "same"),
        (GERMAN, {"prompt": ASKED}, "wrong", "other_language"),
        (CHINESE, {"prompt": ASKED}, "wrong", "other_language"),
        (GERMAN, {"language": "de"}, "right", "same"),
        (GERMAN, {"language": "deu_Latn"}, "right", "same"),
        (CHINESE, {"language": "zh-CN"}, "right", "same"),
        (
            f"{ENGLISH}\n```python\nprint('Grüße aus Köln, das ist kein Englisch')\n```",
            {"prompt": ASKED},
            "right",
            "same",
        ),
        (f"{ENGLISH} $\\text{{Lösung der Gleichung}} = x$", {"prompt": ASKED}, "right", "same"),
        (f"{ENGLISH} The Greek letter \u03c8 and the sign \u4e2d.", {"prompt": ASKED}, "right", "same"),
        (f"{ENGLISH} \u7b49\u4e8e\u56db\u8fd9\u662f\u5f88\u7b80\u5355", {"prompt": ASKED}, "wrong", "foreign_script"),
        ("\u7b49\u4e8e\u56db\u8fd9\u662f\u5f88\u7b80\u5355", {"language": "eng_Latn"}, "wrong", "foreign_script"),
        ("\u7b49\u4e8e\u56db", {"language": "eng_Latn"}, "unscored", "answer_abstained"),
        (f"{ENGLISH} {ENGLISH}\n{GERMAN}\n{ENGLISH}", {"prompt": ASKED}, "wrong", "mixed_paragraphs"),
        (f"{ENGLISH} {ENGLISH}\n{GERMAN}\n{ENGLISH}", {"prompt": ASKED, "max_other_paragraphs": 0.4}, "right", "same"),
        ("Yes", {"prompt": ASKED}, "unscored", "answer_abstained"),
        ("42", {"prompt": ASKED}, "unscored", "no_prose"),
        ("```\ncode = 1\n```", {"prompt": ASKED}, "unscored", "no_prose"),
        (ENGLISH, {"prompt": "2+2?"}, "unscored", "prompt_abstained"),
        (ENGLISH, {}, "error", "no_language_to_compare_with"),
        ("", {"prompt": ASKED}, "wrong", "no_answer"),
    ],
)
def test_the_language_is_held_to(answer: str, options: dict[str, Any], outcome: str, reason: str) -> None:
    verdict = verify("language", None, answer, **options)
    assert (verdict.outcome.value, verdict.reason) == (outcome, reason)


def test_a_gold_names_the_language_and_no_other_gold_is_read() -> None:
    assert verify("language", "de", GERMAN).outcome is Outcome.RIGHT
    assert verify("language", "fr", GERMAN).outcome is Outcome.WRONG
    assert verify("language", 5, GERMAN).outcome is Outcome.ERROR


@pytest.mark.parametrize(
    ("said", "meant"), [("fr", "fra"), ("fr-CA", "fra"), ("fra_Latn", "fra"), ("FRA", "fra"), ("xx", "xx")]
)
def test_languages_are_named_in_two_letters_three_or_with_a_script(said: str, meant: str) -> None:
    assert code(said) == meant


def test_code_formulas_addresses_and_tags_are_no_prose() -> None:
    text = "a `code` b $x+y$ c \\(z\\) d \\frac{1}{2} e https://a.example/b f <b>g</b> h ```py\nx\n``` i ```open"
    assert prose(text).split() == list("abcdefghi")


def test_latin_letters_are_foreign_nowhere_and_others_are() -> None:
    assert foreign_letters("Это GPU", "Cyrl") == 0
    assert foreign_letters("Это 中文", "Cyrl") == 2
    assert foreign_letters("日本語とカナ", "Jpan") == 0
    assert foreign_letters("abc", "Zzzz") == 0


@given(st.text())
def test_any_text_gets_a_verdict_that_is_no_error(text: str) -> None:
    assert verify("language", "en", text).outcome is not Outcome.ERROR


@pytest.mark.parametrize("text", ["`" * 200_000, "$" * 200_000, "\\(" * 100_000, "\\begin{a}" * 20_000, "<a" * 100_000])
def test_answers_made_to_hang_get_a_verdict_within_two_seconds(text: str) -> None:
    assert verify("language", "en", text, limit_seconds=2.0).outcome in (Outcome.UNSCORED, Outcome.WRONG)


LANGUAGES = ("de", "en", "es", "fr", "it", "ja", "ru", "zh")


def _texts(shared: Path, language: str) -> list[str]:
    """Texts of two paragraphs of three real sentences each."""
    with gzip.open(shared / "language" / "lingua_sentences.jsonl.gz", "rt") as lines:
        rows = [row["text"] for row in map(json.loads, lines) if row["lang"] == language]
    sixes = [rows[at : at + 6] for at in range(0, len(rows) - 5, 6)]
    return [" ".join(six[:3]) + "\n\n" + " ".join(six[3:]) for six in sixes][:60]


def test_real_texts_are_right_in_their_own_language_and_never_in_another(shared: Path) -> None:
    texts = {language: _texts(shared, language) for language in LANGUAGES}
    own, other = [], []
    for at, language in enumerate(LANGUAGES):
        different = LANGUAGES[(at + 3) % len(LANGUAGES)]
        for prompt, answer, foreign in zip(texts[language], texts[language][1:], texts[different], strict=False):
            own.append(verify("language", None, answer, prompt=prompt).outcome)
            other.append(verify("language", None, foreign, prompt=prompt).outcome)
    assert len(own) > 400
    assert own.count(Outcome.WRONG) <= 0.02 * len(own)
    assert own.count(Outcome.UNSCORED) <= 0.02 * len(own)
    assert other.count(Outcome.RIGHT) == 0


@pytest.mark.parametrize("kind", ["language", "constraints"])
def test_workers_load_the_model_before_a_checks_time_runs(kind: str) -> None:
    gold: Any = "en" if kind == "language" else [{"id": "language:response_language", "language": "en"}]
    with Workers(processes=1, kinds=(kind,), limit_seconds=1.0) as workers:
        assert workers.check_all([Check(kind=kind, gold=gold, answer=ENGLISH)])[0].outcome is Outcome.RIGHT
