"""WARC, WET and ARC records to rows: what is a document, its address, date, type and charset, its body decoded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ingest.charset import decode_page, decode_text
from ingest.dates import as_date
from ingest.http_body import BadBody, decode_body
from ingest.packing import open_input
from ingest.records import Drop, Gatherer, Records
from ingest.units import Piece
from ingest.warc_frames import Broken, Placed, frames
from ingest.warc_split import ARC_START, WARC_BEGIN

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
TEXT_TYPES = frozenset({"text/plain"})
MIME = re.compile(r"\s*([a-zA-Z0-9!#$&^_.+-]+/[a-zA-Z0-9!#$&^_.+-]+)")
CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.\-]+)", re.IGNORECASE)
STATUS = re.compile(rb"HTTP/[\d.]+[ \t]+(\d{3})\b")
HEAD_END = re.compile(rb"\r?\n\r?\n")
HEADERS = {
    name: re.compile(rb"\n" + name.encode() + rb"[ \t]*:([^\r\n]*)", re.IGNORECASE)
    for name in ("content-type", "content-encoding", "transfer-encoding")
}
MAX_HTTP_HEAD = 1 << 20
DOCUMENT_STATUSES = range(200, 204)  # 204 and 205 have no body, 206 a part of one


def read_warc(piece: Piece, gatherer: Gatherer) -> Iterator[Records]:
    """A row a record: documents, and with their rule the records that are none; what is damaged is lost, located."""
    limit = gatherer.source.max_record_bytes
    with open_input(piece.path) as file:
        for frame in frames(file, piece, limit):
            if isinstance(frame, Broken):
                place = f"{piece.path}@{frame.start}-{frame.end}"
                gatherer.lose(place, frame.error, frame.message, frame.end - frame.start)
            else:
                _add(piece, frame, gatherer, limit)
            if gatherer.full and (records := gatherer.take()) is not None:
                yield records


@dataclass(frozen=True, kw_only=True)
class Named:
    """What a record's own header says of it."""

    kind: str
    source_id: str | None
    url: str | None
    date: datetime | None
    content_type: str
    payload_type: str
    truncated: str | None


def _add(piece: Piece, placed: Placed, gatherer: Gatherer, limit: int) -> None:
    record = placed.record
    place = f"{piece.path}@{placed.offset}"
    if record.block is None:
        gatherer.lose(place, "too_large", f"a record of {record.length} bytes is above max_record_bytes", record.bytes)
        return
    try:
        named = _warc_header(record.head) if record.head.startswith(WARC_BEGIN) else _arc_header(record.head)
        row = _row(named, record.block, limit, gatherer.source.keep_truncated)
    except BadBody as error:
        gatherer.lose(place, "encoding", str(error), record.bytes)
        return
    except Exception:  # the header parser raises OSError, whose words quote the bytes; other kinds cost no more
        gatherer.lose(place, "bad_record", "a record whose header cannot be parsed", record.bytes)
        return
    gatherer.add(place=place, size=record.bytes, source_id=named.source_id, url=named.url, date=named.date, **row)


def _warc_header(head: bytes) -> Named:
    from fastwarc import WarcRecord

    headers = WarcRecord.from_bytes(head).headers
    url = headers.get("WARC-Target-URI")
    return Named(
        kind=(headers.get("WARC-Type") or "unknown").strip().lower(),
        source_id=headers.get("WARC-Record-ID"),
        url=url.strip().removeprefix("<").removesuffix(">") if url else None,  # wget 1.14 writes <url>
        date=as_date(headers.get("WARC-Date")),
        content_type=headers.get("Content-Type") or "",
        payload_type=headers.get("WARC-Identified-Payload-Type") or "",
        truncated=headers.get("WARC-Truncated"),
    )


def _arc_header(head: bytes) -> Named:
    """ARC 1: "URL address date type length"; the date is YYYYMMDDhhmmss."""
    match = ARC_START.match(head)
    assert match is not None, "the splitter takes no other header"
    url = match[1].decode("utf-8", "replace")
    stamp = match[3].decode("ascii")
    date = as_date(f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[8:10]}:{stamp[10:12]}:{stamp[12:14]}Z")
    kind = "warcinfo" if url.startswith("filedesc:") else "response"
    mime = match[4].decode("ascii", "replace")
    return Named(
        kind=kind,
        source_id=None,
        url=url,
        date=date,
        content_type="application/http",
        payload_type=mime,
        truncated=None,
    )


def _row(named: Named, block: bytes, limit: int, keep_truncated: bool) -> dict[str, Any]:
    """The rest of the row: body, type and charset, or why it is no document."""
    if named.kind == "revisit":
        return {"drop": Drop(rule="revisit")}
    if named.kind not in ("response", "resource", "conversion"):
        return {"drop": Drop(rule="not_a_response", evidence=named.kind)}
    if named.truncated and not keep_truncated:
        return {"drop": Drop(rule="truncated", evidence=named.truncated)}
    if named.kind == "response" and block.startswith(b"HTTP/"):
        return _response(named, block, limit)
    if named.kind == "response" and "http" in named.content_type and not block.strip():
        return {"drop": Drop(rule="empty")}
    return _body(block, named.content_type if named.kind != "response" else "", named.payload_type)


def _response(named: Named, block: bytes, limit: int) -> dict[str, Any]:
    status_line = STATUS.match(block)
    end = HEAD_END.search(block, 0, MAX_HTTP_HEAD)
    if status_line is None or end is None:
        raise BadBody("an HTTP response whose header cannot be parsed")
    status = int(status_line[1])
    if status not in DOCUMENT_STATUSES:
        return {"drop": Drop(rule="http_status", value=float(status), evidence=str(status))}
    head = block[: end.start()]
    content_type = _header(head, "content-type")
    told = MIME.match(named.payload_type) or MIME.match(content_type)
    if told is not None and told[1].lower() not in HTML_TYPES | TEXT_TYPES:
        return {"drop": Drop(rule="content_type", evidence=told[1].lower())}
    body = decode_body(block[end.end() :], _header(head, "transfer-encoding"), _header(head, "content-encoding"), limit)
    return _body(body, content_type, named.payload_type)


def _header(head: bytes, name: str) -> str:
    match = HEADERS[name].search(head)
    return match[1].strip().decode("latin-1") if match else ""


def _body(body: bytes, content_type: str, payload_type: str) -> dict[str, Any]:
    if not body.strip():
        return {"drop": Drop(rule="empty")}
    told = MIME.match(payload_type) or MIME.match(content_type)
    mime = told[1].lower() if told else _sniff(body)
    charset = CHARSET.search(content_type)
    label = charset[1] if charset else None
    if mime in HTML_TYPES:
        return {"content": body, "content_type": mime, "charset": label}
    if mime in TEXT_TYPES:
        text = decode_page(body, label) if label else decode_text(body)
        if text is None:
            raise BadBody("no charset fits the bytes")
        return {"text": text, "content_type": mime, "charset": label}
    return {"drop": Drop(rule="content_type", evidence=mime)}


def _sniff(body: bytes) -> str:
    from resiliparse.parse.encoding import detect_mime

    return str(detect_mime(body[:65536]))
