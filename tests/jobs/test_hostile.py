"""What users and the web do wrong, by the command line: one line that names place and mend, or a quarantine row."""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.command_line import invoke
from jobs.recipe import build
from shards.views import connect
from tests.jobs.corpus import corpus, document, rows, write_jsonl

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[dict[str, Any]], tuple[int, str]]:
    """Run a recipe of plain values by the command line; its exit code and what it said on stderr."""

    def run(values: dict[str, Any]) -> tuple[int, str]:
        path = tmp_path / "recipe.yaml"
        path.write_text(json.dumps(values, indent=1), encoding="utf-8")
        code = invoke(["run", str(path), "--workers", "2"])
        said = capsys.readouterr().err
        assert "Traceback" not in said
        return code, said

    return run


def quarantine(out: Path) -> list[dict[str, Any]]:
    with connect(str(out)) as views:
        found: list[dict[str, Any]] = views.sql("FROM quarantine ORDER BY location").to_arrow_table().to_pylist()
    return found


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"sead": 3}, "sead: unknown key; did you mean 'seed'?"),
        ({"seed": "three"}, "seed: expected a whole number, got 'three'"),
        ({"steps": [{"step": "minhush"}]}, "did you mean 'minhash'?"),
        ({"steps": [{"step": "minhash", "verify": 1.5}]}, "minhash.verify:"),
    ],
)
def test_a_mistake_in_the_recipe_is_one_line(
    tmp_path: Path, told: Callable[..., tuple[int, str]], change: dict[str, Any], line: str
) -> None:
    data = corpus(tmp_path / "data", files=1, count=5)
    code, said = told(document(data, tmp_path / "out", **change))
    assert code == 2
    assert len(said.splitlines()) == 1
    assert said.startswith(str(tmp_path / "recipe.yaml") + ":")
    assert line in said


def test_a_missing_input_is_named_before_any_work(tmp_path: Path, told: Callable[..., tuple[int, str]]) -> None:
    code, said = told(document(tmp_path / "nowhere", tmp_path / "out"))
    assert code == 2
    assert len(said.splitlines()) == 1
    assert f"{tmp_path}/nowhere/*.jsonl: no file matches" in said


def test_an_output_that_cannot_be_written_is_named(tmp_path: Path, told: Callable[..., tuple[int, str]]) -> None:
    data = corpus(tmp_path / "data", files=1, count=5)
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    code, said = told(document(data, tmp_path / "file" / "out"))
    assert code == 2
    assert said.count("\n") == 1
    assert f"{tmp_path}/file/out: cannot be written" in said


def test_one_bad_byte_costs_one_row_of_twenty_thousand(tmp_path: Path, told: Callable[..., tuple[int, str]]) -> None:
    lines = [json.dumps({"id": str(n), "text": f"row number {n} of many"}).encode() for n in range(20_000)]
    lines[10_000] = lines[10_000].replace(b"many", b"m\xffny")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    code, _ = told(document(tmp_path / "data", tmp_path / "out", steps=[{"step": "extract"}]))
    assert code == 0  # one in twenty thousand is below max_quarantined
    (row,) = quarantine(tmp_path / "out")
    assert row["location"] == f"{tmp_path}/data/a.jsonl:10001"
    assert row["bytes"] == len(lines[10_000]) + 1
    with connect(str(tmp_path / "out")) as views:
        assert views.sql("SELECT count(*) FROM documents").fetchall() == [(19_999,)]


def test_rows_that_are_no_documents_are_quarantined_and_late_metadata_arrives(
    tmp_path: Path, told: Callable[..., tuple[int, str]]
) -> None:
    good: list[Any] = [{"id": str(n), "text": f"text {n}", "note": None} for n in range(2000)]
    good += [{"id": f"late-{n}", "text": f"late {n}", "note": "a string"} for n in range(3)]
    bad: list[Any] = [[1, 2], {"id": "x", "text": 12}, {"id": "y"}, {"id": "z", "text": None}, "text", 7]
    write_jsonl(tmp_path / "data" / "a.jsonl", good[:1000] + bad + good[1000:])
    values = document(tmp_path / "data", tmp_path / "out", steps=[{"step": "extract"}], max_quarantined=0.01)
    values["sources"][0]["columns"] = {"note": "string", "absent": "int64"}
    assert told(values)[0] == 0
    assert [row["location"].rsplit(":", 1)[1] for row in quarantine(tmp_path / "out")] == [
        str(line) for line in range(1001, 1007)
    ]
    with connect(str(tmp_path / "out")) as views:
        assert views.sql("SELECT count(*), count(note), count(absent) FROM documents").fetchall() == [(2003, 3, 0)]


