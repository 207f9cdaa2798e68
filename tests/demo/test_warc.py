"""The WARC writer, read back by the reader that the product uses."""

from __future__ import annotations

import io
from datetime import UTC, datetime

from fastwarc.warc import ArchiveIterator

from demo.warc import Exchange, WarcWriter

DATE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PAGE = Exchange(
    url="http://pydoc.localhost/a.html",
    request=b"GET /a.html HTTP/1.1\r\nHost: pydoc.localhost\r\n\r\n",
    status="200 OK",
    headers=[("Content-Type", "text/html; charset=utf-8"), ("Content-Length", "11")],
    body="<p>caf\N{LATIN SMALL LETTER E WITH ACUTE}".encode()[:11],
    truncated=True,
)


def written() -> bytes:
    out = io.BytesIO()
    writer = WarcWriter(out, date=DATE)
    writer.write_info("a.warc.gz", [("software", "test")])
    writer.write_exchange(PAGE)
    return out.getvalue()


def test_a_reader_sees_what_was_written() -> None:
    records = [(record, record.reader.read()) for record in ArchiveIterator(io.BytesIO(written()), parse_http=True)]
    kinds = [record.headers["WARC-Type"] for record, _ in records]
    assert kinds == ["warcinfo", "response", "request"]
    response, body = records[1]
    assert body == PAGE.body
    assert response.http_headers.status_code == 200
    assert response.http_content_type == "text/html"
    assert response.headers["WARC-Date"] == "2026-01-02T03:04:05Z"
    assert response.headers["WARC-Truncated"] == "length"
    assert records[2][0].headers["WARC-Concurrent-To"] == response.headers["WARC-Record-ID"]


def test_digests_are_those_of_the_bytes() -> None:
    for record in ArchiveIterator(io.BytesIO(written()), parse_http=False):
        assert record.verify_block_digest()
    for record in ArchiveIterator(io.BytesIO(written()), parse_http=True):
        if record.headers["WARC-Type"] == "response":
            assert record.verify_payload_digest()


def test_the_same_records_are_the_same_bytes() -> None:
    assert written() == written()
