"""What-if against real runs: exact at the changed step, and a range at the end that holds the run's count."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs import recipe as recipes
from jobs.errors import UserError
from jobs.running import run
from jobs.verbs import whatif
from tests.jobs.corpus import manifests, write_jsonl

COMMON = ["the", "of", "and", "to", "that", "have", "with", "be"]
WORDS = [
    f"{start}{end}"
    for start in ("mill", "grain", "stone", "river", "bread", "field", "wind", "sack")
    for end in ("er", "ing", "s", "ward", "house", "stone", "yard")
]
SIZES = (46, 52, 58, 64, 70, 90)


def families(count: int, seed: int) -> list[dict[str, Any]]:
    """Rows in families: a text, exact copies, copies with some words changed, and shorter ones, around the thresholds.

    Similarities lie on both sides of 0.8, lengths on both sides of 50 and 60 words, so that every change of a threshold
    adds or takes survivors, their duplicates, and links between families.
    """
    dice = random.Random(seed)
    made: list[dict[str, Any]] = []
    for number in range(count):
        base = [dice.choice(COMMON if at % 3 == 0 else WORDS) for at in range(dice.choice(SIZES))]
        if number % 11 == 4:
            base[5:5] = [
                "ducks",
                "lay",
                "sixteen",
                "eggs",
                "per",
                "day",
                "and",
                "she",
                "eats",
                "three",
                "for",
                "breakfast",
                "every",
                "morning",
            ]
        for member in range(dice.randrange(1, 6)):
            words = list(base)
            for _ in range(dice.choice((0, 0, 1, 1, 2))):
                words[dice.randrange(len(words))] = dice.choice(WORDS) + str(dice.randrange(9))
            words = words[: len(words) - dice.choice((0, 0, 2, 6))]
            if dice.random() < 0.1:
                words.append(f"mail someone{member}@wanderwinkel.org")
            made.append({"id": f"{number}-{member}", "text": " ".join(words).capitalize() + ".", "stars": member})
    return made


def document(folder: Path, out: Path) -> dict[str, Any]:
    return {
        "name": "what",
        "seed": 3,
        "output": str(out),
        "shard_bytes": 30_000,
        "sources": [{"name": "rows", "format": "jsonl", "paths": [f"{folder}/*.jsonl"]}],
        "steps": [
            {"step": "quality", "name": "first", "rules": ["gopher_quality"], "gopher_quality": {"min_words": 56}},
            {"step": "redact"},
            {"step": "exact"},
            {"step": "minhash", "bands": 20, "rows": 5},
            {"step": "decontaminate", "benchmarks": [f"{folder}/bench/items.jsonl"]},
            {
                "step": "quality",
                "name": "second",
                "rules": ["gopher_quality"],
                "gopher_quality": {"max_mean_word_characters": 6.55},
            },
        ],
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A corpus, and a finished run over it."""
    folder = tmp_path_factory.mktemp("whatif")
    rows = families(130, seed=8)
    for part in range(2):
        write_jsonl(folder / f"part-{part}.jsonl", rows[part::2])
    item = "ducks lay sixteen eggs per day and she eats three for breakfast every morning"
    write_jsonl(folder / "bench" / "items.jsonl", [{"bench": "b", "id": "1", "prompt": item, "answer": "three"}])
    result = run(recipes.build(document(folder, folder / "out")), workers=1, quiet=True)
    assert result.exit_code == 0
    return folder, folder / "out"


