"""Write WARC 1.1 records, each a gzip member of its own, the same bytes for the same records.

Source: ISO 28500:2017 (WARC 1.1). Digests are SHA-1 in base 32, as crawlers write them.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO

Headers = list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One HTTP request and what came back; `truncated` says that the body was cut at the crawler's limit."""

    url: str
    request: bytes
    status: str
    headers: Headers
    body: bytes
    truncated: bool = False


class WarcWriter:
    """Writes warcinfo, request and response records to an open binary file.

    date: WARC-Date of all records, UTC, to the second. Record ids are UUIDs derived from what they name (RFC 9562,
    version 5), so that the same crawl gives the same file.
    """

    def __init__(self, out: BinaryIO, *, date: datetime) -> None:
        self._out = out
        self._date = date.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def write_info(self, filename: str, fields: Headers) -> None:
        """The record that says who made the file."""
        headers = [("WARC-Filename", filename), ("Content-Type", "application/warc-fields")]
        self._write("warcinfo", filename, headers, _lines(fields))

    def write_exchange(self, exchange: Exchange) -> None:
        """A response record and its request, which points to it."""
        head = f"HTTP/1.1 {exchange.status}\r\n".encode() + _lines(exchange.headers) + b"\r\n"
        target = [("WARC-Target-URI", exchange.url)]
        response = [*target, ("Content-Type", "application/http; msgtype=response")]
        response.append(("WARC-Payload-Digest", _digest(exchange.body)))
        if exchange.truncated:
            response.append(("WARC-Truncated", "length"))
        record_id = self._write("response", exchange.url, response, head + exchange.body)
        request = [*target, ("Content-Type", "application/http; msgtype=request"), ("WARC-Concurrent-To", record_id)]
        self._write("request", exchange.url, request, exchange.request)

    def _write(self, kind: str, names: str, headers: Headers, block: bytes) -> str:
        digest = _digest(block)
        record_id = f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{kind} {names} {digest}')}>"
        first = [("WARC-Type", kind), ("WARC-Record-ID", record_id), ("WARC-Date", self._date)]
        last = [("WARC-Block-Digest", digest), ("Content-Length", str(len(block)))]
        record = b"WARC/1.1\r\n" + _lines([*first, *headers, *last]) + b"\r\n" + block + b"\r\n\r\n"
        self._out.write(gzip.compress(record, compresslevel=6, mtime=0))
        return record_id


def _lines(headers: Headers) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers).encode()


def _digest(data: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()
