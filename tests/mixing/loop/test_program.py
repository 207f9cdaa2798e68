"""`python -m mixing.loop` with proxies so small that one takes a second, and what it says when it cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mixing.loop import Mix, compare, read_mixture
from mixing.loop.__main__ import main
from mixing.loop.sizes import runs_a_mixture, scales_of
from mixing.observations import read_observations
from tests.train.pretrain.made import WORDS, make_text_tokens, texts_of

ROOT = Path(__file__).parents[3]
PROXIES = {
    "sizes": {"tiny": {"layers": 1, "width": 16, "heads": 2}},
    "tokens": 2_048,
    "sequence_tokens": 64,
    "batch_sequences": 8,
    "warmup_steps": 2,
    "evaluation_sequences": 8,
    "held_out": 0.2,
    "workers": 0,
}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    return make_text_tokens(tmp_path_factory.mktemp("tokens"), {name: texts_of(name, 60) for name in WORDS})


def asked(folder, tokens, **changes):
    settings = {"runs": 5, "first_runs": 4, "batch_runs": 1, "stop_below": 0, "proxies": PROXIES, **changes}
    path = folder / "settings.json"
    path.write_text(json.dumps({"settings": settings, "tokens": [tokens], "out": str(folder / "mix")}))
    return str(path)


def program(path):
    return subprocess.run(
        [sys.executable, "-m", "mixing.loop", path],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


def test_the_program_trains_proxies_and_writes_the_mixture_and_again_trains_nothing(tokens, tmp_path):
    path = asked(tmp_path, tokens)
    first = program(path)
    assert first.returncode == 0, first.stderr
    lines = first.stderr.splitlines()
    assert lines[0] == "mix: round 1: 4 mixtures"
    assert sum(line.endswith("about 0 s left") for line in lines) == 5  # each seed's runs are told by themselves
    assert lines[-1] == "mix: the budget of 5 runs is spent; the optimum of 5 runs"
    mixture = read_mixture(str(tmp_path / "mix" / "mixture.json"))
    assert sorted(mixture.weights) == sorted(WORDS)
    assert sorted(mixture.predicted) == sorted(f"loss/{name}" for name in WORDS)
    observations = read_observations(str(tmp_path / "mix" / "observations.parquet"))
    assert len(observations) == 5
    assert (observations.points.unique_tokens > 0).all()
    rows = [dict(zip(observations.metrics, row, strict=True)) for row in observations.values]
    assert {row.metric for row in compare(mixture, rows).rows} == {"objective", *mixture.predicted}

    again = program(path)
    assert (again.returncode, again.stderr) == (0, "")

    told = json.loads(Path(path).read_text())
    proxies = told["settings"]["proxies"]
    for name, value in (("learning_rate", 0.5), ("sequence_tokens", 16)):
        told["settings"]["proxies"] = proxies | {name: value}
        other = tmp_path / "other.json"
        other.write_text(json.dumps(told))
        refused = program(str(other))
        assert refused.returncode == 2
        assert f"are of proxies with {name} " in refused.stderr
        assert "under observations to start from them" in refused.stderr

    told["settings"] |= {
        "proxies": proxies,
        "tokens": 5e5,
        "max_epochs": None,
    }  # another run's length moves the optimum, not the proxies
    other.write_text(json.dumps(told))
    moved = program(str(other))
    assert moved.returncode == 0
    assert moved.stderr.startswith("mix: proxies repeat domains as those that are there")
    assert read_mixture(str(tmp_path / "mix" / "mixture.json")).tokens == 5e5


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"runs": 0}, "{path}: runs: Input should be greater than or equal to 1"),
        ({"proxies": {"width": 4}}, "{path}: proxies.width: Unexpected keyword argument"),
        ({"constraints": {"floors": {"poetry": 0.5}}}, "floors: no domain 'poetry'; "),
    ],
)
def test_what_is_wrong_is_one_line_and_the_code_of_wrong_use(tokens, tmp_path, capfd, changes, line):
    path = asked(tmp_path, tokens, **changes)
    assert main([path]) == 2
    told = [one for one in capfd.readouterr().err.splitlines() if not one.startswith(("mix: ", "proxies: "))]
    assert len(told) == 1
    assert told[0].startswith(line.format(path=path))


@pytest.mark.parametrize("text", ["{", "[]", '{"settings": {}, "tokens": []}', '{"settings": {}, "out": "x", "of": 1}'])
def test_a_file_of_something_else_is_refused(tmp_path, capfd, text):
    path = tmp_path / "settings.json"
    path.write_text(text)
    assert main([str(path)]) == 2
    assert capfd.readouterr().err.startswith(f"{path}: ")
    assert main([]) == 2


def test_settings_name_what_the_recipe_needs_of_a_section():
    assert (Mix.name, Mix.version) == ("mix", 1)
    assert Mix.free <= set(Mix.__dataclass_fields__)


def test_several_sizes_are_a_choice_of_the_round_and_one_is_none(tokens):
    small, large = {"layers": 1, "width": 16, "heads": 2}, {"layers": 1, "width": 32, "heads": 2, "tokens": 9_000}
    one = Mix(proxies={**PROXIES, "seeds": (0, 1)})
    assert (scales_of(one, [tokens]), runs_a_mixture(one, [tokens])) == ({}, 2)
    both = Mix(proxies={**PROXIES, "sizes": {"small": small, "large": large}}, parameters=1e9, tokens=1e11)
    told = scales_of(both, [tokens])
    assert told["target"] == (1e9, 1e11)
    assert [length for _, length in told["sizes"].values()] == [2_048, 9_000]
    assert told["sizes"]["small"][0] < told["sizes"]["large"][0]
    assert runs_a_mixture(both, [tokens]) == 1
    assert runs_a_mixture(both, []) == 2  # without token shards nobody knows N: each mixture is made at each size
