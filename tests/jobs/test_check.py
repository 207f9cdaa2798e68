"""`check` and `doctor`: each thing looked at, well and unwell, with what mends it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs import recipe as recipes
from jobs.command_line import invoke
from jobs.verbs import check, doctor, machine
from jobs.verbs.findings import Finding

RECIPE = """\
name: small
output: out/small
memory_bytes: 256MiB
sources:
  - {name: notes, format: text, paths: [notes]}
steps:
  - {step: datatrove, block: datatrove.pipeline.filters.GopherQualityFilter}
  - step: exact
"""

Found = Callable[..., dict[str, Finding]]


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Found:
    """Check RECIPE with some texts replaced, in a folder with two notes; the findings by what was looked at."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(machine, "cores", lambda: 2)
    monkeypatch.setattr(machine, "memory", lambda: 8 << 30)
    monkeypatch.setattr(machine, "free", lambda folder: 10 << 30)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a" * 1024)
    (tmp_path / "notes" / "b.txt").write_text("b" * 1024)

    def run(*changes: tuple[str, str]) -> dict[str, Finding]:
        text = RECIPE
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        Path("r.yaml").write_text(text)
        return {finding.what: finding for finding in check.findings(recipes.load("r.yaml"))}

    return run


def test_a_recipe_that_can_run(found: Found) -> None:
    told = found()
    assert told["recipe"] == Finding(what="recipe", state="ok", found="small: datatrove, exact")
    assert told["source notes"] == Finding(what="source notes", state="ok", found="2 files, 2.0 KiB")
    assert told["output"] == Finding(what="output", state="ok", found="out/small, to be made")
    assert told["disk"] == Finding(what="disk", state="ok", found="10.0 GiB free; up to 6.0 KiB may be written")
    assert told["memory"] == Finding(what="memory", state="ok", found="256.0 MiB for each of 2 workers, 8.0 GiB here")
    assert "spark" in told
    assert not Path("out").exists()


def test_inputs_that_are_missing_or_empty(found: Found, tmp_path: Path) -> None:
    told = found(("[notes]", "[note]"))["source notes"]
    assert (told.state, told.found, told.mend) == ("bad", "note: no such file", "correct the path or remove it")
    told = found(("[notes]", '["notes/*.md"]'))["source notes"]
    assert (told.state, told.found, told.mend) == (
        "bad",
        "notes/*.md: no file matches",
        "correct the path or remove it",
    )
    (tmp_path / "notes" / "c.txt").touch()
    told = found()["source notes"]
    assert (told.state, told.found) == ("warn", "3 files, 2.0 KiB, 1 of them empty")


