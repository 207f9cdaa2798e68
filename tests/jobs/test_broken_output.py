"""A broken file of an output is named in one line by every verb that reads, and a full disk by a shuffle."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.command_line import invoke
from jobs.engines.duckdb_shuffle import DuckdbShuffle, told_by_the_system
from shards.views import connect
from tests.jobs.made_output import make

ROOT = Path(__file__).resolve().parents[2]


def verbs(out: Path, document: str) -> dict[str, list[str]]:
    return {
        "sql": ["sql", str(out), "SELECT count(text) FROM dropped"],
        "why": ["why", str(out), document],
        "look": ["look", str(out), "-n", "3"],
        "whatif": ["whatif", str(out), "--set", "language.min_score=0.9"],
        "report": ["report", str(out)],
    }


def a_document(out: Path) -> str:
    with connect(str(out)) as views:
        return str(views.sql("SELECT id FROM documents ORDER BY id LIMIT 1").fetchall()[0][0])


@pytest.mark.parametrize("content", ["", '{"rows"', "[]", "{}", '{"rows": 3, "bytes": {}}'])
@pytest.mark.parametrize("file", ["run.json", "manifest.json"])
@pytest.mark.parametrize("verb", ["sql", "why", "look", "whatif", "report"])
def test_broken_json_is_one_line(
    tmp_path: Path, verb: str, file: str, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = make(tmp_path / "out", rows=30)
    command = verbs(out, a_document(out))[verb]
    path = out / file if file == "run.json" else sorted(out.glob("*/manifest.json"))[1]
    path.write_text(content, encoding="utf-8")
    assert invoke(command) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"{path}: ")
    assert said.endswith("gristmill run RECIPE")


@pytest.mark.parametrize("kind", ["data", "dropped", "signals", "documents"])
@pytest.mark.parametrize("verb", ["sql", "why", "look", "whatif", "report"])
def test_a_cut_table_is_one_line(tmp_path: Path, verb: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = make(tmp_path / "out", rows=30)
    command = verbs(out, a_document(out))[verb]
    path = sorted(out.glob(f"*/{kind}/*.parquet"))[-1]
    path.write_bytes(path.read_bytes()[:-20])
    assert invoke(command) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"{path}: is damaged")


@pytest.mark.parametrize("verb", ["sql", "look"])
def test_a_page_that_is_damaged_inside_a_whole_file_is_named_too(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = make(tmp_path / "out", rows=300)
    path = max(out.glob("*/dropped/*.parquet"), key=lambda file: file.stat().st_size)
    content = path.read_bytes()
    text = pq.ParquetFile(path).metadata.row_group(0).column(pq.ParquetFile(path).schema_arrow.get_field_index("text"))
    start = text.dictionary_page_offset or text.data_page_offset
    path.write_bytes(content[: start + 40] + b"\xff" * 200 + content[start + 240 :])
    step = path.parents[1].name.partition("-")[2]
    queries = {
        "sql": ["sql", str(out), "SELECT max(md5(text)) FROM dropped"],
        "look": ["look", str(out), "--dropped", step, "-n", "1000"],
    }
    assert invoke(queries[verb]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"{path}: is damaged")


def test_a_manifest_that_is_not_there_stops_only_who_needs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = make(tmp_path / "out", rows=30)
    path = sorted(out.glob("*/manifest.json"))[1]
    path.unlink()
    assert invoke(verbs(out, "")["sql"]) == 0
    assert invoke(verbs(out, "")["report"]) == 1
    assert capsys.readouterr().err.startswith(f"{path}: is not there")


@pytest.mark.parametrize("name", ["br[a]ck", "st*r?", "a{b,c}d"])
def test_sql_reads_an_output_with_an_odd_name_and_no_other(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, other = make(tmp_path / name, rows=30), make(tmp_path / "starx", rows=30)
    assert invoke(["sql", str(out), "SELECT count(*) FROM dropped"]) == 0
    foreign = sorted(other.glob("*/dropped/*.parquet"))[0]
    for spelt in (foreign, str(foreign).replace("starx", "st*r?"), str(foreign).replace("starx", "br[a]ck/../starx")):
        assert invoke(["sql", str(out), f"FROM read_parquet('{spelt}') SELECT count(*)"]) == 1
    capsys.readouterr()


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (duckdb.IOException("IO Error: Could not write file: No space left on device"), errno.ENOSPC),
        (duckdb.OutOfMemoryException("Out of Memory Error: adjust max_temp_directory_size"), errno.ENOSPC),
        (duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate\nmore"), errno.ENOMEM),
        (duckdb.IOException("IO Error: Could not read from file\nmore"), errno.EIO),
        (pa.ArrowException("Unknown error: IO Error: No space left on device"), errno.ENOSPC),
    ],
)
def test_what_duckdb_says_of_disk_and_memory_is_an_os_error(error: Exception, number: int) -> None:
    with pytest.raises(OSError, match=r"\w") as caught, told_by_the_system("out/x"):
        raise error
    assert (caught.value.errno, caught.value.filename) == (number, "out/x")
    assert "\n" not in str(caught.value.strerror)


def test_a_mistake_in_sql_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(duckdb.BinderException):
        DuckdbShuffle().query("SELECT nothing_such", str(tmp_path / "x"))


def test_a_shuffle_that_cannot_write_says_so(tmp_path: Path) -> None:
    code = (
        "from jobs.engines.duckdb_shuffle import DuckdbShuffle\n"
        "try:\n"
        f"    DuckdbShuffle().query('SELECT md5(range::VARCHAR) AS t FROM range(200000)', {str(tmp_path / 'x')!r})\n"
        "except OSError as error:\n"
        "    print(error.errno, error.filename)\n"
    )

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, capture_output=True, text=True, preexec_fn=limit, check=True, env=os.environ,
    )  # fmt: skip
    assert done.stdout.split() == [str(errno.EIO), str(tmp_path / "x")]
