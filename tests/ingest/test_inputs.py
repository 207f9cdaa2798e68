"""Listing and cutting: what a source stands for, and units that depend on nothing else."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path

import fsspec
import pytest

from ingest import InputError, InputFile, Source, list_inputs, plan_units, read


def source(*paths: object, format_: str = "text", **settings: object) -> Source:
    return Source(name="s", format=format_, paths=tuple(map(str, paths)), **settings)  # type: ignore[arg-type]


def test_globs_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    for name in ("a/1.txt", "a/b/2.txt", "a/b/3.md", "a/.hidden"):
        (tmp_path / name).write_text(name)
    assert [file.name for file in list_inputs(source(tmp_path / "a/*.txt"))] == ["1.txt"]
    assert [file.name for file in list_inputs(source(tmp_path / "a/**/*.txt"))] == ["1.txt", "b/2.txt"]
    assert [file.name for file in list_inputs(source(tmp_path / "a"))] == ["1.txt", "b/2.txt", "b/3.md"]
    assert [file.name for file in list_inputs(source(tmp_path / "a/1.txt", tmp_path / "a/*.txt"))] == ["1.txt"]


def test_html_folders_hold_pages_only(tmp_path: Path) -> None:
    for name in ("a.html", "b.HTM", "c.css", "d.html.gz", "e.xhtml"):
        (tmp_path / name).write_bytes(b"x")
    names = [file.name for file in list_inputs(source(tmp_path, format_="html"))]
    assert names == ["a.html", "b.HTM", "d.html.gz", "e.xhtml"]


def test_digests_are_of_the_content_and_known_ones_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one")
    (first,) = list_inputs(source(path))
    known = {first.path: (first.stamp, "remembered")}
    assert list_inputs(source(path), known)[0].digest == "remembered"
    path.write_text("two")
    os.utime(path, ns=(1, 1))
    (second,) = list_inputs(source(path), known)
    assert second.digest not in (first.digest, "remembered")
    assert len(second.digest) == 32


def test_content_put_in_place_with_its_size_and_time_is_noticed(tmp_path: Path) -> None:
    """cp -p, rsync -t and touch -r keep size and time of change."""
    path = tmp_path / "a.txt"
    path.write_text("one")
    os.utime(path, ns=(1, 1))
    (first,) = list_inputs(source(path))
    known = {first.path: (first.stamp, first.digest)}
    time.sleep(0.02)
    path.write_text("two")
    os.utime(path, ns=(1, 1))
    assert list_inputs(source(path), known)[0].digest != first.digest
    other = tmp_path / "b.txt"
    other.write_text("six")
    os.utime(other, ns=(1, 1))
    os.replace(other, path)
    assert list_inputs(source(path), known)[0].digest != first.digest


@pytest.mark.parametrize("spelling", ["{}/./chg/../chg/a.txt", "{}//chg//*.txt", "file://{}/chg/a.txt"])
def test_a_file_is_read_once_however_it_is_spelled(tmp_path: Path, spelling: str) -> None:
    (tmp_path / "chg").mkdir()
    (tmp_path / "chg/a.txt").write_text("x")
    found = list_inputs(source(tmp_path / "chg/*.txt", spelling.format(tmp_path)))
    assert [(file.path, file.name) for file in found] == [(str(tmp_path / "chg/a.txt"), "a.txt")]
    assert [file.path for file in list_inputs(source(spelling.format(tmp_path)))] == [found[0].path]


def test_dots_behind_a_link_lead_where_the_link_does(tmp_path: Path) -> None:
    (tmp_path / "far/deep").mkdir(parents=True)
    (tmp_path / "far/a.txt").write_text("far")
    (tmp_path / "link").symlink_to("far/deep")
    (file,) = list_inputs(source(f"{tmp_path}/link/../a.txt"))
    assert Path(file.path).read_text() == "far"


@pytest.mark.parametrize("name", ["co::lon.txt", "zip::x.txt", "a::b/c.txt", "simplecache::memory.txt"])
@pytest.mark.parametrize("head", ["", "file://"])
def test_colons_in_a_local_name_chain_nothing(tmp_path: Path, name: str, head: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("colons")
    assert documents(source(f"{head}{path}")) == {path.name: "colons"}
    assert list(documents(source(tmp_path)).values()) == ["colons"]


@pytest.mark.parametrize("pattern", ["", "*", "*/*.txt", "**"])
@pytest.mark.parametrize("name", [b"d/bad\xff.txt", b"bad\xff/a.txt"])
def test_names_that_are_not_utf8_are_told_in_one_line(tmp_path: Path, pattern: str, name: bytes) -> None:
    path = os.path.join(os.fsencode(tmp_path), name)
    os.makedirs(os.path.dirname(path))
    with open(path, "wb") as file:
        file.write(b"x")
    if pattern == "*":
        pattern = "*/*"
    with pytest.raises(InputError, match=r"bad\\xff.*: the name is not UTF-8; rename it") as raised:
        list_inputs(source(tmp_path / pattern))
    str(raised.value).encode()


def test_links_to_nothing_and_pipes_are_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").symlink_to("nowhere")
    os.mkfifo(tmp_path / "b.pipe")
    (tmp_path / "c.loop").symlink_to("c.loop")
    for pattern in ("a.txt", "*.txt", ""):
        with pytest.raises(InputError, match=r"a\.txt: a link to a file that is missing; mend or remove it$"):
            list_inputs(source(tmp_path / pattern))
    for pattern in ("b.pipe", "*.pipe"):
        with pytest.raises(InputError, match=r"b\.pipe: not a regular file; remove it or name the files$"):
            list_inputs(source(tmp_path / pattern))
    with pytest.raises(InputError, match="symbolic links") as raised:
        list_inputs(source(tmp_path / "c.*"))
    assert "Errno" not in str(raised.value)


def test_object_stores(tmp_path: Path) -> None:
    system = fsspec.filesystem("memory")
    system.pipe("/bucket/x/a.txt", b"hello")
    (file,) = list_inputs(source("memory://bucket/x/*.txt"))
    assert (file.path, file.name, file.bytes) == ("memory:///bucket/x/a.txt", "a.txt", 5)
    (unit,) = plan_units(source("memory://bucket/x/*.txt"), (file,))
    (records,) = read(unit)
    assert records.batch.column("text").to_pylist() == ["hello"]


@pytest.mark.parametrize("pattern", ["missing.txt", "*.txt", "nowhere/**"])
def test_no_match_is_one_line_that_names_place_and_mend(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(InputError) as raised:
        list_inputs(source(tmp_path / pattern))
    message = str(raised.value)
    assert message.startswith(f"source 's': {tmp_path / pattern}: no ")
    assert "correct the path or remove it" in message
    assert "\n" not in message


def test_unreadable_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("x")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(InputError, match=r"a\.txt: no permission to read; grant it or remove it"):
        list_inputs(source(tmp_path / "a.txt"))


def test_unknown_protocols_are_named() -> None:
    with pytest.raises(InputError, match="nosuch://x"):
        list_inputs(source("nosuch://x/*.txt"))


def files(*sizes: int, suffix: str = ".jsonl") -> tuple[InputFile, ...]:
    return tuple(
        InputFile(path=f"/d/{i:02}{suffix}", bytes=size, digest="", name=f"{i:02}{suffix}")
        for i, size in enumerate(sizes)
    )


@pytest.mark.parametrize(
    ("format_", "suffix", "parts"),
    [
        ("jsonl", ".jsonl", 10),
        ("jsonl", ".jsonl.gz", 8),
        ("parquet", ".parquet", 10),
        ("warc", ".warc.gz", 10),
        ("warc", ".warc", 1),
        ("csv", ".csv", 1),
        ("html", ".html", 1),
    ],
)
def test_big_files_are_cut_and_covered(format_: str, suffix: str, parts: int) -> None:
    units = plan_units(source("x", format_=format_), files(1000, suffix=suffix), 100)
    assert len(units) == parts
    pieces = [piece for unit in units for piece in unit.pieces]
    assert [(a.end, a.part) for a in pieces[:-1]] == [(b.start, b.part - 1) for b in pieces[1:]]
    assert (pieces[0].start, pieces[-1].end) == (0, 1000)


def test_small_files_go_together_in_order() -> None:
    units = plan_units(source("x", format_="html"), files(40, 40, 40, 250, 10, 0, 90), 100)
    assert [[piece.bytes for piece in unit.pieces] for unit in units] == [[40, 40], [40], [250], [10, 0, 90]]
    assert plan_units(source("x"), ()) == ()


def test_source_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="no type 'strng'"):
        source("x", format_="jsonl", columns={"a": "strng"})
    with pytest.raises(ValueError, match="taken by the document"):
        source("x", format_="jsonl", columns={"url": "string"})
    with pytest.raises(ValueError, match="paths"):
        Source(name="s", format="text", paths=())
    names = source("x", format_="messages", columns={"score": "float64"}).schema().names
    assert names == ["id", "source_id", "source", "domain", "url", "date", "text", "messages", "score"]


def documents(where: Source) -> dict[str, object]:
    found: dict[str, object] = {}
    for unit in plan_units(where, list_inputs(where)):
        for records in read(unit):
            rules = {row["row"]: row["rule"] for row in records.drops.to_pylist()}
            rows = enumerate(records.batch.to_pylist())
            found |= {row["source_id"]: rules.get(i) or row["text"] or row["_content"] for i, row in rows}
            found |= {fault.location.split("/")[-1]: fault.error for fault in records.lost}
    return found


def test_files_as_documents(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    contents = {
        "plain.py": "x = 'é'\n".encode(),
        "latin.py": b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
        "bom.py": "\ufeffx = 1".encode(),
        "sub/wide.txt": "wide é".encode("utf-16"),
        "cp1252.txt": "caf\u00e9 \u2013 d\u00e9j\u00e0 vu, tr\u00e8s bient\u00f4t".encode("cp1252"),
        "empty.py": b"",
        "blank.py": b" \n",
        "image.bin": b"GIF89a\0\0\0",
        "packed.py.gz": gzip.compress(b"packed"),
        "cut.py.gz": gzip.compress(b"cut" * 100)[:-12],
        "huge.py": b"x" * 5000,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    found = documents(source(tmp_path, format_="code", max_record_bytes=4096))
    assert found == {
        "plain.py": "x = 'é'\n",
        "latin.py": "# -*- coding: latin-1 -*-\nx = '\u00e9'\n",
        "bom.py": "x = 1",
        "sub/wide.txt": "wide é",
        "cp1252.txt": "caf\u00e9 \u2013 d\u00e9j\u00e0 vu, tr\u00e8s bient\u00f4t",
        "empty.py": "empty",
        "blank.py": "empty",
        "image.bin": "not_text",
        "packed.py": "packed",
        f"cut.py.gz@{len(contents['cut.py.gz'])}-{len(contents['cut.py.gz'])}": "truncated",
        "huge.py@0-5000": "too_large",
    }


def test_ids_depend_on_content_and_not_on_place(tmp_path: Path) -> None:
    ids = []
    for folder in ("one", "other/deep"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.html").write_text("<p>a</p>")
        (tmp_path / folder / "b.html").write_text("<p>a</p>")
        where = source(tmp_path / folder, format_="html")
        ids.append([r.batch.column("id").to_pylist() for u in plan_units(where, list_inputs(where)) for r in read(u)])
    assert ids[0] == ids[1]
    assert len(set(ids[0][0])) == 2


def test_a_file_that_vanished_is_lost_and_the_rest_is_read(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    (unit,) = plan_units(source(tmp_path), list_inputs(source(tmp_path)))
    (tmp_path / "a.txt").unlink()
    (records,) = read(unit)
    assert records.batch.column("text").to_pylist() == ["b.txt"]
    assert [(fault.error, fault.bytes) for fault in records.lost] == [("unreadable", 5)]
