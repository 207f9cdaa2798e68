"""Which charset a page is in, with and without a declaration."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.charset import codec_name, decode_code, decode_page, decode_text

RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 3
META = b'<meta http-equiv="Content-Type" content="text/html; charset=%s">'


@pytest.mark.parametrize(
    ("data", "header", "text"),
    [
        (b"plain", None, "plain"),
        ("é".encode(), "iso-8859-1", "é"),
        ("é".encode("latin-1"), "latin1", "é"),
        ("\u20ac".encode("cp1252"), "iso-8859-1", "\u20ac"),
        (META % b"windows-1251" + RUSSIAN.encode("cp1251"), None, (META % b"windows-1251").decode() + RUSSIAN),
        (META % b"utf-8" + RUSSIAN.encode("cp1251"), "utf-8", (META % b"utf-8").decode() + RUSSIAN),
        (RUSSIAN.encode("koi8-r"), None, RUSSIAN),
        (RUSSIAN.encode("utf-16"), "utf-8", RUSSIAN),
        ("\ufeffBOM é".encode(), "cp1252", "BOM é"),
        (RUSSIAN.encode() + b"\xff", "cp1252", RUSSIAN + "\ufffd"),
        ("日本語".encode("iso2022_jp"), "iso-2022-jp", "日本語"),
        (b"x", "no-such-charset", "x"),
        (b"\xe9", "rot13", "é"),
    ],
)
def test_pages(data: bytes, header: str | None, text: str) -> None:
    assert decode_page(data, header) == text


@given(
    st.binary(max_size=200),
    st.none() | st.text(max_size=12) | st.sampled_from(["utf-16", "gbk", "big5", "hz", "utf-7"]),
)
def test_any_page_has_an_answer(data: bytes, header: str | None) -> None:
    decode_page(data, header).encode("utf-8", "replace")
    decode_text(data)
    decode_code(data)


def test_labels_are_those_of_the_web() -> None:
    assert codec_name("Latin1") == codec_name("ascii") == codec_name("windows-1252") == "cp1252"
    assert codec_name("gb2312") == codec_name("GBK") == "gb18030"
    assert codec_name("rot13") is codec_name("zip") is codec_name("") is None


@pytest.mark.parametrize(
    ("language", "charset", "share"),
    [
        ("ru", "windows-1251", 0.95),
        ("ru", "koi8-r", 0.95),
        ("uk", "koi8-u", 0.95),
        ("el", "iso-8859-7", 0.9),
        ("ja", "shift_jis", 0.95),
        ("ja", "euc-jp", 0.95),
        ("zh", "gb18030", 0.95),
        ("ko", "euc-kr", 0.95),
        ("de", "cp1252", 0.95),
        ("cs", "iso-8859-2", 0.85),
    ],
)
def test_single_sentences_are_detected(shared: Path, language: str, charset: str, share: float) -> None:
    with gzip.open(shared / "language" / "lingua_sentences.jsonl.gz", "rt", encoding="utf-8") as lines:
        sentences = [row["text"] for row in map(json.loads, lines) if row["lang"] == language][:200]
    encoded = []
    for sentence in sentences:
        try:
            encoded.append((sentence, sentence.encode(charset)))
        except UnicodeEncodeError:
            continue
    assert len(encoded) > 50
    assert sum(decode_text(data) == sentence for sentence, data in encoded) >= share * len(encoded)
