"""Tags and sections in order, once each, with something in them; and no mark of the teacher's leaks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.errors import SynthError
from synth.verdicts import Outcome
from synth.verifiers import verify

R1: dict[str, Any] = {"tags": ["think", "answer"], "outside": "refuse"}
PARTS: dict[str, Any] = {"sections": ["Summary", "Next steps"]}


@pytest.mark.parametrize(
    ("answer", "options", "reason"),
    [
        ("<think>a</think>\n<answer>b</answer>", R1, "kept"),
        ("<think>a</think> so <answer>b</answer>", R1, "text_outside_tags"),
        ("<think>a</think> so <answer>b</answer>", {"tags": ["think", "answer"]}, "kept"),
        ("<think>a</think><answer>b</answer> bye", R1, "text_outside_tags"),
        ("<answer>b</answer><think>a</think>", R1, "tags_out_of_order"),
        ("<think>a<answer>b</answer></think>", R1, "tags_out_of_order"),
        ("</think>a<think><answer>b</answer>", R1, "tags_out_of_order"),
        ("<think>a</think>", R1, "tag_missing"),
        ("<think>a<answer>b</answer>", R1, "tag_missing"),
        ("<think>a</think><answer>b</answer><answer>c</answer>", R1, "tag_repeated"),
        ("<think> </think><answer>b</answer>", R1, "tag_empty"),
        ("<think>a</think><answer></answer>", R1, "tag_empty"),
        ("a</think><answer>b</answer>", {**R1, "opened": "template"}, "kept"),
        ("<think>a</think><answer>b</answer>", {**R1, "opened": "template"}, "tag_repeated"),
        ("plain", {}, "kept"),
        ("ah </think> plain", {}, "leaked_tag"),
        ("ah <THINK> plain", {}, "leaked_tag"),
        ("ah <|im_end|>", {}, "leaked_tag"),
        ("ah <|im_end|>", {"leaked": []}, "kept"),
        ("# Summary\nx\n## Next steps:\ny", PARTS, "kept"),
        ("**Summary:**\nx\n\nnext steps\ny", PARTS, "kept"),
        ("**Summary**:\nx\n\nnext steps\ny", PARTS, "kept"),
        ("Next steps\ny\nSummary\nx", PARTS, "sections_out_of_order"),
        ("Summary\nx", PARTS, "section_missing"),
        ("In summary\nx\nNext steps\ny", PARTS, "section_missing"),
        ("Summary\nx\nSummary\nz\nNext steps\ny", PARTS, "section_repeated"),
        ("Summary\n\nNext steps\ny", PARTS, "section_empty"),
        ("Summary\nx\nNext steps\n ", PARTS, "section_empty"),
        (" ", {}, "too_short"),
        ("abc", {"min_chars": 3}, "kept"),
        ("ab ", {"min_chars": 3}, "too_short"),
        ("abc", {"max_chars": 3}, "kept"),
        ("abcd", {"max_chars": 3}, "too_long"),
    ],
)
def test_the_first_broken_rule_is_named(answer: str, options: dict[str, Any], reason: str) -> None:
    verdict = verify("format", None, answer, **options)
    assert (verdict.reason, verdict.outcome is Outcome.RIGHT) == (reason, reason == "kept")


@pytest.mark.parametrize("options", [{"tags": ["a b"]}, {"tags": ["a", "A"]}, {"sections": [""]}, {"max_chars": 0}])
def test_options_that_no_answer_could_keep_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SynthError, match="verifier format"):
        verify("format", None, "x", **options)


@given(st.text(alphabet="<>/thinkaswer \n#*:SumaryNxep"), st.sampled_from([R1, PARTS, {}]))
def test_any_text_keeps_the_format_or_breaks_a_rule(text: str, options: dict[str, Any]) -> None:
    assert verify("format", None, text, **options).outcome in (Outcome.RIGHT, Outcome.WRONG)


@pytest.mark.parametrize(
    "text", ["*" * 100_000, "# " * 50_000, "\n" * 100_000, "<think>" * 20_000, "Summary\n" * 20_000]
)
def test_answers_made_to_hang_get_a_verdict_within_a_second(text: str) -> None:
    for options in (R1, PARTS):
        assert verify("format", None, text, limit_seconds=1.0, **options).outcome is Outcome.WRONG
