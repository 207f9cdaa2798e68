"""Bytes to text: which charset a page is in, and decoding that never invents one where UTF-8 proves itself.

Order for pages: byte-order mark; UTF-8 where the bytes are valid UTF-8 with at least one multi-byte character (a
declaration cannot outweigh that: text in another charset passes for UTF-8 with a probability that halves with each
such character), or nearly so; the HTTP header's charset if the bytes decode by it; the `meta` declaration likewise;
detection (resiliparse); windows-1252. Labels are read as the WHATWG encoding standard reads them (latin1 is
windows-1252).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

META_BYTES = 4096  # HTML asks for the declaration in the first 1,024 bytes; pages put scripts before it
META = re.compile(rb"<meta[^>]+?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.\-]+)", re.IGNORECASE)
XML = re.compile(rb"^\s*<\?xml[^>]+?encoding\s*=\s*[\"']([a-zA-Z0-9_:.\-]+)", re.IGNORECASE)
PEP263 = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)")
BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
FALLBACK = "cp1252"
HANGUL_SHARE = 0.85
MIN_HANGUL = 6


def decode_page(data: bytes, header: str | None = None) -> str:
    """An HTML page's text. Always answers; bytes that fit no charset become U+FFFD."""
    for bom, name in BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(name, "replace")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        pass
    else:
        # Pure ASCII may still be an escape-coded charset; nothing else hides in it.
        if len(text) != len(data) or b"\x1b" not in data:
            return text
    if (nearly := _nearly_utf8(data)) is not None:
        return nearly
    for name in _declared(data, header):
        if (decoded := _strict(data, name)) is not None:
            return decoded
    return _guess(data)


def _declared(data: bytes, header: str | None) -> Iterator[str]:
    if header:
        yield header
    for pattern in (XML, META):
        if match := pattern.search(data, 0, META_BYTES):
            yield match[1].decode("ascii")


def _strict(data: bytes, label: str) -> str | None:
    name = codec_name(label)
    if name is None or name == "utf-8":
        return None
    try:
        return data.decode(name)
    except UnicodeDecodeError as error:
        # One stray byte in a long page of a declared multi-byte charset does not refute the declaration.
        if name in MULTIBYTE and error.start > 1024:
            text = data.decode(name, "replace")
            if text.count("\ufffd") * 1000 < len(text):
                return text
        return None
    except LookupError:
        return None


MULTIBYTE = frozenset({"cp932", "euc_jp", "gb18030", "big5hkscs", "cp949", "iso2022_jp"})
CODECS = {
    "windows-1252": "cp1252",
    "windows-874": "cp874",
    "iso-8859-8-i": "iso8859_8",
    "shift_jis": "cp932",
    "gbk": "gb18030",
    "gb2312": "gb18030",
    "big5": "big5hkscs",
    "euc-kr": "cp949",
    "euc-jp": "euc_jp",
    "iso-2022-jp": "iso2022_jp",
    "x-mac-cyrillic": "mac_cyrillic",
    "macintosh": "mac_roman",
    "x-user-defined": "cp1252",
}


NO_CHARSETS = frozenset({"undefined", "unicode-escape", "raw-unicode-escape", "idna", "punycode", "utf-7"})
"""Python's codecs that no document is in; some give lone surrogates, which no UTF-8 can hold. Browsers refuse UTF-7."""


def codec_name(label: str) -> str | None:
    """Python's codec for a charset label as browsers read it, or None."""
    from resiliparse.parse.encoding import map_encoding_to_html5

    plain = label.strip().lower()
    known: str = map_encoding_to_html5(plain, fallback_utf8=False) or plain
    name = CODECS.get(known, known)
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    # Codecs such as rot13 or zlib are no charsets.
    return found.name if getattr(found, "_is_text_encoding", True) and found.name not in NO_CHARSETS else None


def _guess(data: bytes) -> str:
    name = _detected(data)
    if name is not None:
        try:
            return data.decode(name)
        except UnicodeDecodeError:
            pass
    text = data.decode("utf-8", "replace")
    if text.count("\ufffd") * 100 < len(text):
        return text  # UTF-8 with a few broken bytes, as cut or spliced pages have
    return data.decode(name or FALLBACK, "replace")


def _detected(data: bytes) -> str | None:
    """The codec that resiliparse detects, never UTF-8 (which was tried before). It often misses Korean."""
    from resiliparse.parse.encoding import detect_encoding

    if _is_korean(data):
        return "cp949"
    label = detect_encoding(data)
    name = codec_name(label) if label else None
    # They differ in eight places: Ukrainian letters in one, box lines in the other.
    return None if name == "utf-8" else "koi8-u" if name == "koi8-r" else name


def _is_korean(data: bytes) -> bool:
    """Whether the bytes are Hangul in EUC-KR: that lies in 25 of its rows, over which other languages' bytes spread."""
    text = data[:65536].decode("euc_kr", "replace")
    wide = [letter for letter in text if letter > "\u3100"]
    hangul = sum("\uac00" <= letter <= "\ud7a3" for letter in wide)
    broken = text.count("\ufffd")
    return hangul >= max(HANGUL_SHARE * len(wide), MIN_HANGUL) and hangul > 50 * broken


def _nearly_utf8(data: bytes) -> str | None:
    """The text where ten times more characters prove UTF-8 than break it: a declared one-byte charset fits anything."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    # Each character beyond ASCII takes more bytes than characters: what is left over counts them, at least by third.
    wide = (len(data) - len(text)) // 3
    return text if wide > 10 * broken else None


def decode_text(data: bytes) -> str | None:
    """A plain text file's text: byte-order mark, UTF-8, else detection; None where nothing fits without loss."""
    for bom, name in BOMS:
        if data.startswith(bom):
            try:
                return data[len(bom) :].decode(name)
            except UnicodeDecodeError:
                return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    for candidate in (_detected(data), FALLBACK):
        if candidate is not None:
            try:
                return data.decode(candidate)
            except UnicodeDecodeError:
                continue
    return None


def decode_code(data: bytes) -> str | None:
    """A source file's text: byte-order mark, a PEP 263 line in the first two lines, UTF-8, else as plain text."""
    for line in data.split(b"\n", 2)[:2]:
        if match := PEP263.match(line):
            name = codec_name(match[1].decode("ascii"))
            if name and name != "utf-8" and not data.startswith(codecs.BOM_UTF8):
                try:
                    return data.decode(name)
                except UnicodeError:
                    break
            break
    return decode_text(data)


def is_binary(data: bytes) -> bool:
    """Whether a file is no text: a NUL in the first 8 KiB (git's rule), unless a byte-order mark explains it."""
    if any(data.startswith(bom) for bom, _ in BOMS):
        return False
    return b"\0" in data[:8192]
