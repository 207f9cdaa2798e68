from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import UserError
from jobs.report.database import opened
from jobs.verbs import why
from tests.jobs.made_output import make


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make(tmp_path_factory.mktemp("made") / "out", rows=600))


def one(out: str, sql: str) -> dict[str, Any]:
    with opened(out) as found:
        return found.rows(sql)[0]


def told(out: str, document: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert why.run(out, document, json=True) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_a_dropped_document_shows_each_signal_against_each_threshold(
    out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    row = one(out, "SELECT * FROM dropped WHERE rule = 'gopher_quality.min_words' ORDER BY id LIMIT 1")
    answer = told(out, row["id"], capsys)
    assert (answer["outcome"], answer["step"], answer["rule"]) == ("dropped", "quality", "gopher_quality.min_words")
    outcomes = {step["step"]: step["outcome"] for step in answer["steps"]}
    assert [outcomes[name] for name in ("read", "language", "quality", "redact", "minhash")] == [
        "passed",
        "passed",
        "dropped",
        "not reached",
        "not reached",
    ]
    quality = next(step for step in answer["steps"] if step["step"] == "quality")
    checks = {check["rule"]: check for check in quality["checks"]}
    assert checks["gopher_quality.min_words"] == {
        "rule": "gopher_quality.min_words",
        "signal": "words",
        "wants": ">=",
        "value": row["value"],
        "threshold": 50.0,
        "passed": False,
    }
    assert {rule for rule, check in checks.items() if not check["passed"]} == set(row["rules"])
    assert why.run(out, row["id"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "dropped by quality: gopher_quality.min_words" in lines
    assert any("FAIL  gopher_quality.min_words" in text and "wants >= 50" in text for text in lines)
    assert any("pass  min_score" in text for text in lines)


def test_a_duplicate_shows_its_survivor_similarity_and_both_texts(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    row = one(out, "SELECT * FROM duplicates WHERE method = 'minhash' ORDER BY id LIMIT 1")
    answer = told(out, row["id"], capsys)
    survivor = answer["survivor"]
    assert (survivor["kept_id"], survivor["similarity"], survivor["method"]) == (
        row["kept_id"],
        row["similarity"],
        "minhash",
    )
    assert survivor["now"] in ("kept", "dropped by decontaminate: contaminated")
    assert any(differs for _, differs in survivor["pieces"])
    assert why.run(out, row["id"]) == 0
    shown = capsys.readouterr().out
    assert f"it is a duplicate of {row['kept_id']}" in shown
    assert "[+" in shown


def test_a_survivor_shows_what_it_stands_for(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    row = one(
        out,
        "SELECT kept_id, count(*) AS n FROM duplicates WHERE method = 'exact' AND kept_id IN (SELECT id FROM "
        "documents) GROUP BY 1 ORDER BY 1 LIMIT 1",
    )
    answer = told(out, row["kept_id"], capsys)
    assert answer["outcome"] == "kept"
    assert answer["copies"] > 1
    group = next(group for group in answer["stands_for"] if group["method"] == "exact")
    assert (group["removed"], group["least"]) == (row["n"], 1.0)
    assert all(step["outcome"] == "passed" for step in answer["steps"])


def test_a_quarantined_document_shows_its_error_and_no_text(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    row = one(out, "SELECT * FROM quarantine WHERE id IS NOT NULL ORDER BY id LIMIT 1")
    assert why.run(out, row["id"]) == 0
    shown = capsys.readouterr().out
    assert f"quarantined by {row['step']}: {row['error']}" in shown
    assert row["location"] in shown


def test_the_beginning_of_an_id_is_enough_where_it_is_unique(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    whole = one(out, "SELECT id FROM documents ORDER BY id LIMIT 1")["id"]
    assert told(out, whole[:12], capsys)["id"] == whole
    assert told(out, whole[:12].upper(), capsys)["id"] == whole


def test_source_id_and_url_name_a_document_too(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    row = one(out, "SELECT id, source_id, url FROM documents WHERE url IS NOT NULL ORDER BY id LIMIT 1")
    assert told(out, row["source_id"], capsys)["id"] == row["id"]
    assert told(out, row["url"], capsys)["id"] == row["id"]


def test_an_unknown_id_is_one_line_with_the_nearest(out: str) -> None:
    whole = one(out, "SELECT id FROM documents ORDER BY id LIMIT 1")["id"]
    wrong = ("0" if whole[0] != "0" else "1") + whole[1:]
    with pytest.raises(UserError) as caught:
        why.run(out, wrong)
    assert str(caught.value) == f"{wrong}: no document has this id; did you mean {whole}?"
    with pytest.raises(UserError) as caught:
        why.run(out, "nothing like an id at all")
    assert (
        str(caught.value)
        == f"nothing like an id at all: no document has this id; ids are shown by: gristmill look {out}"
    )
    with pytest.raises(UserError, match="did you mean"):
        why.run(out, whole[:5])


def test_an_ambiguous_url_asks_for_one_id(tmp_path: Path) -> None:
    out = str(make(tmp_path / "out", rows=60))
    view = "CREATE OR REPLACE VIEW documents_stored AS SELECT id, '1' AS source_id, 'u' AS url FROM dropped"
    with opened(out) as found:
        found.connection.execute(view)
        with pytest.raises(UserError, match="stands for more than one document"):
            why.find(found, "u")


def test_terminal_escapes_of_documents_are_named(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = one(out, "SELECT list(id) AS ids FROM duplicates")["ids"]
    for document in rows[:20]:
        why.run(out, document)
    assert "\x1b" not in capsys.readouterr().out
