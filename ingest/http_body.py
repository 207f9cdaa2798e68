"""HTTP message bodies as crawlers stored them: transfer and content encodings undone, bounded, with damage told."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable

CHUNK_SIZE_LINE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
IDENTITY = frozenset({"", "identity", "none", "binary", "8bit", "7bit", "utf-8", "utf8"})


class BadBody(ValueError):
    """A body that its own headers cannot decode: the message names the encoding, never the bytes."""


def decode_body(body: bytes, transfer: str, content: str, limit: int) -> bytes:
    """The entity's bytes. Crawlers often store bodies already decoded with the headers left as they were: a body
    that does not begin as its encoding begins is taken as it is. Raises BadBody for a damaged one and one above
    `limit` bytes.
    """
    if "chunked" in transfer.lower():
        body = _dechunk(body)
    names = [name.strip().lower() for name in content.split(",")]
    for name in reversed([name for name in names if name not in IDENTITY]):
        body = _decoders().get(name, _unknown)(body, limit)
    return body


def _dechunk(body: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    while match := CHUNK_SIZE_LINE.match(body, at):
        size = int(match[1], 16)
        if size == 0:
            return b"".join(parts)
        start = match.end()
        if start + size > len(body):
            raise BadBody("chunked body ends in the middle of a chunk")
        parts.append(body[start : start + size])
        at = start + size
        while body[at : at + 1] in (b"\r", b"\n") and at < start + size + 2:
            at += 1
    if not parts:
        return body
    if at >= len(body):
        raise BadBody("chunked body ends without its last chunk")
    raise BadBody("damaged chunked body")


def _gzip(body: bytes, limit: int) -> bytes:
    if not body.startswith(b"\x1f\x8b"):
        return body
    return _inflate(body, 31, limit, "gzip")


def _deflate(body: bytes, limit: int) -> bytes:
    if _is_zlib(body):
        return _inflate(body, 15, limit, "deflate")
    if body.lstrip()[:1] == b"<":
        return body
    return _inflate(body, -15, limit, "deflate")


def _is_zlib(body: bytes) -> bool:
    return len(body) >= 2 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0


def _inflate(body: bytes, window: int, limit: int, name: str) -> bytes:
    inflater = zlib.decompressobj(window)
    try:
        out = inflater.decompress(body, limit + 1)
    except zlib.error as error:
        raise BadBody(f"damaged {name} body") from error
    if len(out) > limit:
        raise BadBody(f"{name} body unpacks to more than {limit} bytes")
    if not inflater.eof:
        raise BadBody(f"{name} body is cut off")
    return out


def _brotli(body: bytes, limit: int) -> bytes:
    import brotli  # type: ignore[import-untyped]

    decoder = brotli.Decompressor()
    parts: list[bytes] = []
    size = 0
    pending = body
    try:
        while not decoder.is_finished():
            parts.append(decoder.process(pending, output_buffer_limit=1 << 20))
            size += len(parts[-1])
            if size > limit:
                raise BadBody(f"brotli body unpacks to more than {limit} bytes")
            if not parts[-1] and decoder.can_accept_more_data():
                break
            pending = b""
    except brotli.error as error:
        if body.lstrip()[:1] == b"<":
            return body
        raise BadBody("damaged brotli body") from error
    if not decoder.is_finished():
        raise BadBody("brotli body is cut off")
    return b"".join(parts)


def _zstd(body: bytes, limit: int) -> bytes:
    if not body.startswith(b"\x28\xb5\x2f\xfd"):
        return body
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.BufferReader(body), "zstd") as stream:
            out: bytes = stream.read(limit + 1)
    except OSError as error:
        raise BadBody("damaged zstd body") from error
    if len(out) > limit:
        raise BadBody(f"zstd body unpacks to more than {limit} bytes")
    return out


def _unknown(body: bytes, limit: int) -> bytes:
    raise BadBody("content encoding that is not known")


def _decoders() -> dict[str, Callable[[bytes, int], bytes]]:
    return {
        "gzip": _gzip,
        "x-gzip": _gzip,
        "deflate": _deflate,
        "br": _brotli,
        "zstd": _zstd,
    }
