"""A recipe with a `mix:` section: the mixture it finds is what training takes, and what is fed back finds another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs import recipe as recipes
from jobs.command_line import invoke
from jobs.errors import UserError
from mixing.observations import read_observations
from shards.store import read_json
from tests.jobs.corpus import corpus, mill
from tests.jobs.test_training import TINY

MIX = {
    "runs": 4,
    "first_runs": 4,
    "max_epochs": None,
    "proxies": {
        "sizes": {"tiny": {"layers": 1, "width": 32, "heads": 2}},
        "tokens": 512,
        "sequence_tokens": 64,
        "batch_sequences": 4,
        "warmup_steps": 1,
        "evaluation_sequences": 4,
        "held_out": 0.1,
        "mup_base_width": None,
        "workers": 0,
    },
}


def mixed(folder: Path, **changes: Any) -> Any:
    sources = [
        {"name": name, "format": "jsonl", "paths": [f"{folder / name}/*.jsonl"], "domain": name}
        for name in ("books", "code", "web")
    ]
    steps = [{"step": "exact"}]
    told = {"tokens": {"vocab_size": 300}, "mix": MIX, "train": TINY, **changes}
    return mill(folder / "books", folder / "out", steps=steps, sources=sources, **told)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mixing")
    for seed, name in enumerate(("books", "code", "web")):
        corpus(folder / name, files=1, count=60, seed=seed)
    assert mixed(folder).exit_code == 0
    return folder


def mixture(made: Path) -> dict[str, Any]:
    found = read_json(str(made / "out" / "04-mix" / "mixture.json"))
    assert found is not None
    return found


def trained_weights(made: Path) -> dict[str, float]:
    """The weights of the plan that was trained by, which holds them in whole numbers."""
    plan = read_json(str(made / "out" / "05-train" / "plan.json"))
    assert plan is not None
    told = plan["plan"]["segments"][0]["weights"]
    return {name: count / sum(told.values()) for name, count in told.items()}


def test_training_takes_the_mixture_that_was_found(made: Path) -> None:
    weights = mixture(made)["weights"]
    assert set(weights) == {"books", "code", "web"}
    assert abs(sum(weights.values()) - 1) < 1e-9
    account = read_json(str(made / "out" / "05-train" / "manifest.json"))
    assert account is not None
    assert trained_weights(made) == pytest.approx(weights, abs=1e-5)
    assert account["rows"]["in"] == account["rows"]["kept"]


def test_a_second_run_does_nothing(made: Path) -> None:
    folders = [made / "out" / name for name in ("04-mix", "05-train")]
    before = {path: path.stat().st_mtime_ns for folder in folders for path in folder.rglob("*")}
    assert mixed(made).exit_code == 0
    assert {path: path.stat().st_mtime_ns for folder in folders for path in folder.rglob("*")} == before


def test_the_mixture_is_for_a_run_of_the_length_of_train(made: Path) -> None:
    tokens = TINY["steps"] * TINY["batch_sequences"] * TINY["sequence_tokens"]
    assert mixture(made)["tokens"] == tokens


def test_what_is_fed_back_finds_the_mixture_anew_and_trains_it(made: Path, tmp_path: Path) -> None:
    known = read_observations(str(made / "out" / "04-mix" / "observations.parquet"))
    told = tmp_path / "later.csv"
    rows = [f"{run},loss/code,{value}" for run, value in zip(known.runs, (9.0, 2.0, 5.0, 7.0), strict=True)]
    told.write_text("\n".join(["run,metric,value", *(row.replace("loss/code", "exam") for row in rows)]) + "\n")
    before = mixture(made)["weights"]
    assert invoke(["mix", "observe", str(made / "out"), str(told)]) == 0
    asked = {**MIX, "objective": {"weights": {"exam": 1.0}}}
    assert mixed(made, mix=asked).exit_code == 0
    assert mixture(made)["weights"] != before
    assert trained_weights(made) == pytest.approx(mixture(made)["weights"], abs=1e-5)
    assert (made / "out" / "replaced" / "05-train-1" / "model").is_dir()  # nothing trained is removed


@pytest.mark.parametrize(
    ("mix", "train", "said"),
    [
        ({"constraints": {"ceilings": {"wev": 0.3}}}, {}, "mix.constraints.ceilings: no source has the domain 'wev'"),
        ({"max_epochs": {"wev": 0.3}}, {}, "mix.max_epochs: no source has the domain 'wev'"),
        ({"constraints": {"groups": {"a": {"domains": ["wev"]}}}}, {}, "mix.constraints.groups.a.domains: no source"),
        (
            {},
            {"weights": {"books": 1, "code": 1, "web": 1}},
            "train.weights: stands beside mix:, which finds the weights",
        ),
        ({"runs": 0}, {}, "mix.runs"),
        ({"proxies": {"mixtures": [{"web": 1.0}]}}, {}, "the loop proposes the mixtures"),
        ({"constraints": {"tokens": 5}}, {}, "say it as mix.tokens"),
    ],
)
def test_mistakes_are_found_before_anything_runs(
    mix: dict[str, Any], train: dict[str, Any], said: str, tmp_path: Path
) -> None:
    document = {
        "name": "a",
        "output": str(tmp_path / "out"),
        "sources": [{"name": name, "format": "jsonl", "paths": ["a.jsonl"]} for name in ("books", "code", "web")],
        "steps": [{"step": "exact"}],
        "tokens": {"vocab_size": 300},
        "mix": mix,
        "train": {**TINY, **train},
    }
    with pytest.raises(UserError) as caught:
        recipes.build(json.loads(json.dumps(document)))
    assert said in str(caught.value)
