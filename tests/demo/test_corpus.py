"""The corpus folder: what is in it, and when it is made again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from demo import corpus
from demo.corpus import build, copy_sources, write_descriptions
from demo.crawl import CrawlSettings

FEW = CrawlSettings(max_pages=12)


def test_sources_keep_their_folders_and_leave_out_tests(tmp_path: Path) -> None:
    library, out = tmp_path / "lib", tmp_path / "out"
    names = ("a.py", "json/decoder.py", "json/data.txt", "test/b.py", "site-packages/c.py", "config-3.11/d.py")
    for name in names:
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).write_text(name)
    assert copy_sources(library, out) == 2
    copied = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert copied == ["a.py", "json/decoder.py"]


def test_descriptions_are_rows_by_name_with_text(tmp_path: Path) -> None:
    count = write_descriptions(tmp_path / "d.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "d.jsonl").read_text().splitlines()]
    assert len(rows) == count > 20
    assert all(row["id"] and row["text"].strip() and row["url"].startswith("http://") for row in rows)
    names = [row["id"].split()[0].lower() for row in rows]
    assert names == sorted(names)


def test_a_corpus_is_made_once_and_again_when_its_settings_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    monkeypatch.setattr(corpus, "copy_sources", lambda library, out: 0)
    folder = tmp_path / "corpus"
    told = build(folder, settings=FEW)
    crawled = (folder / "pydoc.warc.gz").stat()
    assert told["pages"] == {"200": 11, "301": 1}
    assert build(folder, settings=FEW) == told
    assert (folder / "pydoc.warc.gz").stat().st_mtime_ns == crawled.st_mtime_ns
    fewer = build(folder, settings=CrawlSettings(max_pages=6))
    assert fewer["key"] != told["key"]
    assert sum(fewer["pages"].values()) == 6  # type: ignore[attr-defined]


def test_half_a_corpus_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "copy_sources", lambda library, out: 0)
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "pydoc.warc.gz.part").write_bytes(b"half")
    build(folder, settings=CrawlSettings(max_pages=4))
    assert sorted(path.name for path in folder.iterdir()) == ["corpus.json", "descriptions.jsonl", "pydoc.warc.gz"]
