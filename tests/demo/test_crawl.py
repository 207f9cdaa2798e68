"""The crawler against small sites on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from fastwarc.warc import ArchiveIterator

from demo.crawl import AGENT, CrawlSettings, crawl
from demo.server import serving

DATE = datetime(2026, 1, 1, tzinfo=UTC)
SITE = {
    "/": '<a href="b.html">b</a> <a href="a.html#top">a</a> <a href="private/x.html">x</a>',
    "/a.html": '<a href="c.html">c</a> <a href="http://elsewhere.invalid/">e</a> <a href="http://[">bad</a>',
    "/b.html": '<a href="/a.html">a</a> <a href="gone.html">gone</a> <a href="mailto:x@example.org">m</a> <a>no</a>',
    "/c.html": "",
    "/robots.txt": f"User-agent: {AGENT.split('/')[0]}\nDisallow: /private/\n",
}


@contextmanager
def site(pages: dict[str, str]) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/breaks.html":
                self.close_connection = True
                return
            body = pages.get(self.path, "gone").encode()
            self.send_response_only(200 if self.path in pages else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def fetched(path: Path) -> list[str]:
    with path.open("rb") as file:
        records = [record.headers for record in ArchiveIterator(file, parse_http=False)]
    return [headers["WARC-Target-URI"] for headers in records if headers["WARC-Type"] == "response"]


def test_breadth_first_in_the_order_of_links_within_the_host_and_robots(tmp_path: Path) -> None:
    with site(SITE) as port:
        result = crawl(port, tmp_path / "a.warc.gz", date=DATE)
    names = [url.removeprefix("http://pydoc.localhost") for url in fetched(tmp_path / "a.warc.gz")]
    assert names == ["/robots.txt", "/", "/b.html", "/a.html", "/gone.html", "/c.html"]
    assert result.statuses == {200: 5, 404: 1}
    assert result.unanswered == 0


def test_pages_and_bytes_are_bounded(tmp_path: Path) -> None:
    with site(SITE) as port:
        few = crawl(port, tmp_path / "few.warc.gz", date=DATE, settings=CrawlSettings(max_pages=3))
        short = crawl(port, tmp_path / "short.warc.gz", date=DATE, settings=CrawlSettings(max_bytes=100))
        cut = crawl(port, tmp_path / "cut.warc.gz", date=DATE, settings=CrawlSettings(max_page_bytes=50))
        late = crawl(port, tmp_path / "late.warc.gz", date=DATE, settings=CrawlSettings(max_seconds=0))
    assert sum(few.statuses.values()) == 3
    assert short.bytes < 100 + max(map(len, SITE.values()))
    assert sum(late.statuses.values()) == 1
    assert cut.bytes < few.bytes + short.bytes
    with (tmp_path / "cut.warc.gz").open("rb") as file:
        truncated = [record.headers.get("WARC-Truncated") for record in ArchiveIterator(file, parse_http=False)]
    assert "length" in truncated


def test_an_address_without_an_answer_is_counted_and_the_crawl_goes_on(tmp_path: Path) -> None:
    pages = {"/": '<a href="breaks.html">1</a> <a href="a.html">2</a>', "/a.html": "fine"}
    with site(pages) as port:
        result = crawl(port, tmp_path / "a.warc.gz", date=DATE)
    assert result.unanswered == 1
    assert "http://pydoc.localhost/a.html" in fetched(tmp_path / "a.warc.gz")


def test_the_documentation_is_the_same_bytes_in_each_crawl(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with serving() as port:
            result = crawl(port, tmp_path / name, date=DATE, settings=CrawlSettings(max_pages=40))
        assert result.unanswered == 0
    # The file's name is in its first record only.
    assert fetched(tmp_path / "one") == fetched(tmp_path / "two")
    assert bodies(tmp_path / "one") == bodies(tmp_path / "two")


def bodies(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        return [record.reader.read() for record in ArchiveIterator(file) if record.headers["WARC-Type"] != "warcinfo"]
