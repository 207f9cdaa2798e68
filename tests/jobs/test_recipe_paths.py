"""The paths of a recipe: home folders, outputs that nothing can be written to, inputs that meet the output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.errors import MistakesError
from jobs.recipe import Recipe, build
from jobs.recipe_paths import collision


def recipe(output: str, paths: list[str] | None = None, **changes: Any) -> dict[str, Any]:
    source = {"name": "rows", "format": "jsonl", "paths": paths or ["elsewhere/*.jsonl"]}
    return {"name": "made", "output": output, "sources": [source], "steps": [{"step": "extract"}]} | changes


def mistakes(document: dict[str, Any], *sets: str) -> list[str]:
    with pytest.raises(MistakesError) as caught:
        build(document, sets)
    assert all("\n" not in line for line in caught.value.mistakes)
    return list(caught.value.mistakes)


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "hosts.txt").write_text("example.org\n", encoding="utf-8")


def test_home_folders_are_put_in_place_everywhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    steps: list[dict[str, Any]] = [{"step": "extract"}, {"step": "url", "block_domains": ["~/hosts.txt"]}]
    document = recipe("~/out", ["~/data/*.jsonl", "a~/b.jsonl"], steps=steps)
    made: Recipe = build(document)
    assert made.output == f"{home}/out"
    assert made.sources[0].paths == (f"{home}/data/*.jsonl", "a~/b.jsonl")
    assert made.steps[1].step.files() == (f"{home}/hosts.txt",)  # type: ignore[union-attr]
    assert build(made.document).output == made.output
    assert document["output"] == "~/out"  # the caller's own values stay as they are


def test_home_folders_in_a_set_too(tmp_path: Path) -> None:
    assert build(recipe("out"), ["output=~/other"]).output == str(tmp_path / "home" / "other")


def test_arguments_of_other_steps_are_their_own() -> None:
    steps = [{"step": "extract"}, {"step": "datatrove", "block": "datatrove.pipeline.filters.LambdaFilter"}]
    steps[1]["args"] = {"filter_function": "~/x"}  # type: ignore[assignment]
    assert build(recipe("out", steps=steps)).document["steps"][1]["args"] == {"filter_function": "~/x"}


def test_nobodys_home_is_named() -> None:
    assert mistakes(recipe("~no_such_person/out")) == [
        "recipe: output: ~no_such_person has no home folder here; write the path in full"
    ]


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("out/co::lon", "holds '::', a chained URL"),
        ("simplecache::s3://bucket/x", "holds '::', a chained URL"),
        ("memory://out", "memory:// is another memory in each worker"),
        ("https://example.org/out", "nothing is written to https://"),
        ("s4://bucket/out", "s4:// is no kind of storage; "),
        ("s3://bucket/o*t", "holds *, ? or ["),
        ("out/a\\b", "holds a backslash"),
        ("out/a\nb", "holds a backslash or a control character"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused(output: str, said: str) -> None:
    (line,) = mistakes(recipe(output))
    assert line.startswith(f"recipe: output: {said}")


@pytest.mark.parametrize(
    "output", ["out", "file:///data/x", "s3://bucket/out", "gs://bucket/out", "out/br[a]ck", "a:b"]
)
def test_other_outputs_are_taken(output: str) -> None:
    assert build(recipe(output)).output == output


@pytest.mark.parametrize(
    ("output", "pattern", "meet"),
    [
        ("out", "out/data/*.jsonl", "lies in"),
        ("out", "out/a.jsonl", "lies in"),
        ("out", "out", "lies in"),
        ("out", "./x/../out/a.jsonl", "lies in"),
        ("out", "link/a.jsonl", "lies in"),
        ("file://{here}/out", "out/a.jsonl", "lies in"),
        ("data/out", "data", "would also read"),
        ("data/out", "data/", "would also read"),
        ("data/out", "data/**/*.parquet", "would also read"),
        ("data/out", "data/*/*.json", "would also read"),
        ("data/out", "{here}/data/*/*/*/*.parquet", "would also read"),
        ("data/.out", "data", None),
        ("data/out", "data/*.jsonl", None),
        ("data/out", "data/*/*.jsonl", None),
        ("data/out", "data/**/*.jsonl", None),
        ("out", "*.jsonl", None),
        ("out", "output/a.jsonl", None),
        ("output", "out", None),
        ("s3://bucket/out", "s3://bucket/out/a.jsonl", None),
    ],
)
def test_inputs_and_output_are_kept_apart(tmp_path: Path, output: str, pattern: str, meet: str | None) -> None:
    for folder in ("data", "out"):
        (tmp_path / folder).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "out")
    output, pattern = output.format(here=tmp_path), pattern.format(here=tmp_path)
    said = collision(output, pattern)
    assert (said is None) == (meet is None)
    if meet is not None:
        (line,) = mistakes(recipe(output, ["elsewhere/*.jsonl", pattern]))
        assert line.startswith(f"recipe: sources.rows.paths: {pattern} {meet}")
        assert output in line


def test_names_that_no_folder_can_have_are_refused() -> None:
    (line,) = mistakes(recipe("out", steps=[{"step": "extract"}, {"step": "exact", "name": "x" * 201}]))
    assert line.startswith("recipe: name: is 201 letters long")
    assert build(recipe("out", steps=[{"step": "extract"}, {"step": "exact", "name": "x" * 200}]))
    (line,) = mistakes(recipe("out", name="x" * 201))
    assert line.startswith("recipe: name: is 201 letters long")


def test_a_set_by_kind_means_the_step_without_a_name() -> None:
    steps = [{"step": "minhash"}, {"step": "minhash", "name": "late"}]
    made = build(recipe("out", steps=steps), ["minhash.verify=0.9", "late.verify=0.7"])
    assert [getattr(entry.step, "verify", None) for entry in made.steps] == [0.9, 0.7]
    named = [{"step": "minhash", "name": "early"}, {"step": "minhash", "name": "late"}]
    (line,) = mistakes(recipe("out", steps=named), "minhash.verify=0.9")
    assert line.endswith("minhash stands 2 times; use a step's name: early, late")
