from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
import yaml

from jobs.errors import UserError
from jobs.verbs import trial
from jobs.verbs.paper import width
from tests.jobs.corpus import corpus, document


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("try")
    data = corpus(folder / "data", files=1, count=120)
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(document(data, folder / "never") | {"tokens": {"vocab_size": 300}}))
    return path


def test_a_sample_goes_through_every_step_and_leaves_nothing(
    recipe: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert trial.run(str(recipe), n=60) == 0
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert lines[0].split() == ["step", "in", "kept", "dropped", "quarantined", "most", "by"]
    assert [text.split()[0] for text in lines[2:7]] == ["read", "extract", "quality", "exact", "minhash"]
    assert any(text.startswith("KEPT") and text.endswith("| DROPPED") for text in lines)
    assert "exact: duplicate, 1 against 1" in shown
    assert not (recipe.parent / "never").exists()
    assert list(tmp_path.glob("gristmill-*")) == []


def test_json_has_every_document_of_the_sample(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert trial.run(str(recipe), n=60, sets=["minhash.verify=1.0"], json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["records"] == 60 == len(told["kept"]) + len(told["dropped"]) + len(told["quarantined"])
    assert {row["rule"] for row in told["dropped"]} == {"duplicate"}
    assert [step["step"] for step in told["steps"]] == ["read", "extract", "quality", "exact", "minhash"]


def test_a_mistake_in_the_recipe_is_the_recipes_own_message(recipe: Path) -> None:
    with pytest.raises(UserError, match="did you mean"):
        trial.run(str(recipe), sets=["minhash.verfy=1"])


@pytest.mark.parametrize("columns", [20, 21, 60])
def test_wrapped_text_fits_its_column(columns: int) -> None:
    for text in ("words of some length that go on and on " * 5, "x" * 300, "\u6f22\u5b57\u3067\u66f8\u304f" * 40, ""):
        lines = trial.wrapped(text, columns, 3)
        assert 1 <= len(lines) <= 3
        assert all(width(line) <= columns for line in lines)
    assert trial.wrapped("a b", 10, 3) == ["a b"]
    assert trial.wrapped("one two three", 8, 3) == ["one two", "three"]
