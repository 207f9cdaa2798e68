"""Url against datatrove 0.10's URLFilter on made URLs: where both must agree, and the differences that we want.

Differences, all ours by intent: datatrove compares hosts and words with their case, looks a host up only as itself and
as its registered domain, compares whole URLs with their scheme, and does not percent-decode.
"""

from __future__ import annotations

import gzip
import itertools
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from filters.url import Url

RULES = {"domain": "domain", "subdomain": "domain", "url": "url", "hard_blacklisted": "word"} | {
    "soft_blacklisted": "soft_words",
    "blacklisted_subword": "subword",
}


def peer(domains: list[str], words: list[str], soft: list[str], parts: list[str]) -> Any:
    import_module("ahocorasick")  # datatrove's URLFilter needs it; the bench extra brings both
    tldextract = import_module("tldextract")
    from datatrove.pipeline.filters.url_filter import URLFilter

    found = URLFilter(
        extra_domains=domains,
        banned_words=words,
        soft_banned_words=soft,
        banned_subwords=parts,
        use_integrated_lists=False,
    )
    found.tldextractor = tldextract.TLDExtract(suffix_list_urls=())  # it would ask the network
    return found


def lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.strip()]


@pytest.mark.filterwarnings("ignore:The 'registered_domain' property:DeprecationWarning")
def test_rules_agree_on_made_urls(shared: Path, tmp_path: Path) -> None:
    from datatrove.data import Document

    folder = shared / "lists"
    names = ("datatrove_banned_words.txt", "datatrove_soft_banned_words.txt", "datatrove_banned_subwords.txt")
    words, soft, parts = (lines(folder / name) for name in names)
    domains = ["evil.org", "bad.co.uk", "one.two.example.com"]
    theirs = peer(domains, words, soft, parts)
    hosts = ["evil.org", "www.evil.org", "good.org", "bad.co.uk", "x.bad.co.uk", "one.two.example.com", "example.com"]
    tails = ["", "/", "/index.html", "/a-b_c/d?e=f"]
    tails += [f"/{word.replace(' ', '-')}" for word in [*words[::5], *soft[::5], *parts[::5]]]
    tails += [f"/x{a}/{b}-{a}/y" for a, b in itertools.pairwise(soft[::3])]
    urls = [f"https://{host}{tail}" for host in hosts for tail in tails]
    with gzip.open(folder / "ut1_urls_sample5k.txt.gz", "rt") as file:
        # What the two read alike: small letters, ASCII, nothing percent-encoded.
        urls += [f"http://{line.strip().lower()}" for line in file if line.isascii() and "%" not in line]
    (tmp_path / "domains").write_text("\n".join(domains))
    paths = [str(folder / name) for name in names]
    step = Url(
        block_domains=str(tmp_path / "domains"),
        block_words=paths[0],
        block_soft_words=paths[1],
        block_subwords=paths[2],
    )
    judged = step(pa.record_batch({"url": urls}))
    mine = dict(zip(judged.drops["row"].to_pylist(), judged.drops["rule"].to_pylist(), strict=True))
    for row, url in enumerate(urls):
        answer = theirs.filter(Document(text="x", id="0", metadata={"url": url}))
        wanted = None if answer is True else RULES[answer[1]]
        assert mine.get(row) == wanted, url
