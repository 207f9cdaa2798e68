"""`gristmill synth` from outside, against a simulated teacher: asked, verified, told, selected, exported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
import yaml

from demo.word_problems import problems
from jobs.command_line import invoke
from synth.simulator import Known, SimulatorProcess, SimulatorSettings
from tests.train.sft.conftest import Family, families

__all__ = ["families"]  # a fixture of the folder that tests the templates

COUNT = 30
SKILLS = (0.1, 0.4, 0.6, 0.9, 1.0)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return list(problems(COUNT))


@pytest.fixture(scope="module")
def teacher(rows: list[dict[str, Any]]) -> Iterator[SimulatorProcess]:
    known = {
        row["id"]: Known(gold=row["gold"], skill=SKILLS[at % 5], prompt=row["prompt"]) for at, row in enumerate(rows)
    }
    with SimulatorProcess(SimulatorSettings(known=known)) as started:
        yield started


@pytest.fixture(scope="module")
def made(rows: list[dict[str, Any]], teacher: SimulatorProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, its settings beside it."""
    folder = tmp_path_factory.mktemp("synth")
    (folder / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {
        "output": str(folder / "out"),
        "teachers": {"teacher": {"model": "simulated", "urls": [teacher.url], "price_completion": 2.0}},
        "rows": {"files": [str(folder / "problems.jsonl")]},
        "tasks": [
            {
                "kind": "distill",
                "rollouts": {"wave": 4, "cap": 12, "accepted": 2, "tempering": {"tau": 1.5}},
                "answering": {"max_tokens": 600},
            }
        ],
        "select": {"difficulty": {"max_pass_rate": 0.95}, "traces": {}},
    }
    (folder / "synth.yaml").write_text(yaml.safe_dump(settings))
    assert invoke(["synth", "run", str(folder / "synth.yaml"), "--json"]) == 0
    return folder


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert invoke(["synth", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_every_row_and_sample_is_accounted_for(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    account = told(capsys, "status", str(made / "out"))
    for ledger in (account["items"]["distill"], account["samples"]["distill"]):
        parts = sum(ledger["rejected"].values()) + sum(ledger["failed"].values())
        assert ledger["total"] == ledger["accepted"] + parts + ledger["pending"]
    assert account["items"]["distill"]["total"] == COUNT
    assert account["requests"]["sent"] == account["requests"]["replied"] == account["samples"]["distill"]["total"]


def test_a_second_run_asks_nothing_and_verifying_anew_needs_no_teacher(
    made: Path, teacher: SimulatorProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    before, first = teacher.stats(), told(capsys, "status", str(made / "out"))
    again = told(capsys, "run", str(made / "synth.yaml"))
    verified = told(capsys, "verify", str(made / "synth.yaml"))
    assert teacher.stats()["attempts"] == before["attempts"]
    assert again["samples"] == first["samples"] == verified["samples"]


def test_planted_answers_give_the_verifiers_rates(made: Path) -> None:
    [math] = json.loads((made / "out" / "trust.json").read_text())["planted"]
    assert math["kind"] == "math"
    assert math["false_positive"] == {**math["false_positive"], "count": 0, "total": COUNT}
    assert math["false_negative"] == {**math["false_negative"], "count": 0, "total": COUNT}


def test_samples_are_parquet_that_duckdb_reads(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = told(capsys, "status", str(made / "out"))["samples"]["distill"]
    query = f"SELECT outcome, count(*) FROM '{made}/out/samples/*.parquet' GROUP BY outcome"
    counted = dict(duckdb.sql(query).fetchall())
    assert counted == {"accepted": ledger["accepted"], "rejected": sum(ledger["rejected"].values())}


def test_the_plan_is_measured_once_there_is_a_run(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [task] = told(capsys, "plan", str(made / "synth.yaml"))["tasks"]
    assert (task["source"], task["items"], task["concluded"]) == ("measured", COUNT, COUNT)


def test_the_report_escapes_what_models_wrote_and_adds_up(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["synth", "report", str(made / "out")]) == 0
    page = Path(capsys.readouterr().out.strip()).read_text()
    assert "<script" not in page
    assert "default-src 'none'" in page
    numbers = json.loads((made / "out" / "synth.json").read_text())
    ledger = numbers["account"]["samples"]["distill"]
    selected = numbers["selection"]
    assert selected["kept"] + sum(selected["counts"].values()) == ledger["accepted"]
    assert sum(numbers["ends"]["distill"].values()) == ledger["total"] - selected["kept"]
    assert sum(numbers["difficulty"]["distill"]) == COUNT
    for one in numbers["tokens"]["distill"]:
        assert one["accepted"] >= 0


def test_an_export_takes_what_selection_left_and_proves_it(
    made: Path, families: dict[str, Family], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    terms = ["--set", "terms.teacher.licence=Apache-2.0"]
    model = families["qwen3"].folder
    account = told(capsys, "export", str(made / "out"), str(tmp_path / "data"), "--model", model, *terms)
    numbers = json.loads((made / "out" / "synth.json").read_text())
    assert account["rows"]["written"] == numbers["selection"]["kept"]
    table = pq.read_table(tmp_path / "data" / "data")
    assert all(any(mask) for mask in table["loss_mask"].to_pylist())
    assert "math on planted answers" in (tmp_path / "data" / "README.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "{out}", "{new}"), "export: "),
        (("export", "{out}", "{new}", "--to", "sftt"), "--to sftt: did you mean 'sft'?"),
        (("export", "{out}", "{out}"), "is there already; name a new folder"),
        (("status", "{new}"), "nothing was run here yet; name the folder of a run"),
        (("report", "{new}"), "nothing was run here yet; name the folder of a run"),
        (("run", "{yaml}", "--set", "seed=-1"), "seed: -1 is below 0"),
        (("run", "{typo}"), "task 'distil': no such kind; there are "),
        (("run", "{yaml}", "--set", "output=memory://x"), "a run's store lies in a local folder"),
    ],
)
def test_mistakes_are_one_line(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    places = {name: str(path) for name, path in (("out", made / "out"), ("new", tmp_path / "new"))}
    places |= {"yaml": str(made / "synth.yaml"), "typo": str(tmp_path / "typo.yaml")}
    Path(places["typo"]).write_text(Path(places["yaml"]).read_text().replace("kind: distill", "kind: distil"))
    assert invoke(["synth", *(one.format(**places) for one in arguments)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_lone_surrogates_in_rows_end_no_run_and_are_marked_in_the_report(
    teacher: SimulatorProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": "a", "prompt": "How\ud800?", "gold": "1", "verifier": "math"}, {"id": "a", "prompt": "Again?"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = {
        "output": str(tmp_path / "out"),
        "teachers": {"teacher": {"model": "simulated", "urls": [teacher.url]}},
        "rows": {"files": [str(tmp_path / "rows.jsonl")]},
        "tasks": [{"kind": "distill", "rollouts": {"wave": 1, "cap": 1}}],
    }
    (tmp_path / "synth.yaml").write_text(yaml.safe_dump(told))
    assert invoke(["synth", "run", str(tmp_path / "synth.yaml")]) == 0
    assert "row.duplicate_id" in capsys.readouterr().out
    assert "How?" in (tmp_path / "out" / "synth.html").read_text()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("select={dificulty: {}}", "select.dificulty: unknown key; did you mean 'difficulty'?"),
        ("select.difficulty.max_pass_rate=2", "select.difficulty.max_pass_rate: 2 is above 1"),
        (
            "select={contamination: {benchmarks: [nowhere/*.jsonl]}}",
            "select.contamination: no benchmark file matches 'nowhere/*.jsonl'",
        ),
    ],
)
def test_what_is_wrong_with_selection_is_told_before_anything_is_asked(
    made: Path, teacher: SimulatorProcess, capsys: pytest.CaptureFixture[str], change: str, said: str
) -> None:
    before = teacher.stats()["attempts"]
    assert invoke(["synth", "run", str(made / "synth.yaml"), "--set", change]) == 2
    assert said in capsys.readouterr().err
    assert teacher.stats()["attempts"] == before
