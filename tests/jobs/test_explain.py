"""`explain`: every kind of step and section, from the code that does the work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from jobs.command_line import invoke
from jobs.steps import STEPS
from jobs.verbs.explain import SECTIONS, explain, lines
from jobs.verbs.settings import type_words, yaml_of

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", [*STEPS, *SECTIONS])
def test_every_setting_of_every_step_is_explained(name: str) -> None:
    explained = explain(name)
    assert explained.story
    for setting in explained.settings:
        assert setting.type
        assert setting.default


@pytest.mark.parametrize(("kind", "entry"), STEPS.items())
def test_every_kind_of_step_loads_and_has_what_the_protocol_asks(kind: str, entry: object) -> None:
    cls = STEPS[kind].load()
    assert callable(cls.__call__ if STEPS[kind].scope == "document" else cls.decide)
    for part in ("name", "version", "reads", "adds"):
        assert hasattr(cls, part)


def test_minhash_is_explained_with_defaults_and_bounds() -> None:
    settings = {setting.name: setting for setting in explain("minhash").settings}
    assert (settings["bands"].default, settings["bands"].type, settings["bands"].bounds) == (
        "14",
        "whole number",
        ">= 1, <= 1000",
    )
    assert settings["keep"].type.startswith("one of longest, ")
    assert "domains" not in settings


def test_quality_lists_every_rule_with_its_threshold_and_source() -> None:
    presets = {preset["name"]: preset for preset in explain("quality").presets}
    assert list(presets)[:4] == ["gopher_quality", "gopher_repetition", "c4", "fineweb"]
    words = next(rule for rule in presets["gopher_quality"]["rules"] if rule["rule"] == "min_words")
    assert words == {
        "rule": "min_words",
        "signal": "words",
        "bound": "min",
        "threshold": 50,
        "because": "too few words",
    }
    assert "arXiv:2112.11446" in presets["gopher_quality"]["source"]
    assert "  min_words                 words < 50: too few words" in list(lines(explain("quality")))


def test_the_list_and_an_unknown_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[: len(STEPS)]] == list(STEPS)
    assert invoke(["explain", "minhsh"]) == 2
    assert capsys.readouterr() == ("", "there is no step 'minhsh'; did you mean 'minhash'? See: gristmill explain\n")


def test_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain", "language", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["name"], told["scope"]) == ("language", "document")
    score = next(setting for setting in told["settings"] if setting["name"] == "min_score")
    assert (score["default"], score["bounds"]) == ("0.65", ">= 0, <= 1")


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int, "whole number"),
        (float | None, "number or nothing"),
        (tuple[str, ...], "list of text"),
        (tuple[float, float], "list of 2: number, number"),
        (str | tuple[str, ...], "text or list of text"),
        (dict[str, int], "mapping of whole number"),
    ],
)
def test_types_in_words(annotation: object, words: str) -> None:
    assert type_words(annotation) == words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        ((), "[]"),
        (("a", 1), "[a, 1]"),
        ({}, "{}"),
        ("", '""'),
        (64 << 20, "64MiB"),
        (0.5, "0.5"),
    ],
)
def test_defaults_as_they_stand_in_a_recipe(value: object, text: str) -> None:
    assert yaml_of(value) == text


def test_the_recipe_page_names_every_step_section_and_top_level_key() -> None:
    page = (DOCS / "recipe.md").read_text()
    told = set(re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE))
    assert told >= {*STEPS, *(setting.name for setting in explain("recipe").settings)}
