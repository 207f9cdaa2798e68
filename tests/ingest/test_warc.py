"""WARC, WET and ARC: counts as the reference readers count, damage located and passed over, bodies decoded."""

from __future__ import annotations

import gzip
import json
import random
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import brotli  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest import Lost, Source, list_inputs, plan_units, read
from ingest.charset import decode_page

HTML = "<html><body><p>Hello \u00e9</p></body></html>".encode()


def source(path: Path, **settings: Any) -> Source:
    return Source(name="w", format="warc", paths=(str(path),), **settings)


def read_all(
    path: Path, unit_bytes: int = 64 << 20, **settings: Any
) -> tuple[list[dict[str, Any]], list[Lost], Counter[str]]:
    """Every row, what was lost, and the drops by rule."""
    rows: list[dict[str, Any]] = []
    lost: list[Lost] = []
    rules: Counter[str] = Counter()
    where = source(path, **settings)
    for unit in plan_units(where, list_inputs(where), unit_bytes):
        for records in read(unit):
            records.batch.validate(full=True)
            rows += records.batch.to_pylist()
            lost += records.lost
            rules.update(records.drops.column("rule").to_pylist())
    return rows, lost, rules


def record(
    body: bytes, kind: str = "response", *, head: bytes | None = None, extra: str = "", number: int = 0
) -> bytes:
    block = body if head is None else head + b"\r\n\r\n" + body
    fields = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{number:032x}>\r\n"
        f"WARC-Target-URI: https://example.org/{number}\r\nWARC-Date: 2024-02-03T04:05:06Z\r\n{extra}"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return fields.encode() + block + b"\r\n\r\n"


def response(
    body: bytes = HTML, headers: str = "Content-Type: text/html", status: str = "200 OK", **more: Any
) -> bytes:
    return record(body, head=f"HTTP/1.1 {status}\r\n{headers}".encode(), **more)


def write(path: Path, *records: bytes, packed: bool = True) -> Path:
    path.write_bytes(b"".join(map(gzip.compress, records) if packed else records))
    return path


def archives(shared: Path) -> dict[str, dict[str, Any]]:
    counts: dict[str, dict[str, Any]] = json.loads((shared / "warc" / "observed_counts.json").read_text())
    return {name: facts for name, facts in counts.items() if isinstance(facts, dict) and "bytes" in facts}


@pytest.mark.parametrize("unit_bytes", [64 << 20, 30_000])
def test_good_files_count_as_warcio_and_fastwarc_count_them(shared: Path, unit_bytes: int) -> None:
    checked = 0
    for name, facts in archives(shared).items():
        readers = [facts[reader] for reader in ("warcio", "fastwarc", "python-zstandard") if reader in facts]
        if any(reader.get("error") for reader in readers) or "truncated" in name:
            continue
        rows, lost, rules = read_all(shared / "warc" / name, unit_bytes)
        assert [len(rows)] * len(readers) == [reader["records"] for reader in readers], name
        assert not lost, name
        kinds = readers[0].get("types", {})
        if kinds:
            assert rules["revisit"] == kinds.get("revisit", 0), name
        checked += 1
    assert checked >= 30


@pytest.mark.parametrize("unit_bytes", [64 << 20, 30_000])
@pytest.mark.parametrize(
    ("name", "records", "located"),
    [
        ("derived/iana40-bitflip-rec10.warc.gz", 39, "@49992-50482"),
        ("derived/iana40-truncated.warc.gz", 31, "@329393-337434"),
        ("pywb/example.warc", 5, "@4061-4771"),
    ],
)
def test_damage_costs_only_what_it_hit(shared: Path, name: str, records: int, located: str, unit_bytes: int) -> None:
    rows, lost, _ = read_all(shared / "warc" / name, unit_bytes)
    assert len(rows) == records
    (fault,) = lost
    assert fault.location.endswith(located)
    start, end = map(int, located[1:].split("-"))
    assert fault.bytes == end - start


def test_one_member_of_many_records_is_read(shared: Path) -> None:
    for name, count in (("derived/iana40-single-member.warc.gz", 40), ("warcio/example-bad.warc.gz.bad", 6)):
        rows, lost, _ = read_all(shared / "warc" / name)
        assert (len(rows), lost) == (count, [])


def test_zst_and_gz_hold_the_same_rows(shared: Path) -> None:
    gz, zst = (read_all(shared / "warc/derived" / f"iana40.warc.{pack}")[0] for pack in ("gz", "zst"))
    assert [row["id"] for row in gz] == [row["id"] for row in zst]


def test_every_charset_is_decoded(shared: Path) -> None:
    """20 languages and charsets, each declared by header, by meta, not at all, and wrongly by the header."""
    gold = {
        row["url"]: row
        for row in map(json.loads, (shared / "warc/derived/charset_gold.jsonl").read_text().splitlines())
    }
    right: Counter[str] = Counter()
    for row in read_all(shared / "warc/derived/charset.warc.gz")[0]:
        expected = gold[row["url"]]
        text = " ".join(_visible(decode_page(row["_content"], row["_charset"])))
        right[expected["mode"]] += all(_spaced(probe) in _spaced(text) for probe in expected["probe"])
    assert right == {"header": 20, "meta": 20, "none": 20, "wrong-header": 20}


