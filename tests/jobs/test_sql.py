from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from jobs.errors import UserError
from jobs.verbs import sql
from tests.jobs.made_output import make


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make(tmp_path_factory.mktemp("made") / "out", rows=300))


def ask(out: str, query: str, capsys: pytest.CaptureFixture[str], *, json: bool = False) -> str:
    assert sql.run(out, query, json=json) == 0
    return capsys.readouterr().out


def test_an_answer_is_a_table(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = ask(out, "SELECT step, count(*) AS n FROM dropped GROUP BY 1 ORDER BY 1 LIMIT 1", capsys)
    head, rule, row = shown.splitlines()
    assert head.split() == ["step", "n"]
    assert set(rule) == {"-", " "}
    assert row.split()[0] == "decontaminate"


def test_json_has_a_row_an_object(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(ask(out, "SELECT id, date, text FROM documents ORDER BY id", capsys, json=True))
    assert set(rows[0]) == {"id", "date", "text"}
    assert len(rows) > 50
    assert json.loads(ask(out, "SELECT 1 AS one WHERE false", capsys, json=True)) == []


@pytest.mark.parametrize(
    "query",
    [
        "FROM steps",
        "DESCRIBE dropped",
        "SHOW TABLES",
        "SUMMARIZE FROM tokens",
        "EXPLAIN SELECT 1",
        "WITH a AS (SELECT 1) FROM a",
        "VALUES (1)",
    ],
)
def test_what_only_reads_runs(out: str, query: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(out, query, capsys)


@pytest.mark.parametrize(
    "view",
    ["documents", "dropped", "quarantine", "ledger", "steps", "duplicates", "contamination", "signals", "tokens"],
)
def test_each_view_is_there(out: str, view: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(out, f"SELECT * FROM {view} LIMIT 1", capsys)


@pytest.mark.parametrize(
    "query",
    [
        "COPY (SELECT 1) TO '{out}/x.csv'",
        "CREATE TABLE x AS SELECT 1",
        "ATTACH '{out}/x.db'",
        "EXPORT DATABASE '{out}/x'",
        "INSTALL httpfs",
        "SET lock_configuration = false",
        "DELETE FROM dropped",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}/x.csv'",
        "PRAGMA enable_profiling",
        "SELECT * FROM query('COPY (SELECT 1) TO ''{out}/x.csv''')",
        "PREPARE p AS COPY (SELECT 1) TO '{out}/x.csv'",
        "CALL pragma_version()",
        "CHECKPOINT",
        "LOAD httpfs",
        "DROP VIEW dropped",
        "SELECT 1; COPY (SELECT 1) TO '{out}/x.csv'",
        "EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{out}/x.csv'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM read_csv('{out}/../x.csv')",
    ],
)
def test_nothing_is_written_and_no_other_file_is_read(out: str, query: str) -> None:
    before = sorted(path for path in Path(out).parent.rglob("*"))
    with pytest.raises(UserError) as caught:
        sql.run(out, query.format(out=out))
    assert "\n" not in str(caught.value)
    assert sorted(path for path in Path(out).parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELEC 1", 'sql: Parser Error: syntax error at or near "SELEC"'),
        (
            "SELECT idd FROM dropped",
            'sql: Binder Error: Referenced column "idd" not found in FROM clause! Candidate bindings: "id", "evidence"',
        ),
        ("", "sql: one query at a time; there is none"),
        ("SELECT 1; SELECT 2", "sql: one query at a time; there are 2"),
        (
            "DROP VIEW dropped",
            "sql: this would not only read (DROP); write a SELECT. "
            "To keep an answer: gristmill sql OUT QUERY --json > FILE",
        ),
    ],
)
def test_mistakes_are_one_line(out: str, query: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        sql.run(out, query)
    assert str(caught.value) == said


def test_the_query_may_come_from_stdin(
    out: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 41 + 1 AS answer"))
    assert "42" in ask(out, "-", capsys)
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 41 + 1 AS answer"))
    assert sql.run(out, None) == 0


def test_the_prompt_answers_until_its_end(
    out: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = iter([".tables", "SELECT", "1 AS one;", "SELEC;", ".columns dropped", ".quit"])
    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    monkeypatch.setattr("sys.stdin", type("Terminal", (io.StringIO,), {"isatty": lambda self: True})())
    assert sql.run(out, None) == 0
    shown = capsys.readouterr()
    assert "contamination" in shown.out
    assert "one" in shown.out
    assert "threshold" in shown.out
    assert "Parser Error" in shown.err


def test_many_rows_are_cut_in_a_table_and_whole_in_json(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT range AS n FROM range(1200)"
    assert sql.run(out, query) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 1002
    assert "the first 1,000 rows" in shown.err
    assert len(json.loads(ask(out, query, capsys, json=True))) == 1200


def test_cells_are_one_visible_line(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = ask(out, "SELECT text FROM documents WHERE text LIKE '%<script>%' ORDER BY id LIMIT 2", capsys)
    assert len(shown.splitlines()) == 4
    assert "\x1b" not in shown
    assert "[ESC]" in shown
