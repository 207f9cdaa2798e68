"""Strict JSON of a schema: nothing repaired, nothing fetched, and a broken schema is an error, never a wrong answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.verdicts import Outcome
from synth.verifiers import verify
from synth.verifiers.json_schema import MAX_DEPTH, NotJson, strict_json

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 0}, "day": {"type": "string", "format": "date"}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [
        ('{"a": 1}', "right", "valid"),
        (' {"a": 0}\n', "right", "valid"),
        ('{"a": 1.0}', "right", "valid"),
        ('```json\n{"a": 1}\n```', "right", "valid"),
        ('Here it is:\n```\n{"a": 1}\n```\nDone.', "right", "valid"),
        ('{"a": -1}', "wrong", "schema.minimum"),
        ('{"a": "1"}', "wrong", "schema.type"),
        ("{}", "wrong", "schema.required"),
        ('{"a": 1, "b": 2}', "wrong", "schema.additionalProperties"),
        ('{"a": 1, "day": "2020-02-29"}', "right", "valid"),
        ('{"a": 1, "day": "2021-02-29"}', "wrong", "schema.format"),
        ('{"a": 1, "a": 2}', "wrong", "duplicate_key"),
        ('{"a": 1, "\\u0061": 2}', "wrong", "duplicate_key"),
        ('{"a": NaN}', "wrong", "not_finite"),
        ('{"a": -Infinity}', "wrong", "not_finite"),
        ('{"a": 1e999}', "wrong", "not_finite"),
        ('{"a": 1', "wrong", "not_json"),
        ("{'a': 1}", "wrong", "not_json"),
        ('{"a": 1,}', "wrong", "not_json"),
        ('{"a": 1} and more', "wrong", "not_json"),
        ('Here: {"a": 1}', "wrong", "not_json"),
        ('{"a": ' + "9" * 5_000 + "}", "wrong", "not_json"),
        ("```\n1\n```\n```\n2\n```", "wrong", "several_fences"),
        ('```json\n{"a": 1}', "wrong", "fence_not_closed"),
        ("[" * 100_000, "wrong", "nested_too_deeply"),
        ("", "wrong", "not_json"),
    ],
)
def test_an_answer_is_json_of_the_schema_or_wrong_with_the_rule(answer: str, outcome: str, reason: str) -> None:
    verdict = verify("json_schema", SCHEMA, answer)
    assert (verdict.outcome.value, verdict.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({}, "schema_is_empty"),
        ("{}", "schema_is_empty"),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema"}, "schema_is_empty"),
        (None, "schema_is_empty"),
        ({"$schema": "http://nowhere.example/schema", "type": "object"}, "schema_of_unknown_draft"),
        ({"type": "objekt"}, "schema_is_invalid"),
        ({"pattern": "("}, "schema_is_invalid"),
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "schema_refers_elsewhere"),
        ({"$ref": "#/$defs/nowhere"}, "schema_refers_elsewhere"),
        ({"$ref": "#"}, "schema_recurses"),
        ([SCHEMA], "schema_is_no_object"),
        (5, "schema_is_no_object"),
        ("not json", "schema_bad"),
    ],
)
def test_a_schema_that_judges_nothing_is_an_error(schema: Any, reason: str) -> None:
    verdict = verify("json_schema", schema, '{"a": 1}')
    assert (verdict.outcome, verdict.reason) == (Outcome.ERROR, reason)


def test_the_draft_decides_what_a_keyword_means() -> None:
    # exclusiveMinimum was a boolean beside minimum in draft 4 and is a number since draft 6.
    old = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}
    new = {"$schema": "http://json-schema.org/draft-07/schema#", "exclusiveMinimum": 3}
    assert verify("json_schema", old, "3").outcome is Outcome.WRONG
    assert verify("json_schema", old, "4").outcome is Outcome.RIGHT
    assert verify("json_schema", new, "3").outcome is Outcome.WRONG
    assert verify("json_schema", {**new, "exclusiveMinimum": True}, "3").outcome is Outcome.ERROR


def test_a_schema_can_stand_in_the_options_and_formats_and_fences_be_switched_off() -> None:
    assert verify("json_schema", None, '{"a": 1}', schema=SCHEMA).outcome is Outcome.RIGHT
    assert verify("json_schema", SCHEMA, '{"a": 1, "day": "x"}', formats=False).outcome is Outcome.RIGHT
    assert verify("json_schema", SCHEMA, '```\n{"a": 1}\n```', part="whole").outcome is Outcome.WRONG


@pytest.mark.parametrize(("depth", "fits"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
def test_brackets_may_be_nested_so_deep_and_a_recursive_schema_still_reads_them(depth: int, fits: bool) -> None:
    tree = {"type": "array", "items": {"$ref": "#"}}
    verdict = verify("json_schema", tree, "[" * depth + "]" * depth)
    assert (verdict.outcome is Outcome.RIGHT) == fits
    assert verdict.outcome is not Outcome.ERROR


@given(st.text())
def test_any_text_gets_a_verdict(text: str) -> None:
    assert verify("json_schema", SCHEMA, text).outcome in (Outcome.RIGHT, Outcome.WRONG)


@given(st.text(alphabet='{}[]",:0123456789.eE+-aNtrufls\\ \n`', max_size=40))
def test_any_near_json_is_read_or_refused_with_a_reason(text: str) -> None:
    assert _reason(text) in ("", "not_json", "duplicate_key", "not_finite", "nested_too_deeply")


def _reason(text: str) -> str:
    try:
        strict_json(text)
    except NotJson as error:
        return error.reason
    return ""


NAMES = st.sampled_from(["type", "items", "$ref", "enum", "pattern", "minimum", "not", "$schema", "anyOf", "a"])
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.lists(st.text(max_size=3), max_size=2)
)


@given(st.dictionaries(NAMES, st.recursive(VALUES, lambda inner: st.dictionaries(NAMES, inner), max_leaves=5)))
def test_any_object_taken_for_a_schema_gives_a_verdict(schema: dict[str, Any]) -> None:
    assert isinstance(verify("json_schema", schema, '{"a": 1}').outcome, Outcome)


def test_a_schemas_catastrophic_pattern_ends_at_the_limit_as_an_error() -> None:
    schema = {"type": "string", "pattern": "^(a|aa)+$"}
    verdict = verify("json_schema", schema, '"' + "a" * 60 + '!"', limit_seconds=0.5)
    assert verdict.outcome is Outcome.ERROR
    assert verdict.seconds < 1.5
