"""Redact against the expressions of datatrove 0.10's PIIFormatter on real texts.

Nothing is found by us alone but IPv6. Found by datatrove alone, by intent: hosts that are not in the DNS root
(`rh@smds.UUCP`), repositories (`git@host:path`), and what is no address of a machine: versions, section numbers,
object identifiers.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from filters.redaction import redact

NO_ADDRESS = re.compile(r"\.uucp\b|git@", re.IGNORECASE)


@pytest.mark.parametrize(
    ("name", "ours_alone", "theirs_alone", "ipv4_alone"),
    [
        ("encyclopedia_en", 0, 2, 3),
        ("faq_en", 0, 2, 4),
        ("math_en", 0, 0, 0),
        ("techdoc_en", 0, 0, 304),
        ("code_python", 0, 0, 7),
    ],
)
def test_what_each_finds_alone(shared: Path, name: str, ours_alone: int, theirs_alone: int, ipv4_alone: int) -> None:
    from datatrove.pipeline.formatters.pii import PIIFormatter

    peer = PIIFormatter()
    with gzip.open(shared / f"text/{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    mails, theirs = set(), set()
    addresses, their_addresses = set(), set()
    for number, (text, spans) in enumerate(zip(texts, redact(texts)["spans"].to_pylist(), strict=True)):
        for span in spans:
            value = text[span["start"] : span["end"]]
            if span["kind"] == "email":
                mails.add((number, span["start"] + value.index("@")))
            elif "::" not in value:
                addresses.add((number, span["start"]))
        for sign in re.finditer("@", text):
            # Their expression takes quadratic time on a whole text, so it gets the neighbourhood of each sign.
            start = max(0, sign.start() - 100)
            for match in peer.emails_replacer.regex.finditer(text[start : sign.end() + 100]):
                theirs.add((number, start + match.start() + match[0].index("@")))
        validator = peer.ip_replacer.validator
        assert validator is not None
        matches = peer.ip_replacer.regex.finditer(text)
        their_addresses |= {(number, match.start()) for match in matches if validator(match[0])}
    assert (len(mails - theirs), len(theirs - mails)) == (ours_alone, theirs_alone)
    for number, at in theirs - mails:
        assert NO_ADDRESS.search(texts[number][at - 10 : at + 30])
    assert (len(addresses - their_addresses), len(their_addresses - addresses)) == (0, ipv4_alone)
