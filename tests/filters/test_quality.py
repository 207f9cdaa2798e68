"""Presets, thresholds, decisions and their reasons."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import text
from filters import explain, judge, measure
from filters.quality import Quality
from filters.quality_rules import PRESETS, load_rules
from filters.signals import MEANINGS, SIGNALS

GOOD = """A mill turns raw grain into flour, and this one turns pages into something that a model can learn from.
It begins with whatever was found on the way: letters to the editor, manuals, recipes, arguments about chess.
Most of that is worth keeping, but some of it is nothing more than menus, and those have to be left behind.
Each stone grinds a little finer than the last. What falls through is weighed, and what does not is put aside.
Nobody throws the husks out unseen: a label says which sieve stopped them, how wide its holes were, and why.
When the miller changes a sieve, only the sacks behind it must be opened again. The rest stays where it stands.
"""


def batch(*texts: str | None) -> pa.RecordBatch:
    return pa.record_batch({"id": [str(i) for i in range(len(texts))], "text": pa.array(texts, pa.large_string())})


def test_shipped_presets_have_sources_and_known_signals() -> None:
    assert PRESETS == ("c4", "c4_any_ending", "fineweb", "gopher_quality", "gopher_repetition")
    rules = load_rules(PRESETS)
    assert len({rule.code for rule in rules}) == len(rules) == 34
    assert all(rule.because for rule in rules)


def test_a_good_text_passes_all() -> None:
    judged = Quality()(batch(GOOD))
    assert judged.drops.num_rows == 0
    assert judged.kept.column("text")[0].as_py() == GOOD


@pytest.mark.parametrize(("words", "rule"), [(49, "gopher_quality.min_words"), (50, None)])
def test_fewest_words(words: int, rule: str | None) -> None:
    whole = " ".join(f"the of{i}" for i in range(25))[: None if words == 50 else -4].rstrip()
    signals = measure([whole])
    assert signals.column("words")[0].as_py() == words
    answer = judge(signals, ["gopher_quality"], gopher_quality={"min_stop_words": None}).to_pylist()[0]
    assert (answer["rule"], answer["kept"]) == (rule, rule is None)


RULES = load_rules(PRESETS)


@pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])
def test_each_rule_holds_at_its_threshold_and_fails_beyond(rule: Any) -> None:
    threshold = 0.5 if rule.threshold is None else rule.threshold
    beyond = np.nextafter(threshold, -np.inf if rule.bound == "min" else np.inf)
    columns = {name: pa.array([0.0, 0.0]) for name in MEANINGS}
    columns[rule.signal] = pa.array([threshold, beyond])
    only = {other.name: None for other in RULES if other.preset == rule.preset} | {rule.name: threshold}
    answers = judge(pa.table(columns), [rule.preset], **{rule.preset: only}).to_pylist()
    assert answers == [
        {"kept": True, "rule": None, "value": None, "threshold": None},
        {"kept": False, "rule": rule.code, "value": beyond, "threshold": threshold},
    ]


def test_none_is_off_and_zero_is_zero() -> None:
    signals = measure(["a # b", "a b"])
    only = {rule.name: None for rule in load_rules(["gopher_quality"])}
    assert judge(signals, ["gopher_quality"], gopher_quality=only).column("kept").to_pylist() == [True, True]
    zero = {**only, "max_hash_ratio": 0}
    assert judge(signals, ["gopher_quality"], gopher_quality=zero).column("kept").to_pylist() == [False, True]


def test_drops_name_the_first_rule_all_rules_value_and_threshold() -> None:
    judged = Quality(rules=("gopher_quality",))(batch(GOOD, "# # the of", None))
    first, second = judged.drops.to_pylist()
    assert (first["row"], first["rule"], first["value"], first["threshold"]) == (1, "gopher_quality.min_words", 2, 50)
    assert "gopher_quality.max_hash_ratio" in first["rules"]
    assert (second["row"], second["rule"], second["value"]) == (2, "gopher_quality.min_words", 0)
    assert judged.signals is not None
    assert judged.signals.schema == SIGNALS
    assert judged.signals.num_rows == 3


@given(st.lists(st.one_of(st.text(), st.just(GOOD)), max_size=5))
@settings(deadline=None)
def test_judging_stored_signals_decides_as_the_step(texts: list[str]) -> None:
    judged = Quality()(batch(*texts))
    again = judge(pa.table(judged.signals)).to_pylist()
    assert [row["kept"] for row in again] == [i in judged.kept_rows for i in range(len(texts))]
    drops = {row["row"]: row for row in judged.drops.to_pylist()}
    for i, row in enumerate(again):
        if not row["kept"]:
            assert {key: drops[i][key] for key in ("rule", "value", "threshold")} == {
                key: row[key] for key in ("rule", "value", "threshold")
            }


def test_an_empty_batch_and_no_rules() -> None:
    assert Quality()(batch()).kept.num_rows == 0
    assert Quality(rules=())(batch("")).kept.num_rows == 1
    assert judge(measure([""]), []).column("kept").to_pylist() == [True]


def test_tokens_stay_for_the_next_step() -> None:
    kept = Quality()(batch("too short", GOOD)).kept
    assert text.tokens_of(kept).words(0) == text.tokenize([GOOD]).words(0)
    assert "_words" in kept.schema.names


def test_thresholds_from_a_recipe_and_across_processes() -> None:
    step = Quality(rules=("gopher_quality",), gopher_quality={"min_words": 2, "min_stop_words": None})
    assert step(batch("seven words")).kept.num_rows == 1
    assert pickle.loads(pickle.dumps(step))(batch("seven words")).kept.num_rows == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rules": ("gopher",)}, "gopher: no such preset; did you mean"),
        ({"gopher_quality": {"min_word": 2}}, "gopher_quality.min_word: no such rule; did you mean min_words?"),
        ({"rules": ("c4",), "fineweb": {"max_newline_ratio": 1}}, "fineweb: thresholds for a preset that is not among"),
        ({"rules": ("c4", "c4")}, "a preset stands twice"),
        ({"rules": ("missing.yaml",)}, "missing.yaml: cannot read the preset: No such file"),
        ({"gopher_quality": {"min_words": "many"}}, "min_words"),
        ({"colour": 1}, "colour"),
    ],
)
def test_mistakes_in_settings_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message.replace("?", r"\?")):
        Quality(**arguments)


def test_a_preset_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("source: me\nrules:\n  max_words: {signal: words, max: 3, because: long}\n")
    step = Quality(rules=(str(path),), overrides={"mine": {"max_words": 2}})
    assert step.files() == (str(path),)
    assert step(batch("one two three", "one two")).drops.to_pylist()[0]["rule"] == "mine.max_words"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("rules: [1]", "a preset needs `rules:`"),
        ("- 1", "a preset needs `rules:`"),
        ("rules: {x: {signal: words}}", "needs a signal and one of min and max"),
        ("rules: {x: {signal: word, max: 1}}", "no signal 'word'; did you mean words?"),
        ("rules: {x: {signal: words, max: many}}", "max is 'many', not a number or null"),
        ("rules: {x: {signal: words, max: yes}}", "max is True, not a number or null"),
    ],
)
def test_mistakes_in_a_preset_are_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(content)
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        load_rules([str(path)])


def test_explain_lists_every_signal_and_rule() -> None:
    table = explain("# #", ["gopher_quality"], gopher_quality={"max_words": None}).to_pylist()
    assert {row["signal"] for row in table} == set(MEANINGS)
    by_rule = {row["rule"]: row for row in table if row["rule"]}
    assert len(by_rule) == 11
    assert by_rule["gopher_quality.max_hash_ratio"]["passed"] is False
    assert by_rule["gopher_quality.max_hash_ratio"]["value"] == 1
    assert by_rule["gopher_quality.max_words"]["passed"] is None
    assert by_rule["gopher_quality.max_words"]["threshold"] is None
