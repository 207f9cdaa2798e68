"""The recipes of synthesis are read as they stand: kinds, keys and values are those that there are."""

from __future__ import annotations

from pathlib import Path

import yaml

from jobs import settings_file
from jobs.steps import SYNTH, load_target
from synth.exports import Export

RECIPES = Path(__file__).resolve().parents[2] / "recipes"


def test_the_word_problems_are_a_run_of_synthesis() -> None:
    made, places = settings_file.load(str(RECIPES / "word-problems.yaml"), load_target(SYNTH), {"output": "path"})
    assert places == {"output": "out/word-problems"}
    assert list(made.teachers) == ["teacher"]


def test_their_export_names_terms_for_the_teacher() -> None:
    made = settings_file.optional(str(RECIPES / "word-problems-export.yaml"), Export)
    asked = yaml.safe_load((RECIPES / "word-problems.yaml").read_text())
    assert set(made.terms) == set(asked["teachers"])