def _visible(page: str) -> list[str]:
    import lxml.html

    tree = lxml.html.fromstring(page.encode(), parser=lxml.html.HTMLParser(encoding="utf-8"))
    return list(tree.itertext())


def _spaced(text: str) -> str:
    import unicodedata

    return unicodedata.normalize("NFC", re.sub(r"\s+", " ", text))


@pytest.mark.parametrize(
    ("content", "rule", "value"),
    [
        (response(), None, None),
        (response(status="203 Non-Authoritative"), None, None),
        (response(status="404 Not Found"), "http_status", 404.0),
        (response(status="206 Partial Content"), "http_status", 206.0),
        (response(status="301 Moved"), "http_status", 301.0),
        (response(headers="Content-Type: image/png"), "content_type", None),
        (response(headers="Content-Type: application/xhtml+xml; charset=utf-8"), None, None),
        (response(headers="X: y"), None, None),
        (response(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", headers="X: y"), "content_type", None),
        (response(b"  \n"), "empty", None),
        (response(extra="WARC-Truncated: length\r\n"), "truncated", None),
        (response(extra="WARC-Identified-Payload-Type: application/pdf\r\n"), "content_type", None),
        (record(b"GET / HTTP/1.1\r\n\r\n", "request"), "not_a_response", None),
        (record(b"a: b", "warcinfo"), "not_a_response", None),
        (record(b"", "revisit"), "revisit", None),
        (record(HTML, "resource", extra="Content-Type: text/html\r\n"), None, None),
        (record(b"plain", "conversion", extra="Content-Type: text/plain\r\n"), None, None),
    ],
)
def test_what_is_a_document(tmp_path: Path, content: bytes, rule: str | None, value: float | None) -> None:
    where = source(write(tmp_path / "a.warc.gz", content))
    (records,) = read(plan_units(where, list_inputs(where))[0])
    told = [(row["rule"], row["value"]) for row in records.drops.to_pylist()]
    assert told == ([] if rule is None else [(rule, value)])
    assert records.kept.num_rows == (rule is None)
    assert records.batch.column("_bytes").to_pylist() == [len(content) - 4]


def test_truncated_records_can_be_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "a.warc.gz", response(extra="WARC-Truncated: length\r\n"))
    assert read_all(path, keep_truncated=True)[2] == {}


def test_headers_become_columns(tmp_path: Path) -> None:
    (row,) = read_all(write(tmp_path / "a.warc.gz", response(headers='Content-Type: text/html; charset="utf-8"')))[0]
    assert row["source_id"] == "<urn:uuid:00000000000000000000000000000000>"
    assert row["url"] == "https://example.org/0"
    assert row["date"].isoformat() == "2024-02-03T04:05:06+00:00"
    assert (row["_content"], row["_content_type"], row["_charset"], row["text"]) == (HTML, "text/html", "utf-8", None)


def chunked(body: bytes) -> bytes:
    half = len(body) // 2
    parts = (body[:half], body[half:])
    return b"".join(b"%x;note=1\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


ENCODED = {
    "Content-Encoding: gzip": gzip.compress(HTML),
    "Content-Encoding: x-gzip": gzip.compress(HTML),
    "Content-Encoding: deflate": zlib.compress(HTML),
    "Content-Encoding: Deflate": zlib.compress(HTML)[2:-4],
    "Content-Encoding: br": brotli.compress(HTML),
    "content-encoding: zstd": pa.Codec("zstd").compress(HTML, asbytes=True),
    "Transfer-Encoding: chunked": chunked(HTML),
    "Transfer-Encoding: chunked\r\nContent-Encoding: gzip": chunked(gzip.compress(HTML)),
    "Content-Encoding: gzip, br": brotli.compress(gzip.compress(HTML)),
}


@pytest.mark.parametrize("header", ENCODED)
def test_bodies_are_decoded(tmp_path: Path, header: str) -> None:
    path = write(tmp_path / "a.warc.gz", response(ENCODED[header], f"Content-Type: text/html\r\n{header}"))
    assert [row["_content"] for row in read_all(path)[0]] == [HTML]


@pytest.mark.parametrize("header", ENCODED)
def test_bodies_stored_decoded_are_taken_as_they_are(tmp_path: Path, header: str) -> None:
    path = write(tmp_path / "a.warc.gz", response(HTML, f"Content-Type: text/html\r\n{header}"))
    assert [row["_content"] for row in read_all(path)[0]] == [HTML]


@pytest.mark.parametrize("header", [header for header in ENCODED if "zstd" not in header])
def test_bodies_cut_off_are_lost(tmp_path: Path, header: str) -> None:
    path = write(
        tmp_path / "a.warc.gz", response(ENCODED[header][:-9], f"Content-Type: text/html\r\n{header}"), response()
    )
    rows, lost, _ = read_all(path)
    assert len(rows) == 1
    assert [fault.error for fault in lost] == ["encoding"]


@pytest.mark.parametrize("pack", [gzip.compress, brotli.compress, zlib.compress])
def test_bombs_are_lost_in_bounded_memory(tmp_path: Path, pack: Any) -> None:
    name = {gzip.compress: "gzip", brotli.compress: "br", zlib.compress: "deflate"}[pack]
    body = pack(b"<html>" + b"\0" * (80 << 20))
    path = write(tmp_path / "a.warc.gz", response(body, f"Content-Type: text/html\r\nContent-Encoding: {name}"))
    _, lost, _ = read_all(path, max_record_bytes=1 << 20)
    assert [fault.error for fault in lost] == ["encoding"]
    assert "more than 1048576 bytes" in lost[0].message


@pytest.mark.parametrize("packed", [True, False])
def test_a_record_above_the_limit_is_passed_over(tmp_path: Path, packed: bool) -> None:
    large = response(b"x" * (3 << 20), number=1)
    path = write(tmp_path / "a.warc.gz", response(), large, response(number=2), packed=packed)
    rows, lost, _ = read_all(path, max_record_bytes=1 << 20)
    assert len(rows) == 2
    assert [(fault.error, fault.bytes) for fault in lost] == [("too_large", len(large) - 4)]


def test_garbage_between_members_is_located(tmp_path: Path) -> None:
    first, second = gzip.compress(response()), gzip.compress(response(number=1))
    path = tmp_path / "a.warc.gz"
    path.write_bytes(first + b"junk\x1f\x8b\x08junk" + second + b"\0" * 512)
    rows, lost, _ = read_all(path)
    assert len(rows) == 2
    assert [fault.location for fault in lost] == [f"{path}@{len(first)}-{len(first) + 11}"]


def test_a_wrong_length_costs_one_record(tmp_path: Path) -> None:
    wrong = response(number=1).replace(b"Content-Length: ", b"Content-Length: 1", 1)
    path = write(tmp_path / "a.warc", response(), wrong, response(number=2), response(number=3), packed=False)
    rows, lost, _ = read_all(path)
    assert {int(row["source_id"][10:-1], 16) for row in rows} >= {0, 3}
    assert [fault.error for fault in lost] == ["bad_record"]


def test_a_damaged_header_costs_one_record(tmp_path: Path) -> None:
    path = write(tmp_path / "a.warc", response(), b"W" + response(number=1), response(number=2), packed=False)
    rows, lost, _ = read_all(path)
    assert [row["url"][-1] for row in rows] == ["0", "2"]
    assert len(lost) == 1


def test_every_flipped_bit_leaves_the_other_records(tmp_path: Path) -> None:
    """Whatever byte of a file of twelve members is hit, at least ten come out, and what is lost is told."""
    members = [gzip.compress(response(HTML * 3, number=i)) for i in range(12)]
    whole = b"".join(members)
    path = tmp_path / "a.warc.gz"
    for at in random.Random(5).sample(range(len(whole)), 150):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        rows, lost, _ = read_all(path)
        good = [row for row in rows if row["_content"] == HTML * 3]
        assert len(good) == len(rows) >= 11
        assert len(rows) + len(lost) >= 12 or len(rows) == 12


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"WARC/1.0\r\n", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"http://a 1.1.1.1 2020"]),
)
def test_any_bytes_are_read(tmp_path: Path, data: bytes, start: bytes) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(start + data)
    rows, lost, _ = read_all(path)
    assert rows or lost or not (start + data).strip(b"\r\n\0")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 5000), min_size=1, max_size=4), st.binary(min_size=1, max_size=8), st.integers(60, 4000))
