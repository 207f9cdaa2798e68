"""A small polite crawler: breadth-first over the links of one host, bounded in pages, bytes and time, into a WARC.

It asks robots.txt first, keeps one connection, and takes links in the order in which a page shows them, so the same
site is crawled in the same order each time.
"""

from __future__ import annotations

import http.client
import os
import time
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.robotparser import RobotFileParser

import lxml.html

from demo.warc import Exchange, WarcWriter

AGENT = "gristmill-demo/1"


@dataclass(frozen=True, kw_only=True)
class CrawlSettings:
    """Bounds of a crawl; whichever is met first ends it.

    host: the name in the pages' addresses. The connection goes to a loopback port, which differs in each run and must
        not become part of a document's address.
    max_page_bytes: what is longer is cut there and marked as truncated.
    timeout_s: of one answer. max_seconds: of the whole crawl; wide, since a crawl that it ends depends on load.
    """

    host: str = "pydoc.localhost"
    max_pages: int = 600
    max_bytes: int = 64 << 20
    max_page_bytes: int = 512 << 10
    timeout_s: float = 20
    max_seconds: float = 90


@dataclass(frozen=True, kw_only=True)
class CrawlResult:
    """What was fetched: pages by HTTP status, body bytes, and addresses that gave no answer."""

    statuses: dict[int, int]
    bytes: int
    unanswered: int


def crawl(port: int, out: Path, *, date: datetime, settings: CrawlSettings | None = None) -> CrawlResult:
    """Crawl the site at a loopback port from its root into the WARC file `out`, which appears when it is complete."""
    settings = settings or CrawlSettings()
    half = out.with_name(out.name + ".part")
    with half.open("wb") as file:
        writer = WarcWriter(file, date=date)
        fields = [("software", AGENT), ("format", "WARC File Format 1.1"), ("robots", "obey")]
        writer.write_info(out.name, fields)
        result = _Crawl(port, writer, settings).run()
    os.replace(half, out)
    return result


class _Crawl:
    def __init__(self, port: int, writer: WarcWriter, settings: CrawlSettings) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=settings.timeout_s)
        self._writer = writer
        self._settings = settings
        self._statuses: dict[int, int] = {}
        self._bytes = 0
        self._unanswered = 0

    def run(self) -> CrawlResult:
        root = f"http://{self._settings.host}/"
        robots = self._robots(root + "robots.txt")
        waiting, seen = deque([root]), {root}
        ends = time.monotonic() + self._settings.max_seconds
        while waiting and self._within_bounds() and time.monotonic() < ends:
            url = waiting.popleft()
            exchange = self._fetch(url)
            if exchange is None:
                continue
            for link in _links(exchange):
                if link not in seen and link.startswith(root) and robots.can_fetch(AGENT, link):
                    seen.add(link)
                    waiting.append(link)
        self._connection.close()
        return CrawlResult(statuses=self._statuses, bytes=self._bytes, unanswered=self._unanswered)

    def _within_bounds(self) -> bool:
        return sum(self._statuses.values()) < self._settings.max_pages and self._bytes < self._settings.max_bytes

    def _robots(self, url: str) -> RobotFileParser:
        rules = RobotFileParser(url)
        exchange = self._fetch(url)
        found = exchange is not None and exchange.status.startswith("200")
        rules.parse(exchange.body.decode("utf-8", "replace").splitlines() if exchange is not None and found else [])
        return rules

    def _fetch(self, url: str) -> Exchange | None:
        """One exchange, written to the WARC; None where no answer came."""
        path = urlsplit(url).path
        headers = {"Host": self._settings.host, "User-Agent": AGENT, "Accept": "text/html"}
        try:
            self._connection.request("GET", path, headers=headers)
            response = self._connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()  # http.client opens it anew at the next request
            self._unanswered += 1
            return None
        sent = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        cut = body[: self._settings.max_page_bytes]
        exchange = Exchange(
            url=url,
            request=f"GET {path} HTTP/1.1\r\n{sent}\r\n".encode(),
            status=f"{response.status} {response.reason}",
            headers=response.getheaders(),
            body=cut,
            truncated=len(cut) < len(body),
        )
        self._writer.write_exchange(exchange)
        self._statuses[response.status] = self._statuses.get(response.status, 0) + 1
        self._bytes += len(cut)
        return exchange


def _links(exchange: Exchange) -> list[str]:
    """The http addresses that an answer leads to, absolute and without fragments, in order."""
    headers = {name.lower(): value for name, value in exchange.headers}
    if "location" in headers:
        target = _absolute(exchange.url, headers["location"])
        return [] if target is None else [target]
    if not headers.get("content-type", "").startswith("text/html"):
        return []
    if not exchange.body.strip():
        return []
    page = lxml.html.document_fromstring(exchange.body.decode("utf-8", "replace"))
    links = [_absolute(exchange.url, anchor.get("href")) for anchor in page.iter("a") if anchor.get("href")]
    return [link for link in links if link is not None and link.startswith("http://")]


def _absolute(base: str, href: str) -> str | None:
    try:
        return urldefrag(urljoin(base, href)).url
    except ValueError:  # not every href is an address: "http://[host" is in the documentation of urllib
        return None
