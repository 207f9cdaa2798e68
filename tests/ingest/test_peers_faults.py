"""Faults of other pipelines and of the libraries beneath, each as a test of what ours does (numbers: see each test)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ingest import Extract, Extracted, Source, extract, list_inputs, plan_units, read
from ingest.cascade import usable
from ingest.sandbox import Sandbox
from ingest.worker_frames import Job, Orders
from tests.ingest.test_extraction import article, batch, failures, page

LONG = "<p>" + "Some text is here and goes on. " * 12 + "</p>"


def text_of(body: str, **settings: Any) -> str:
    found = extract(page(body), **settings)
    assert isinstance(found, Extracted)
    return found.text


def test_the_known_trafilatura_is_installed() -> None:
    assert usable(), "cascade.py names the versions it knows: compare, extend VERSIONS, and measure F1 again"


@pytest.mark.parametrize("favor", ["precision", "balanced", "recall"])
def test_extraction_is_a_function_of_the_page(favor: Any) -> None:
    """trafilatura#17, datatrove's default deduplicate=True: the fourth identical page came out empty."""
    body = "<article>" + "".join(
        f"<p>A unique long paragraph of the page, its number is {i}, and more.</p>" for i in range(6)
    )
    assert len({text_of(body, favor=favor) for _ in range(6)}) == 1


def test_an_empty_page_at_the_start_hangs_nothing() -> None:
    """datatrove#339: the extractor's warm-up on "" hung the task."""
    judged = Extract(cpu_limit_s=57.0)(batch([b"", article(1)]))
    assert judged.kept_rows.tolist() == [1]


def test_a_child_that_cannot_start_fails_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """datatrove#339 again: what cannot start must say so at once, and not fail page after page."""
    child = Sandbox(Orders(engine="trafilatura", favor="balanced", cpu_limit_s=1.0, memory_limit_bytes=1 << 30))
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    with pytest.raises(RuntimeError, match="extract: the child process cannot start"):
        list(child.run([Job(page=article(), url=None, captured=None)]))
    assert child.child is None


def test_a_million_row_table_ends() -> None:
    """trafilatura#704: ran without end. Above the gate it is quarantined; a large one below it takes about a second."""
    table = page("<table>" + "<tr><td>12</td></tr>" * 1_000_000 + "</table>")
    large = page("<table>" + "<tr><td>12</td><td>some cell</td></tr>" * 9_000 + "</table>")
    judged = Extract(cpu_limit_s=20.0)(batch([table, large]))
    assert failures(judged) == {0: "too_many_nodes"}
    assert judged.kept_rows.tolist() == [1]


@pytest.mark.parametrize("favor", ["precision", "balanced", "recall"])
def test_paragraphs_of_a_short_article_come_once(favor: Any) -> None:
    """trafilatura#879, #880: p1 p2 p1 p2."""
    first = "This is the first paragraph of a short article about nothing at all."
    second = "And this is the second paragraph of the short article, also about nothing."
    nav = '<nav><a href="/">Home</a><a href="/about">About</a></nav>'
    body = f"{nav}<article><h1>Headline</h1><p>{first}</p><p>{second}</p></article><footer>Copyright</footer>"
    text = text_of(body, favor=favor)
    assert (text.count(first), text.count(second)) == (1, 1)


@pytest.mark.parametrize("more", ["", LONG])
def test_inline_code_comes_once(more: str) -> None:
    """trafilatura#851."""
    text = text_of(f"<article><p>Use <code>pip install x</code> to install.</p>{more}</article>")
    assert text.startswith("Use pip install x to install.")
    assert text.count("pip install x") == 1


@pytest.mark.parametrize("favor", ["precision", "balanced", "recall"])
@pytest.mark.parametrize("before", ["", LONG])
def test_a_list_in_the_bare_body_is_kept(favor: Any, before: str) -> None:
    """trafilatura#233; in 2.3.1 still so below text, unless recall is favoured."""
    items = "<ul><li>First item of the list that is here</li><li>Second item of the list that is here</li></ul>"
    assert "Second item of the list" in text_of(before + items, favor=favor)


def test_list_items_in_spans_are_kept() -> None:
    """trafilatura#431."""
    items = "<li><span>First item in a span</span></li><li><span>Second item in a span</span></li>"
    assert "Second item in a span" in text_of(f"<article>{LONG}<ul>{items}</ul></article>")


def test_table_cells_come_once() -> None:
    """trafilatura#634."""
    text = text_of(f"<article>{LONG}<table><tr><td>cell one</td><td>cell two</td></tr></table></article>")
    assert (text.count("cell one"), text.count("cell two")) == (1, 1)


def test_images_make_no_pattern_explode() -> None:
    """trafilatura#651: ten minutes in a pattern over image paths; images are never asked for here."""
    image = '<img src="' + "a/" * 20_000 + '.x" data-src="' + "b." * 20_000 + '">'
    judged = Extract(cpu_limit_s=10.0)(batch([page(f"<article>{LONG}{image * 20}</article>")]))
    assert judged.kept.num_rows == 1


def test_caches_are_emptied() -> None:
    """htmldate#56: caches that grow for the life of a worker."""
    from importlib import import_module

    from ingest.engines import reset

    trim = import_module("trafilatura.utils").trim
    extract(article(1))
    assert trim.cache_info().currsize > 0
    reset()
    assert trim.cache_info().currsize == 0


def test_repeated_paragraphs_stay() -> None:
    """datatrove#295: users of its FineWeb recipe cannot tell that elements are deduplicated. Here they are not."""
    same, other = "The very same paragraph stands here again and again. " * 3, "Something else stands in between them. "
    assert text_of(f"<article><p>{same}</p><p>{other}</p><p>{same}</p></article>").count(same.strip()) == 2


def test_pdfs_are_accounted_for(tmp_path: Path) -> None:
    """marin#7616: PDFs vanish from crawls. Here they are dropped rows that name their type."""
    from tests.ingest.test_warc import read_all, response, write

    path = write(tmp_path / "a.warc.gz", response(b"%PDF-1.7", "Content-Type: application/pdf"))
    assert read_all(path)[2] == {"content_type": 1}


def test_a_huge_file_is_many_units() -> None:
    """marin PR#5733, datatrove#316: one file was one task, too long for a node's time limit."""
    from tests.ingest.test_inputs import files, source

    assert len(plan_units(source("x", format_="warc"), files(1 << 40, suffix=".warc.gz"))) == 1 << 14


def test_rows_of_one_file_do_not_fix_the_schema(tmp_path: Path) -> None:
    """marin#5142, datatrove R6: a column's type was taken from the first rows, and later ones crashed or vanished."""
    rows = [{"text": "a", "tags": None}] * 2000 + [{"text": "b", "tags": ["x"]}, {"text": "c"}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    where = Source(name="s", format="jsonl", paths=(str(path),), columns={"tags": "list<string>"})
    batches = [records.batch for unit in plan_units(where, list_inputs(where)) for records in read(unit)]
    assert all(part.schema.equals(batches[0].schema) for part in batches)
    assert pa.Table.from_batches(batches).column("tags").to_pylist()[-2:] == [["x"], None]


def test_the_front_door_is_light() -> None:
    code = (
        "import sys, ingest; assert not {'pyarrow', 'trafilatura', 'numba', 'lxml', 'fsspec'} & set(sys.modules);"
        "assert set(ingest.__all__) == {name for name in ingest.__all__ if getattr(ingest, name)}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