def test_a_gzip_cut_in_half_keeps_what_was_before_and_tells_the_rest(
    tmp_path: Path, told: Callable[..., tuple[int, str]]
) -> None:
    packed = gzip.compress("".join(json.dumps(row) + "\n" for row in rows(2000)).encode())
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    values = document(tmp_path / "data", tmp_path / "out", steps=[{"step": "extract"}])
    values["sources"][0]["paths"] = [f"{tmp_path}/data/*.gz"]
    code, said = told(values)
    assert code == 3
    assert "quarantined" in said
    found = quarantine(tmp_path / "out")
    assert found
    assert all("a.jsonl.gz" in row["location"] for row in found)
    with connect(str(tmp_path / "out")) as views:
        kept = views.sql("SELECT count(*) FROM documents").fetchall()[0][0]
    assert 500 < kept < 2000


def page(body: str) -> str:
    words = " ".join(f"A sentence of the page with number {n} in it." for n in range(40))
    return f"<html><head><title>t</title></head><body><article><p>{words}</p>{body}</article></body></html>"


def test_hostile_pages_lose_only_themselves(tmp_path: Path, told: Callable[..., tuple[int, str]]) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for number in range(5):
        (pages / f"good-{number}.html").write_text(page(f"<p>Good page {number}.</p>"), encoding="utf-8")
    (pages / "nested.html").write_text(page("<div>" * 10_000 + "deep" + "</div>" * 10_000), encoding="utf-8")
    (pages / "cells.html").write_text(
        page("<table><tr>" + "<td>x</td>" * 1_000_000 + "</tr></table>"), encoding="utf-8"
    )
    with (pages / "huge.html").open("wb") as huge:
        for _ in range(200):
            huge.write(b"<p>" + b"word " * 209_713 + b"</p>")
    (pages / "empty.html").write_bytes(b"")
    (pages / "noise.html").write_bytes(bytes(range(256)) * 40)
    values = document(tmp_path, tmp_path / "out", steps=[{"step": "extract"}])
    values["sources"] = [{"name": "pages", "format": "html", "paths": [str(pages)]}]
    assert told(values)[0] == 3
    with connect(str(tmp_path / "out")) as views:
        kept = {row[0] for row in views.sql("SELECT source_id FROM documents").fetchall()}
        assert {f"good-{n}.html" for n in range(5)} <= kept
        assert views.sql("SELECT count(*) FROM ledger").fetchall() == [(10,)]
    lost = " ".join(row["location"] for row in quarantine(tmp_path / "out"))
    assert "huge.html" in lost
    assert "nested.html" in lost


def test_an_empty_input_gives_an_empty_dataset_with_its_schema(
    tmp_path: Path, told: Callable[..., tuple[int, str]]
) -> None:
    write_jsonl(tmp_path / "data" / "a.jsonl", [])
    assert told(document(tmp_path / "data", tmp_path / "out"))[0] == 0
    with connect(str(tmp_path / "out")) as views:
        assert views.sql("SELECT count(*) FROM documents").fetchall() == [(0,)]
        names = [row[0] for row in views.sql("DESCRIBE documents").fetchall()]
    assert {"id", "text", "stars", "copies", "first_seen"} <= set(names)


def test_a_full_disk_is_one_line_and_the_run_resumes(tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: the system refuses the write in the same way."""
    data = corpus(tmp_path / "data", files=1, count=3000)
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(document(data, tmp_path / "out", shard_bytes=10_000_000)), encoding="utf-8")
    command = [sys.executable, "-m", "jobs.command_line", "run", str(path), "--workers", "1"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    full = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, preexec_fn=limit, check=False)
    assert full.returncode in (1, 3)
    assert "Traceback" not in full.stderr
    assert "File too large" in full.stderr
    assert not list((tmp_path / "out").rglob("0[1-9]*/manifest.json"))
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr


def test_no_text_of_a_document_reaches_the_words(tmp_path: Path) -> None:
    secret = "xyzzy-plugh-secret"
    made = rows(30)
    made[4]["text"] += f" raise {secret}"
    write_jsonl(tmp_path / "data" / "a.jsonl", made)
    path = tmp_path / "recipe.json"
    steps = [{"step": "python", "object": "tests.jobs.poison.Poison"}]
    path.write_text(json.dumps(document(tmp_path / "data", tmp_path / "out", steps=steps)), encoding="utf-8")
    command = [sys.executable, "-m", "jobs.command_line", "run", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 3
    assert secret not in done.stdout + done.stderr


def test_sizes_have_units_in_every_section(tmp_path: Path) -> None:
    made = build(
        {
            "name": "x",
            "output": str(tmp_path / "out"),
            "sources": [{"name": "a", "format": "html", "paths": ["pages/*"], "max_record_bytes": "1MiB"}],
            "steps": [{"step": "extract", "max_html_bytes": "5MB"}],
        }
    )
    assert made.sources[0].max_record_bytes == 1 << 20
    assert getattr(made.steps[0].step, "max_html_bytes", None) == 5_000_000