def test_inputs_are_not_read_through(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    from ingest import inputs

    def unread(*arguments: Any) -> str:
        raise AssertionError("an input was read through")

    monkeypatch.setattr(inputs, "_content_digest", unread)
    assert found()["source notes"].state == "ok"


def test_an_object_store_needs_its_package_and_credentials(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "missing", lambda names: [name for name in names if name == "s3fs"])
    told = found(("out/small", "s3://bucket/out"))["s3://"]
    assert told == Finding(what="s3://", state="bad", found="needs s3fs", mend="pip install s3fs")
    monkeypatch.setattr(machine, "missing", lambda names: [])
    told = found(("out/small", "s3://bucket/out"))["s3://"]
    assert told == Finding(
        what="s3://",
        state="warn",
        found="no credentials in AWS_PROFILE, AWS_ACCESS_KEY_ID, ~/.aws, role variables",
        mend="set AWS_PROFILE, or sign in: aws sso login",
    )
    monkeypatch.setenv("AWS_PROFILE", "crawl")
    assert "s3://" not in found(("out/small", "s3://bucket/out"))


def test_an_output_that_cannot_be_written(found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain.txt").write_text("not a folder", encoding="utf-8")
    told = found(("out/small", "plain.txt/out"))["output"]
    assert told == Finding(
        what="output", state="bad", found=f"{tmp_path}/plain.txt is a file", mend="set another output:"
    )
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    told = found()["output"]
    assert told == Finding(
        what="output",
        state="bad",
        found=f"no permission to write in {tmp_path}",
        mend="give yourself the right to it, or set another output:",
    )


def test_an_earlier_run_is_told(found: Found) -> None:
    Path("out/small").mkdir(parents=True)
    assert found()["output"].found == "out/small, there already"
    Path("out/small/run.json").write_text("{}")
    assert found()["output"].found == "out/small, holds an earlier run"


def test_disk_and_memory_that_are_short(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free", lambda folder: 100 << 20)
    told = found()["disk"]
    assert (told.state, told.found) == ("bad", "100.0 MiB free; up to 6.0 KiB may be written")
    monkeypatch.setattr(machine, "free", lambda folder: (256 << 20) + 1)
    (Path("notes") / "big.txt").write_bytes(b"x" * (90 << 20))
    assert found()["disk"].state == "warn"
    told = found(("256MiB", "5GiB"))["memory"]
    assert told == Finding(
        what="memory",
        state="warn",
        found="5.0 GiB for each of 2 workers, 8.0 GiB here",
        mend="use fewer --workers, or memory_bytes under 4.0 GiB",
    )


def test_a_step_whose_package_or_list_is_missing(found: Found, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "missing", lambda names: [name for name in names if name == "datatrove"])
    assert found()["step datatrove"] == Finding(
        what="step datatrove", state="bad", found="needs datatrove", mend="pip install datatrove"
    )
    from jobs.adapters import DatatroveStep

    monkeypatch.setattr(machine, "missing", lambda names: [])
    monkeypatch.setattr(DatatroveStep, "files", lambda self: (str(tmp_path / "gone.txt"),))
    told = found()["step datatrove"]
    assert (told.state, told.found) == ("bad", f"{tmp_path}/gone.txt: No such file or directory")
    monkeypatch.setattr(DatatroveStep, "files", lambda self: (str(tmp_path / "notes" / "a.txt"),))
    assert found()["step datatrove"] == Finding(what="step datatrove", state="ok", found="reads 1 file")


def test_exit_codes_table_and_json(found: Found, capsys: pytest.CaptureFixture[str]) -> None:
    found()
    assert invoke(["check", "r.yaml"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "ok    recipe        small: datatrove, exact\nok    source notes  2 files, 2.0 KiB\n" in out
    assert invoke(["check", "r.yaml", "--json", "--set", "sources.notes.paths=[gone]"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["recipe"], told["ok"]) == ("r.yaml", False)
    assert {
        "what": "source notes",
        "state": "bad",
        "found": "gone: no such file",
        "mend": "correct the path or remove it",
    } in (told["findings"])
    assert invoke(["check", "r.yaml", "--set", "seed=x"]) == 2
    assert capsys.readouterr() == ("", "--set seed=x: seed: expected a whole number, got 'x'\n")


# doctor


def test_doctor_is_well_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["doctor", "--json"]) == 0
    told = {finding["what"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert told["pyarrow"]["state"] == "ok"
    assert {"python", "spark", "train", "cores", "memory", "disk here", "compiled code", "workers"} <= set(told)


def test_doctor_says_what_is_missing_or_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "version", {"duckdb": "1.4.0", "pyarrow": None}.get)
    assert doctor._package("duckdb>=2,<3") == Finding(
        what="duckdb", state="warn", found="1.4.0, tested with >=2,<3", mend="pip install 'duckdb>=2,<3'"
    )
    assert doctor._package("pyarrow>=26,<27") == Finding(
        what="pyarrow", state="bad", found="not installed", mend="pip install 'pyarrow>=26,<27'"
    )


def test_java_is_found_and_judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.9\" 2026-01-01' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(machine, "version", lambda name: "4.3.0")
    assert machine.spark() == Finding(what="spark", state="ok", found=f"pyspark 4.3.0, Java 17 at {java}")
    java.write_text("#!/bin/sh\necho 'java version \"1.8.0_402\"' >&2\n")
    mend = "install Java 17 (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    assert machine.spark() == Finding(what="spark", state="warn", found=f"pyspark 4.3.0, Java 8 at {java}", mend=mend)
    java.unlink()
    assert machine.spark() == Finding(what="spark", state="off", found="pyspark 4.3.0, no Java", mend=mend)


def test_a_section_of_synthesis_is_looked_over_without_asking_a_teacher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jobs.verbs.check import _synth
    from synth.running import Rows, Synth
    from synth.teachers import TeacherSettings

    rows = tmp_path / "rows.jsonl"
    rows.write_text("{}\n")
    teacher = TeacherSettings(model="m", urls=("http://127.0.0.1:9",), api_key_variable="GRISTMILL_TEST_KEY")
    made = Synth(teachers={"teacher": teacher}, rows=Rows(files=(str(rows),)), tasks=({"kind": "distill"},))
    monkeypatch.delenv("GRISTMILL_TEST_KEY", raising=False)
    assert "GRISTMILL_TEST_KEY holds no key" in _synth(made).found
    monkeypatch.setenv("GRISTMILL_TEST_KEY", "secret")
    assert _synth(made).state == "ok"
    rows.unlink()
    assert _synth(made).state == "bad"