def test_damage_anywhere_never_raises(tmp_path: Path, places: list[int], junk: bytes, unit_bytes: int) -> None:
    data = bytearray(b"".join(gzip.compress(response(HTML * i, number=i)) for i in range(12)))
    for place in places:
        data[place % len(data) : place % len(data) + len(junk)] = junk
    path = tmp_path / "a.warc.gz"
    path.write_bytes(data)
    whole = read_all(path)
    cut = read_all(path, unit_bytes)
    assert len(whole[0]) >= 12 - 2 * len(places)
    assert sorted(row["id"] for row in whole[0]) == sorted(row["id"] for row in cut[0])


def test_zst_with_a_shared_dictionary(tmp_path: Path) -> None:
    from fastwarc.stream_io import ZstdWriter, zstd_train_dictionary_from_samples

    samples = [response(HTML * 3, number=i) for i in range(300)]
    path = tmp_path / "a.warc.zst"
    with path.open("wb") as file:
        writer = ZstdWriter(file, dictionary=bytes(zstd_train_dictionary_from_samples(samples, 4096)))
        for sample in samples[:5]:
            writer.write(sample)
            writer.finish()
        writer.flush()
    assert path.read_bytes().startswith(b"\x5d\x2a\x4d\x18")
    for unit_bytes in (1 << 20, 200):
        rows, lost, _ = read_all(path, unit_bytes)
        assert [row["url"][-1] for row in rows] == ["0", "1", "2", "3", "4"]
        assert not lost
