"""The demo's recipe, end to end by the command line: its answers do not depend on how it is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from demo.corpus import build
from demo.crawl import CrawlSettings

ROOT = Path(__file__).resolve().parents[2]
RECIPE = "recipes/quickstart.yaml"
COMMAND = [sys.executable, "-c", "import sys; from jobs.command_line import main; sys.exit(main())"]
# Made for the demo, after installation, on 2 cores: what is promised for all of it.
DEMO_S = 180

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the recipe's relative paths lead to a full corpus."""
    folder = tmp_path_factory.mktemp("quickstart")
    (folder / "recipes").symlink_to(ROOT / "recipes")
    build(folder / "out" / "quickstart-corpus")
    return folder


def gristmill(place: Path, *arguments: str, hash_seed: str = "0") -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    told = subprocess.run(
        [*COMMAND, *arguments], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr[-3000:]
    return told.stdout


def run(place: Path, output: str, *, workers: int, hash_seed: str, mix: bool = False) -> dict[str, Any]:
    """What must not change between runs, by step; `gristmill sql` tells the duplicates and the decisions."""
    options = ["--workers", str(workers), "--set", f"output={output}"]
    # Proxies and training have tests of their own, and would take most of the time here; a few steps show them done.
    options += ["--set", "train.steps=2", "--set", "train.warmup_steps=1"]
    few = ["mix.tokens=400000", "mix.runs=4", "mix.first_runs=4", "mix.proxies.tokens=8192"] if mix else ["mix=false"]
    options += [part for change in few for part in ("--set", change)]
    gristmill(place, "run", RECIPE, *options, hash_seed=hash_seed)
    answers: dict[str, Any] = {}
    for path in sorted((place / output).glob("*/manifest.json")):
        manifest = json.loads(path.read_text())
        said = ("digest", "dropped_digest", "signals_digest", "rows", "rules", "fingerprint")
        answers[path.parent.name] = {key: manifest.get(key) for key in said}
    for name, query in {
        "duplicates": "SELECT id, kept_id, similarity, method FROM duplicates ORDER BY ALL",
        "decisions": "SELECT id, step, rule, value, threshold FROM dropped ORDER BY ALL",
    }.items():
        answers[name] = json.loads(gristmill(place, "sql", output, query, "--json"))
    return answers


@pytest.fixture(scope="module")
def first(place: Path) -> dict[str, Any]:
    return run(place, "out/first", workers=2, hash_seed="0")


@pytest.mark.parametrize(("workers", "hash_seed"), [(1, "0"), (2, "12345"), (3, "7")])
def test_workers_and_hash_seed_change_nothing(place: Path, first: dict[str, Any], workers: int, hash_seed: str) -> None:
    other = run(place, f"out/workers-{workers}", workers=workers, hash_seed=hash_seed)
    for step, said in first.items():
        assert other[step] == said, step
    assert other.keys() == first.keys()


def test_each_step_accounts_for_every_row_and_shows_something(first: dict[str, Any]) -> None:
    steps = {folder.partition("-")[2]: said for folder, said in first.items() if "-" in folder}
    for name, said in steps.items():
        rows = said["rows"]
        assert rows["in"] == rows["kept"] + rows["dropped"] + rows["quarantined"], name
    for name in ("read", "url", "language", "quality", "minhash", "decontaminate"):
        assert steps[name]["rows"]["dropped"] > 0, f"the demo shows nothing of {name}"
    assert first["duplicates"]


def test_all_three_domains_are_left_in_the_end(place: Path, first: dict[str, Any]) -> None:
    query = "SELECT domain, count(*) AS n FROM documents GROUP BY domain ORDER BY domain"
    rows = json.loads(gristmill(place, "sql", "out/first", query, "--json"))
    counts = {row["domain"]: row["n"] for row in rows}
    assert counts.keys() == {"code", "prose", "web"}
    assert min(counts.values()) >= 5


def test_corpus_and_run_stay_within_the_demos_time(tmp_path: Path) -> None:
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    started = time.monotonic()
    build(tmp_path / "out" / "quickstart-corpus", settings=CrawlSettings())
    answers = run(tmp_path, "out/quickstart", workers=2, hash_seed="0", mix=True)
    assert {"10-mix", "11-train"} <= answers.keys()
    assert time.monotonic() - started < DEMO_S
