"""Files that are one document each: pages, text, markdown, code."""

from __future__ import annotations

from collections.abc import Iterator

from ingest.charset import decode_code, decode_text, is_binary
from ingest.packing import Unpacked, open_input
from ingest.records import Drop, Gatherer, Records
from ingest.units import Piece

PACKED_SUFFIXES = (".gz", ".zst")


def read_file(piece: Piece, gatherer: Gatherer) -> Iterator[Records]:
    """One row: source_id is the path below the glob's root, url and date are unknown."""
    source = gatherer.source
    with open_input(piece.path) as file:
        unpacked = Unpacked(file)
        parts: list[bytes] = []
        size = 0
        for chunk in unpacked:
            size += len(chunk)
            if size > source.max_record_bytes:
                break
            parts.append(chunk)
    place = f"{piece.path}@0-{piece.bytes}"
    if size > source.max_record_bytes:
        gatherer.lose(place, "too_large", f"a file above max_record_bytes ({source.max_record_bytes})", piece.bytes)
    elif unpacked.damage is not None:
        place = f"{piece.path}@{unpacked.damage.offset}-{piece.bytes}"
        gatherer.lose(place, unpacked.damage.error, unpacked.damage.message, piece.bytes)
    else:
        _add(piece, b"".join(parts), gatherer, unpacked.packing)
    if gatherer.full and (records := gatherer.take()) is not None:
        yield records


def _add(piece: Piece, data: bytes, gatherer: Gatherer, packing: str) -> None:
    kind = gatherer.source.format
    name, place = piece.name, f"{piece.path}@0-{piece.bytes}"
    if packing != "none":
        name = next((name[: -len(s)] for s in PACKED_SUFFIXES if name.lower().endswith(s)), name)
    if not data.strip():
        gatherer.add(place=place, size=len(data), source_id=name, drop=Drop(rule="empty"))
    elif kind == "html":
        gatherer.add(place=place, size=len(data), source_id=name, content=data, content_type="text/html")
    elif is_binary(data):
        gatherer.add(place=place, size=len(data), source_id=name, drop=Drop(rule="not_text"))
    else:
        text = decode_code(data) if kind == "code" else decode_text(data)
        if text is None:
            gatherer.lose(place, "encoding", "no charset fits the bytes", len(data))
        else:
            gatherer.add(place=place, size=len(data), source_id=name, text=text)
