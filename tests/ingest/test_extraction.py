"""The extract step: its answers, its gates, and what its child process survives."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest import Extract, Source, extract
from ingest.records import build_batch
from ingest.sandbox import close_all, sandbox
from ingest.worker_frames import Orders
from shards.step import Judged

SOURCE = Source(name="web", format="warc", paths=("x",))
PARAGRAPH = "A paragraph with enough words to be taken for the main text of this page, number {}. "


def page(body: str, head: str = "<title>The title of the page</title>") -> bytes:
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode()


def article(number: int = 0, paragraphs: int = 5) -> bytes:
    return page(
        "<article>" + "".join(f"<p>{PARAGRAPH.format(number * 100 + i)}</p>" for i in range(paragraphs)) + "</article>"
    )


def batch(pages: Sequence[bytes | None], texts: list[str | None] | None = None) -> pa.RecordBatch:
    rows = len(pages)
    columns = {
        "text": pa.array(texts or [None] * rows, pa.large_string()),
        "_content": pa.array(pages, pa.large_binary()),
        "url": pa.array([f"https://example.org/{i}" for i in range(rows)]),
        "date": pa.array([datetime(2024, 5, 1, tzinfo=UTC)] * rows, pa.timestamp("us", tz="UTC")),
        "_bytes": pa.array([len(content or b"") for content in pages], pa.int64()),
    }
    return build_batch(SOURCE, columns, rows)


def failures(judged: Judged) -> dict[int, str]:
    return {row["row"]: row["error"] for row in judged.failures.to_pylist()}


def drops(judged: Judged) -> dict[int, str]:
    return {row["row"]: row["rule"] for row in judged.drops.to_pylist()}


def test_pages_become_text_title_and_date() -> None:
    date = '<meta property="article:published_time" content="2020-02-03T10:00:00+01:00">'
    head = f"<title>A longer title - Site</title>{date}"
    given_ = batch([page(article().decode(), head), None, page("")], [None, "already\r\ntext \u0065\u0301", None])
    judged = Extract()(given_)
    rows = judged.kept.to_pylist()
    assert [row["title"] for row in rows] == ["A longer title", None]
    assert rows[0]["text"].startswith("A paragraph with enough words")
    assert rows[1]["text"] == "already\ntext \u00e9"
    assert [row["date"] for row in rows] == [datetime(2020, 2, 3, 9, tzinfo=UTC), datetime(2024, 5, 1, tzinfo=UTC)]
    assert judged.kept_rows.tolist() == [0, 1]
    assert drops(judged) == {2: "no_text"}
    assert not [name for name in judged.kept.schema.names if name.startswith("_")]


def test_every_row_is_kept_dropped_or_failed_once() -> None:
    pages = [article(1), b"", page("<p>x</p>"), b"\xff\xfe\x00", b"<", page("<div>" * 5000), article(2)]
    judged = Extract()(batch(pages))
    told = [*judged.kept_rows.tolist(), *drops(judged), *failures(judged)]
    assert sorted(told) == list(range(len(pages)))
    assert failures(judged) == {5: "too_deep"}


def test_a_batch_without_content_column_is_only_normalised() -> None:
    plain = pa.RecordBatch.from_pydict(
        {"text": ["a\rb", " "], "url": [None, None], "date": pa.nulls(2, pa.timestamp("us", tz="UTC"))}
    )
    judged = Extract()(plain)
    assert judged.kept.column("text").to_pylist() == ["a\nb"]
    assert drops(judged) == {1: "no_text"}


@pytest.mark.parametrize(
    ("content", "limits", "error"),
    [
        (page("x" * 2000), {"max_html_bytes": 1024}, "too_large"),
        (page("<div>" * 51 + "x"), {"max_depth": 50}, "too_deep"),
        (page("<p>x</p>" * 200), {"max_nodes": 150}, "too_many_nodes"),
        (page("<table>" + "<td>1" * 101), {"max_cells": 100}, "too_many_cells"),
        (page("<div>" * 10_000), {}, "too_deep"),
        (page("<table>" + "<tr><td>1</td></tr>" * 1_000_000 + "</table>"), {}, "too_many_nodes"),
    ],
)
def test_gates_quarantine_the_page_alone(content: bytes, limits: dict[str, Any], error: str) -> None:
    step = Extract(**limits)
    start = time.process_time()
    judged = step(batch([article(1, 2), content, article(2, 2)]))
    assert failures(judged) == {1: error}
    assert judged.kept_rows.tolist() == [0, 2]
    assert time.process_time() - start < 5


@pytest.mark.parametrize("limits", [{"max_depth": 50}, {"max_nodes": 100}, {"max_cells": 100}])
def test_gates_pass_a_page_at_the_limit(limits: dict[str, Any]) -> None:
    # html, body and 48 div are 50 open elements
    content = {
        "max_depth": page("<div>" * 48 + "x", ""),
        "max_nodes": page("<p>x</p>" * 97, ""),
        "max_cells": page("<table>" + "<td>1" * 100, ""),
    }
    assert failures(Extract(**limits)(batch([content[next(iter(limits))]]))) == {}


HEAVY = page("<div>" * 100 + ("<p>text <a href=x>and more</a> words</p>" * 40 + "</div><div>") * 500)


def test_a_page_above_the_cpu_limit_loses_only_itself() -> None:
    step = Extract(cpu_limit_s=0.3)
    judged = step(batch([article(1), HEAVY, article(2), article(3)]))
    assert failures(judged) == {1: "resource"}
    assert judged.kept_rows.tolist() == [0, 2, 3]
    assert "cpu_limit_s" in judged.failures.to_pylist()[0]["message"]


def test_a_page_above_the_memory_limit_loses_only_itself() -> None:
    step = Extract(memory_limit_bytes=64 << 20, max_nodes=1_000_000)
    heavy = page("<p>" + "some words " * 1_500_000 + "</p>")
    judged = step(batch([article(1), heavy, article(2)]))
    assert failures(judged) == {1: "resource"}
    assert judged.kept_rows.tolist() == [0, 2]


def test_a_child_killed_from_outside_costs_nothing() -> None:
    step = Extract(cpu_limit_s=59.0)
    step(batch([article(0)]))
    child = sandbox(_orders(step)).child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    judged = step(batch([article(i) for i in range(6)]))
    assert judged.kept.num_rows == 6
    assert not _running(child.pid)


def _orders(step: Extract) -> Orders:
    return Orders(
        engine=step.engine, favor=step.favor, cpu_limit_s=step.cpu_limit_s, memory_limit_bytes=step.memory_limit_bytes
    )


def _running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_close_leaves_no_child_and_no_zombie() -> None:
    step = Extract(cpu_limit_s=58.0)
    step(batch([article(0)]))
    child = sandbox(_orders(step)).child
    assert child is not None
    close_all()
    assert not _running(child.pid)


def _in_worker(step: Extract, number: int) -> tuple[list[str], int]:
    kept = step(batch([article(number), article(number + 1)])).kept
    child = sandbox(_orders(step)).child
    assert child is not None
    return kept.column("text").to_pylist(), child.pid


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_workers_of_a_pool_have_children_of_their_own(method: str) -> None:
    step = Extract()
    here, pid = _in_worker(step, 7)
    with multiprocessing.get_context(method).Pool(2) as pool:
        answers = pool.starmap(_in_worker, [(step, 7), (step, 7), (step, 7)])
        pool.close()
        pool.join()
    assert all(texts == here for texts, _ in answers)
    assert pid not in {there for _, there in answers}
    deadline = time.monotonic() + 20
    while any(_running(there) for _, there in answers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(_running(there) for _, there in answers)


def test_a_killed_parent_takes_its_child_along() -> None:
    code = (
        "from tests.ingest.test_extraction import Extract, batch, article, sandbox, _orders\n"
        "import os, time\n"
        "step = Extract(); step(batch([article(0)]))\n"
        "if os.fork() == 0: time.sleep(60); os._exit(0)\n"  # a sibling holds the pipe's other end open
        "print(sandbox(_orders(step)).child.pid, flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 20
    while _running(pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not _running(pid)
    os.killpg(parent.pid, signal.SIGKILL)


def test_answers_do_not_depend_on_batches_or_what_came_before() -> None:
    pages = [article(i, 1 + i % 7) for i in range(40)]
    whole = Extract()(batch(pages)).kept.column("text").to_pylist()
    single = [Extract()(batch([content])).kept.column("text").to_pylist()[0] for content in reversed(pages)]
    assert single[::-1] == whole


def test_pages_larger_than_the_pipe_pass_both_ways() -> None:
    large = [page("<article>" + f"<p>{PARAGRAPH.format(i) * 100}</p>" * 300 + "</article>") for i in range(12)]
    assert min(map(len, large)) > 2 << 20
    judged = Extract(max_nodes=10_000)(batch(large))
    assert judged.kept.num_rows == 12


def test_settings_are_pickled_and_refuse_the_unknown() -> None:
    step = Extract(favor="precision")
    assert pickle.loads(pickle.dumps(step)) == step
    with pytest.raises(ValueError, match="favour"):
        Extract(favour="precision")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="cpu_limit_s"):
        Extract(cpu_limit_s=0)


def test_resiliparse_is_an_engine_too() -> None:
    judged = Extract(engine="resiliparse")(batch([article(1)]))
    assert "paragraph with enough words" in judged.kept.column("text")[0].as_py()


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400), st.sampled_from([b"", b"<html><body>", b"<p>", b"<!doctype html><table>", b"\xfe\xff"]))
def test_any_bytes_get_an_answer(data: bytes, start: bytes) -> None:
    judged = Extract()(batch([start + data]))
    assert judged.kept.num_rows + judged.drops.num_rows + judged.failures.num_rows == 1


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_any_text_gets_an_answer(text: str) -> None:
    extract(f"<html><body><article><p>{text}</p></article></body></html>".encode("utf-8", "surrogatepass"))
    judged = Extract()(batch([None], [text.encode("utf-8", "replace").decode()]))
    assert judged.kept.num_rows + judged.drops.num_rows == 1
