"""IFEval's 25 constraints, each on both sides of what it asks, by IFEval's own names and parameters."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.verdicts import Outcome
from synth.verifiers import verify
from synth.verifiers.constraints import CONSTRAINTS, loose_forms, read_constraints
from synth.verifiers.constraints_words import occurrences, sentences, words

ENGLISH = "This is a plain English sentence about the weather of today."
GERMAN = "Das ist ein ganz gewöhnlicher deutscher Satz über das Wetter von heute."
RUSSIAN = "\u0440\u0443\u0441\u0441\u043a\u043e\u0435 \u0441\u043b\u043e\u0432\u043e"
AT_LEAST, LESS = "at least", "less than"
NTH = "length_constraints:nth_paragraph_first_word"
SECTIONS = "detectable_format:multiple_sections"
CAPITALS = "change_case:capital_word_frequency"
NUMBER_WORDS = "length_constraints:number_words"

KEPT_OR_NOT: list[tuple[str, dict[str, Any], str, bool]] = [
    ("keywords:existence", {"keywords": ["art", "new york"]}, "Art in New\nYork.", True),
    ("keywords:existence", {"keywords": ["art"]}, "A party.", False),
    ("keywords:existence", {"keywords": ["art", "sun"]}, "Art.", False),
    ("keywords:existence", {"keywords": ["C++"]}, "I like C++, too", True),
    ("keywords:existence", {"keywords": ["."]}, "no stop here", False),
    ("keywords:existence", {"keywords": ["北京"]}, "我喜欢北京烤鸭", True),
    ("keywords:frequency", {"keyword": "sun", "frequency": 2, "relation": AT_LEAST}, "Sun, sun.", True),
    ("keywords:frequency", {"keyword": "sun", "frequency": 2, "relation": AT_LEAST}, "Sun, sunny.", False),
    ("keywords:frequency", {"keyword": "sun", "frequency": 2, "relation": LESS}, "One sun.", True),
    ("keywords:frequency", {"keyword": "sun", "frequency": 2, "relation": LESS}, "sun sun", False),
    ("keywords:forbidden_words", {"forbidden_words": ["rock"]}, "ROCKET", True),
    ("keywords:forbidden_words", {"forbidden_words": ["rock"]}, "We ROCK!", False),
    ("keywords:letter_frequency", {"letter": "t", "let_frequency": 2, "let_relation": LESS}, "Tea", True),
    ("keywords:letter_frequency", {"letter": "t", "let_frequency": 2, "let_relation": LESS}, "Two tea", False),
    ("keywords:letter_frequency", {"letter": "#", "let_frequency": 2, "let_relation": AT_LEAST}, "#a #b", True),
    ("keywords:letter_frequency", {"letter": "#", "let_frequency": 3, "let_relation": AT_LEAST}, "#a #b", False),
    ("language:response_language", {"language": "de"}, GERMAN, True),
    ("language:response_language", {"language": "de"}, ENGLISH, False),
    ("length_constraints:number_sentences", {"num_sentences": 3, "relation": AT_LEAST}, "A b. C d! E f", True),
    ("length_constraints:number_sentences", {"num_sentences": 4, "relation": AT_LEAST}, "A b. C d! E f", False),
    ("length_constraints:number_sentences", {"num_sentences": 4, "relation": LESS}, "A b. C d! E f", True),
    ("length_constraints:number_sentences", {"num_sentences": 3, "relation": LESS}, "A b. C d! E f", False),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "one\n***\ntwo", True),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***\none\n\nmore\n***\ntwo\n***", True),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "one\n***\n***\ntwo", False),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "one\n\ntwo", False),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "one *** two", False),
    ("length_constraints:number_words", {"num_words": 3, "relation": AT_LEAST}, "don't well-known - yes", True),
    ("length_constraints:number_words", {"num_words": 4, "relation": AT_LEAST}, "don't well-known - yes", False),
    ("length_constraints:number_words", {"num_words": 4, "relation": LESS}, "one two three", True),
    ("length_constraints:number_words", {"num_words": 3, "relation": LESS}, "one two three", False),
    (NTH, {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "yes"}, "No\n\n\"Yes, it is", True),
    (NTH, {"num_paragraphs": 2, "nth_paragraph": 1, "first_word": "yes"}, "No\n\nYes", False),
    (NTH, {"num_paragraphs": 3, "nth_paragraph": 2, "first_word": "yes"}, "No\n\nYes", False),
    (NTH, {"num_paragraphs": 2, "nth_paragraph": 3, "first_word": "yes"}, "No\n\nYes", False),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name] of [ street ]", True),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name] [] [x](http://a.example)", False),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye\n\nP. S. I forgot", True),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye\n**PS:** I forgot", True),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye P.S. I forgot", False),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye\nP.S.", False),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye\nP.P.S. I forgot", False),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Bye\nP.P.S I forgot", True),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye\npsalm", False),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* one\n - two\n***\n**bold** text", True),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* one\n* two\n* three", False),
    ("detectable_format:number_bullet_lists", {"num_bullets": 1}, "*emphasis* only", False),
    ("detectable_format:constrained_response", {}, "My answer is maybe.", True),
    ("detectable_format:constrained_response", {}, "My answer is perhaps.", False),
    ("detectable_format:constrained_response", {}, "My answer is yes. My answer is no.", False),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*one* and **two words**", True),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*one* and ** two **", False),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 1}, "* bullet\n* bullet", False),
    (SECTIONS, {"section_spliter": "SECTION", "num_sections": 2}, "SECTION 1\na\n**SECTION 2:** b", True),
    (SECTIONS, {"section_spliter": "SECTION", "num_sections": 3}, "SECTION 1\na\nSECTION 2\nb", False),
    (SECTIONS, {"section_spliter": "SECTION", "num_sections": 2}, "SECTION 1\na\nSECTION 1\nb", False),
    (SECTIONS, {"section_spliter": "SECTION", "num_sections": 1}, "see SECTION 1", False),
    ("detectable_format:json_format", {}, '```json\n{"a": [1]}\n```', True),
    ("detectable_format:json_format", {}, '[{"a": 1}]', True),
    ("detectable_format:json_format", {}, '{"a": 1} done', False),
    ("detectable_format:json_format", {}, 'Here:\n```json\n{"a": 1}\n```', False),
    ("detectable_format:json_format", {}, "5", False),
    ("detectable_format:title", {}, "<<A title>>\ntext", True),
    ("detectable_format:title", {}, "<< >>\n<A title>", False),
    ("combination:two_responses", {}, "one\n******\ntwo", True),
    ("combination:two_responses", {}, "one\n******\none", False),
    ("combination:two_responses", {}, "one\n******\ntwo\n******\nthree", False),
    ("combination:two_responses", {}, "one\n*******\ntwo", False),
    ("combination:two_responses", {}, "******\ntwo", False),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say it."}, "say it.\n\nIt.", True),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say it."}, "Say it.", False),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say it."}, "Sure: Say it. It.", False),
    ("startend:end_checker", {"end_phrase": "Any more questions?"}, 'Yes. "any more\nquestions?"\n', True),
    ("startend:end_checker", {"end_phrase": "Any more questions?"}, "Any more questions? No.", False),
    (CAPITALS, {"capital_frequency": 2, "capital_relation": AT_LEAST}, "NASA and I", True),
    (CAPITALS, {"capital_frequency": 3, "capital_relation": AT_LEAST}, "NASA and I, 42", False),
    (CAPITALS, {"capital_frequency": 2, "capital_relation": LESS}, "One NASA", True),
    (CAPITALS, {"capital_frequency": 1, "capital_relation": LESS}, "One NASA", False),
    ("change_case:english_capital", {}, ENGLISH.upper(), True),
    ("change_case:english_capital", {}, "YES", True),
    ("change_case:english_capital", {}, ENGLISH, False),
    ("change_case:english_capital", {}, "1 + 1 = 2", False),
    ("change_case:english_lowercase", {}, ENGLISH.lower(), True),
    ("change_case:english_lowercase", {}, "no, I said", False),
    ("change_case:english_lowercase", {}, GERMAN.lower(), False),
    ("change_case:english_lowercase", {}, RUSSIAN, False),
    ("punctuation:no_comma", {}, "none; at all", True),
    ("punctuation:no_comma", {}, "one, two", False),
    ("punctuation:no_comma", {}, "\u4e00\uff0c\u4e8c", False),
    ("startend:quotation", {}, ' "all of it" ', True),
    ("startend:quotation", {}, "\u201call of it\u201d", True),
    ("startend:quotation", {}, '"some" of it', False),
    ("startend:quotation", {}, '""', False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters", "answer", "kept"), KEPT_OR_NOT)
def test_a_constraint_is_kept_or_broken(name: str, parameters: dict[str, Any], answer: str, kept: bool) -> None:
    verdict = verify("constraints", [{"id": name, **parameters}], answer)
    assert verdict.outcome is (Outcome.RIGHT if kept else Outcome.WRONG)
    assert verdict.reason == ("kept" if kept else name)


def test_all_25_are_there_and_each_is_shown_kept_and_broken() -> None:
    assert len(CONSTRAINTS) == 25
    shown = {(name, kept) for name, _, _, kept in KEPT_OR_NOT}
    assert shown == {(name, kept) for name in CONSTRAINTS for kept in (True, False)}


def test_rows_of_ifeval_are_read_as_they_are() -> None:
    row = {
        "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
        "kwargs": [{"num_words": None, "relation": None}, {"relation": "at least", "num_words": 3.0, "keywords": None}],
    }
    for gold in (row, json.dumps(row)):
        assert verify("constraints", gold, "one two three").outcome is Outcome.RIGHT
        verdict = verify("constraints", gold, "one, two")
        assert (verdict.reason, verdict.score) == ("punctuation:no_comma", 0.0)
    assert verify("constraints", row, "one two").score == 0.5


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        (None, "gold_has_no_constraints"),
        ([], "gold_has_no_constraints"),
        ("no json", "gold_has_no_constraints"),
        (7, "gold_has_no_constraints"),
        (["x"], "gold_has_no_constraints"),
        ({"instruction_id_list": ["a"], "kwargs": []}, "gold_has_no_constraints"),
        ({"instruction_id_list": ["punctuation:no_comma"], "kwargs": [None]}, "gold_has_no_constraints"),
        ([{"id": "punctuation:no_coma"}], "unknown_constraint"),
        ([{"words": 3}], "unknown_constraint"),
        ([{"id": "punctuation:no_comma", "more": 1}], "parameters.punctuation:no_comma"),
        ([{"id": "startend:end_checker"}], "parameters.startend:end_checker"),
        ([{"id": NUMBER_WORDS, "num_words": 3, "relation": "around"}], f"parameters.{NUMBER_WORDS}"),
        ([{"id": NUMBER_WORDS, "num_words": -1, "relation": "at least"}], f"parameters.{NUMBER_WORDS}"),
        ([{"id": "keywords:existence", "keywords": []}], "parameters.keywords:existence"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("answer", ["an answer", ""])
def test_a_row_that_cannot_be_read_is_an_error_whatever_the_answer(gold: Any, reason: str, answer: str) -> None:
    verdict = verify("constraints", gold, answer)
    assert (verdict.outcome, verdict.reason) == (Outcome.ERROR, reason)


def test_a_blank_answer_keeps_nothing_not_even_what_forbids() -> None:
    verdict = verify("constraints", [{"id": "keywords:forbidden_words", "forbidden_words": ["x"]}], " \n")
    assert (verdict.outcome, verdict.score) == (Outcome.WRONG, 0.0)


def test_what_cannot_be_told_is_unscored_unless_another_is_broken() -> None:
    language = {"id": "language:response_language", "language": "de"}
    assert verify("constraints", [language], "Ja").outcome is Outcome.UNSCORED
    assert verify("constraints", [language, {"id": "punctuation:no_comma"}], "Ja, so").outcome is Outcome.WRONG


def test_loose_takes_the_answer_without_its_first_or_last_line_and_asterisks() -> None:
    gold = [{"id": "startend:end_checker", "end_phrase": "bye now"}]
    answer = "Sure!\nSo it is.\n**bye now**\nHope that helps."
    assert verify("constraints", gold, answer).outcome is Outcome.WRONG
    assert verify("constraints", gold, answer, loose=True).outcome is Outcome.RIGHT
    assert len(loose_forms(answer)) == 7


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Mr. Smith has 3.14 pies, e.g. apple. Yes! Ok", 3),
        ("What?! Really...", 2),
        ('He said "Go." Then he went.', 2),
        ("A heading\n\nA sentence.", 2),
        ("one line\nanother line", 1),
        ("\u8fd9\u662f\u4e00\u53e5\u3002\u8fd9\u662f\u53e6\u4e00\u53e5\u3002", 2),
        ("...", 0),
        ("", 0),
        ("J. R. R. Tolkien wrote.", 1),
        ("It ended at 5 p.m.", 1),
    ],
)
def test_sentences_end_where_readers_would_say_so(text: str, count: int) -> None:
    assert sentences(text) == count


def test_words_and_occurrences_are_whole_words() -> None:
    assert words("a - b's c_d 1.5 --") == ["a", "b's", "c_d", "1.5"]
    assert occurrences("cat Cat concat cat's cat_x", "cat") == 3
    assert occurrences("", "cat") == occurrences("x", "  ") == 0


PARAMETERS = {name: parameters for name, parameters, _, _ in KEPT_OR_NOT}


@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
@given(st.text(max_size=80))
def test_any_text_gets_a_verdict(name: str, text: str) -> None:
    outcome = verify("constraints", [{"id": name, **PARAMETERS[name]}], text).outcome
    assert outcome in (
        (Outcome.RIGHT, Outcome.WRONG, Outcome.UNSCORED) if "language" in name else (Outcome.RIGHT, Outcome.WRONG)
    )


KEYS = st.sampled_from(["id", "instruction_id_list", "kwargs"])
PARTS = st.none() | st.text(max_size=8) | st.integers()


@given(st.recursive(PARTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)))
def test_any_gold_gives_constraints_or_none(gold: Any) -> None:
    assert isinstance(read_constraints(gold), list)
    assert isinstance(verify("constraints", gold, "x").outcome, Outcome)


@pytest.mark.parametrize(
    "text",
    ["*a " * 50_000, "[" * 150_000, "<<" * 75_000, "a." * 75_000, "P." * 75_000, "\n" * 150_000, "***\n" * 40_000],
)
def test_answers_made_to_hang_get_a_verdict_within_two_seconds(text: str) -> None:
    gold = [{"id": name, **PARAMETERS[name]} for name in CONSTRAINTS]
    assert verify("constraints", gold, text, limit_seconds=2.0).outcome is Outcome.WRONG
