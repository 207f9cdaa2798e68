"""A recipe with a section `synth:` makes data from the documents that the run kept, and leaves those as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.command_line import invoke
from jobs.errors import UserError
from shards.store import read_json
from synth.simulator import Rule, SimulatorProcess, SimulatorSettings
from tests.jobs.corpus import corpus, digests, mill

RULES = (
    Rule(match=r"Grade from", reply=('{{"grade": 5}}',)),
    Rule(match=r"(?s).*", reply=("<task>Write a text about other{draw} things.</task>",)),
)


@pytest.fixture(scope="module")
def teacher() -> Iterator[SimulatorProcess]:
    with SimulatorProcess(SimulatorSettings(rules=RULES)) as started:
        yield started


def made(data: Path, out: Path, teacher: SimulatorProcess, **changes: Any) -> Any:
    one = {"model": "simulated", "urls": [teacher.url]}
    synth = {"teachers": {"teacher": one, "judge": one}, "tasks": [{"kind": "back_translation"}], **changes}
    return mill(data, out, steps=[{"step": "exact"}], synth=synth)


@pytest.fixture(scope="module")
def run(teacher: SimulatorProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("section")
    corpus(folder / "data", files=1, count=40)
    assert made(folder / "data", folder / "out", teacher).exit_code == 0
    return folder


def test_every_kept_document_is_an_item_and_none_is_changed(run: Path, teacher: SimulatorProcess) -> None:
    exact = read_json(str(run / "out" / "02-exact" / "manifest.json"))
    synth = read_json(str(run / "out" / "03-synth" / "manifest.json"))
    assert exact is not None
    assert synth is not None
    items = synth["made"]["account"]["items"]["back_translation"]
    assert items["total"] == exact["rows"]["kept"] == synth["rows"]["in"] == synth["rows"]["kept"]
    assert items["accepted"] == items["total"]
    assert (run / "out" / "03-synth" / "synth.html").exists()
    plain = mill(run / "data", run / "plain", steps=[{"step": "exact"}])
    assert plain.exit_code == 0
    assert digests(run / "plain")["exact"] == digests(run / "out")["exact"]


def test_a_second_run_asks_nothing_and_another_task_asks_only_its_own(run: Path, teacher: SimulatorProcess) -> None:
    before = teacher.stats()["attempts"]
    assert made(run / "data", run / "out", teacher).exit_code == 0
    assert teacher.stats()["attempts"] == before
    more = {"tasks": [{"kind": "back_translation"}, {"kind": "back_translation", "name": "two", "instructions": 2}]}
    assert made(run / "data", run / "out", teacher, **more).exit_code == 0
    assert sum(teacher.stats()["attempts"].values()) > sum(before.values())
    assert all(count == 1 for count in teacher.stats()["attempts"].values())


def test_the_verbs_find_the_section_of_a_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["synth", "status", str(run / "out")]) == 0
    assert "back_translation" in capsys.readouterr().out
    assert invoke(["synth", "report", str(run / "out")]) == 0
    assert capsys.readouterr().out.strip().endswith("03-synth/synth.html")


def test_items_that_are_left_are_told_and_done_by_the_next_run(teacher: SimulatorProcess, tmp_path: Path) -> None:
    corpus(tmp_path / "data", files=1, count=20, seed=9)
    with pytest.raises(UserError, match=r"items are pending \(.* of back_translation\): ended by budget.requests"):
        made(tmp_path / "data", tmp_path / "out", teacher, budget={"requests": 5})
    assert made(tmp_path / "data", tmp_path / "out", teacher).exit_code == 0