def asked(out: Path, sets: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert whatif.run(str(out), sets=sets, json=True) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


CHANGES = [
    ["first.gopher_quality.min_words=50"],
    ["first.gopher_quality.min_words=45"],
    ["first.gopher_quality.min_words=60"],
    ["first.gopher_quality.min_words=66"],
    ["first.gopher_quality.min_words=null"],
    ["second.gopher_quality.max_mean_word_characters=6.4"],
    ["second.gopher_quality.max_mean_word_characters=null"],
    ["minhash.verify=0.9"],
    ["minhash.verify=0.65"],
    [
        "first.gopher_quality.min_words=52",
        "first.gopher_quality.min_stop_words=8",
        "second.gopher_quality.max_mean_word_characters=6.45",
    ],
    ["first.gopher_quality.min_words=50", "minhash.verify=0.7"],
]


QUICK = (CHANGES[0], CHANGES[2], CHANGES[9])


@pytest.mark.parametrize(
    "sets",
    [pytest.param(sets, marks=() if sets in QUICK else pytest.mark.heavy, id=" ".join(sets)) for sets in CHANGES],
)
def test_a_real_run_agrees(
    made: tuple[Path, Path], sets: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = made
    before, answer = manifests(out), asked(out, sets, capsys)
    other = tmp_path / "out"
    shutil.copytree(out, other)
    run(recipes.build(document(folder, other), sets), workers=1, quiet=True)
    after = manifests(other)
    for step in answer["steps"]:
        name = step["step"]
        assert step["kept"]["before"] == before[name]["rows"]["kept"]
        assert step["dropped"]["before"] == before[name]["rows"]["dropped"]
        if step["exact"]:
            assert step["kept"]["after"] == after[name]["rows"]["kept"]
            assert step["dropped"]["after"] == after[name]["rows"]["dropped"]
            assert {rule["rule"]: rule["after"] for rule in step["rules"] if rule["after"]} == after[name]["rules"]
    final = answer["final"]
    assert final["before"] == before["second"]["rows"]["kept"]
    assert final["low"] <= after["second"]["rows"]["kept"] <= final["high"]
    assert final["exact"] == (final["low"] == final["high"])
    assert final["high"] - final["low"] <= final["touched"]


def test_the_first_changed_step_is_exact_and_a_last_step_gives_an_exact_end(
    made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    _, out = made
    for sets in CHANGES[:7]:
        assert asked(out, sets, capsys)["steps"][0]["exact"]
    assert asked(out, CHANGES[5], capsys)["final"]["exact"]
    assert asked(out, CHANGES[6], capsys)["final"]["exact"]


def test_the_range_is_of_use(made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    _, out = made
    final = asked(out, CHANGES[2], capsys)["final"]
    assert 0 < final["touched"] < 300
    assert final["high"] - final["low"] < 0.6 * final["touched"]


def test_samples_change_sides_and_rules_are_told(made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    _, out = made
    answer = asked(out, ["first.gopher_quality.min_words=60"], capsys)
    assert answer["changes"] == [
        {"step": "first", "setting": "gopher_quality.min_words", "before": 56.0, "after": 60.0}
    ]
    (step,) = answer["steps"]
    assert step["newly_kept"] == 0
    assert step["newly_dropped"] == step["kept"]["before"] - step["kept"]["after"] > 0
    assert len(step["samples"]["newly_dropped"]) == 5
    whatif.run(str(out), sets=["first.gopher_quality.min_words=60"])
    shown = capsys.readouterr().out
    assert "first.gopher_quality.min_words: 56 -> 60" in shown
    assert "documents at the end: " in shown


def test_a_threshold_that_the_recipe_left_alone_is_told(
    made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    _, out = made
    (change,) = asked(out, ["first.gopher_quality.min_stop_words=3"], capsys)["changes"]
    assert (change["before"], change["after"]) == (2.0, 3.0)


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ([], "whatif: say what to change, as --set quality.gopher_quality.min_words=40"),
        (
            ["first.gopher_quality.min_words=56"],
            "whatif: first.gopher_quality.min_words=56: this is what the run had, nothing changes",
        ),
        (
            ["minhash.bands=9"],
            "minhash.bands: needs a run (gristmill run RECIPE --set minhash.bands=...); "
            "of minhash, what was measured answers verify",
        ),
        (["seed=4"], "whatif: only settings of steps can be tried; for others: gristmill run RECIPE --set ..."),
        (
            ["exact.keep=longest"],
            "exact.keep: needs a run (gristmill run RECIPE --set exact.keep=...); "
            "of the steps, url, language, quality and minhash can be judged again",
        ),
    ],
)
def test_what_cannot_be_answered_is_one_line(made: tuple[Path, Path], sets: list[str], said: str) -> None:
    with pytest.raises(UserError) as caught:
        whatif.run(str(made[1]), sets=sets)
    assert str(caught.value) == said


def test_a_misspelt_setting_is_the_recipes_own_message(made: tuple[Path, Path]) -> None:
    with pytest.raises(UserError, match="did you mean"):
        whatif.run(str(made[1]), sets=["frst.gopher_quality.min_words=1"])


def test_signals_that_do_not_give_the_drops_are_refused(made: tuple[Path, Path], tmp_path: Path) -> None:
    _, out = made
    other = tmp_path / "out"
    shutil.copytree(out, other)
    path = other / "run.json"
    told = json.loads(path.read_text())
    told["recipe"]["steps"][0]["gopher_quality"]["min_words"] = 60
    path.write_text(json.dumps(told))
    with pytest.raises(UserError, match="do not give its drops"):
        whatif.run(str(other), sets=["first.gopher_quality.min_words=50"])


def test_without_the_dropped_texts_the_range_is_wide_and_says_why(
    made: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = made
    out = tmp_path / "out"
    run(recipes.build({**document(folder, out), "keep_dropped": 0.0}), workers=1, quiet=True)
    final = asked(out, ["first.gopher_quality.min_words=50"], capsys)["final"]
    assert (final["low"], final["exact"]) == (0, False)
    assert "keep_dropped" in final["why"]
    last = asked(out, ["second.gopher_quality.max_mean_word_characters=null"], capsys)["final"]
    assert last["exact"]
