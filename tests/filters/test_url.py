"""Url: what an entry covers, how URLs and lists may be written, and lists that cannot be read."""

from __future__ import annotations

import gzip
import pickle
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filters.url import SIGNALS, Url
from filters.url_lists import ListError, hosts, subwords
from filters.url_words import find_subword
from shards.step import Step


@pytest.fixture
def lists(tmp_path: Path) -> Any:
    def write(text: str, name: str = "list.txt") -> str:
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return str(path)

    return write


def rule(step: Url, url: str | None) -> tuple[str, str | None] | None:
    """(rule, evidence) of the drop of one URL; None where it is kept."""
    judged = step(pa.record_batch({"url": pa.array([url], pa.string())}))
    assert judged.kept.num_rows + judged.drops.num_rows == 1
    return next(((row["rule"], row["evidence"]) for row in judged.drops.to_pylist()), None)


def test_it_is_a_step(lists: Any) -> None:
    step = Url(block_domains=lists("evil.org"))
    assert isinstance(step, Step)
    assert pickle.loads(pickle.dumps(step)) == step
    assert step.files() == step.block_domains


@pytest.mark.parametrize(
    "url",
    [
        "http://evil.org",
        "https://EVIL.org/path",
        "https://a.b.evil.org/?q",
        "evil.org/path",
        "//evil.org",
        "http://evil.org./x",
        "http://evil.org:8080/x",
        "http://user:pass@evil.org/x",
        "http://good.org@evil.org",
        "  http://evil.org\n",
        "http:\\\\evil.org\\x",
        "http://%65vil.org/",
        "HTTP://Www.Evil.Org#x",
    ],
)
def test_an_entry_covers_its_host_and_all_below(lists: Any, url: str) -> None:
    assert rule(Url(block_domains=lists("evil.org")), url) == ("domain", "evil.org")


@pytest.mark.parametrize(
    "url",
    [
        "http://notevil.org/",
        "http://evil.org.example/",
        "http://org/",
        "http://good.org/evil.org",
        "http://good.org/?u=http://evil.org",
        "http://evil.org@good.org/",
        "http://evil-org/",
        "",
        None,
        "no url at all",
    ],
)
def test_nothing_else_is_covered(lists: Any, url: str | None) -> None:
    assert rule(Url(block_domains=lists("evil.org")), url) is None


def test_deeper_entries_and_hosts_of_other_alphabets(lists: Any) -> None:
    step = Url(block_domains=lists("bad.example.com\nb\u00fccher.example\nxn--p1ai\n[2001:db8::1]\n198.51.100.7"))
    assert rule(step, "https://a.bad.example.com/") == ("domain", "bad.example.com")
    assert rule(step, "https://example.com/") is None
    for url in ("http://B\u00dcCHER.example/", "http://www.xn--bcher-kva.example", "http://b%C3%BCcher.example/"):
        assert rule(step, url) == ("domain", "xn--bcher-kva.example")
    assert rule(step, "http://\u043f\u0440\u0438\u043c\u0435\u0440.\u0440\u0444/") == ("domain", "xn--p1ai")
    assert rule(step, "http://[2001:DB8::1]:80/") == ("domain", "2001:db8::1")
    assert rule(step, "http://198.51.100.7:80/") == ("domain", "198.51.100.7")


def test_lists_as_people_write_them(lists: Any) -> None:
    text = "\ufeff# comment\r\n\r\n  Evil.ORG  \r\n*.wild.example # why\n0.0.0.0 hosts.example\n.dot.example\nhttp://u.example/\n"
    for name in ("list.txt", "list.txt.gz"):
        step = Url(block_domains=lists(text, name))
        for host in ("evil.org", "a.wild.example", "hosts.example", "dot.example", "u.example"):
            assert rule(step, f"http://{host}/") == ("domain", host.removeprefix("a."))
        assert rule(step, "http://comment/") is None
    assert rule(Url(block_domains=lists("\n\n#\n")), "http://evil.org") is None


def test_no_network_is_asked(lists: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", lambda *a, **k: pytest.fail("a socket was opened"))
    assert rule(Url(block_domains=lists("evil.org")), "http://evil.org") == ("domain", "evil.org")


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://A.example/b/C?d=1", True),
        ("http://a.example:80/b/C?d=1#top", True),
        ("http://a.example/b/C?d=1/", True),
        ("http://a.example/b/c?d=1", False),
        ("http://a.example/b/C", False),
        ("http://www.a.example/b/C?d=1", False),
        ("http://plain.example", True),
        ("http://plain.example/", True),
        ("http://plain.example/x", False),
    ],
)
def test_whole_urls(lists: Any, url: str, found: bool) -> None:
    step = Url(block_urls=lists("a.example/b/C?d=1\nhttps://plain.example/\n"))
    assert rule(step, url) == (("url", None) if found else None)


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("http://a.example/PORN/1", "porn"),
        ("http://a.example/x?porn=1", "porn"),
        ("http://porn.example/", "porn"),
        ("http://a.example/%50orn", "porn"),
        ("http://a.example/x%20porn%20y", "porn"),
        ("http://a.example/pornography", None),
        ("http://a.example/xporn", None),
        ("http://a.example/%D0%9F%D0%9E%D0%A0%D0%9D%D0%9E/", "\u043f\u043e\u0440\u043d\u043e"),
        ("http://a.example/2-girls", None),
        ("http://a.example/2GIRLS", "2girls"),
    ],
)
def test_words_stand_alone_in_any_case(lists: Any, url: str, word: str | None) -> None:
    step = Url(block_words=lists("porn\n\u041f\u043e\u0440\u043d\u043e\n2 girls\n"))
    assert rule(step, url) == (("word", word) if word else None)


def test_soft_words_are_counted_once_each(lists: Any) -> None:
    step = Url(block_soft_words=lists("hot\ncold\nwarm"))
    assert rule(step, "http://a.example/hot/HOT/hot") is None
    assert rule(step, "http://a.example/hot/cold") == ("soft_words", None)
    judged = step(pa.record_batch({"url": ["http://a.example/hot-cold-warm"]}))
    assert (judged.drops["value"][0].as_py(), judged.drops["threshold"][0].as_py()) == (3.0, 2.0)
    assert rule(Url(block_soft_words=step.block_soft_words, min_soft_words=3), "http://a.example/hot/cold") is None
    assert rule(Url(block_soft_words=step.block_soft_words, min_soft_words=1), "http://a.example/hot") is not None


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("http://a.example/xxbadwordxx", "badword"),
        ("http://a.example/BAD-word", "badword"),
        ("http://a.example/abcbd", "bcb"),
        ("http://a.example/bad-wor", None),
        ("http://a.example/ab", None),
    ],
)
def test_subwords_are_found_anywhere(lists: Any, url: str, word: str | None) -> None:
    assert rule(Url(block_subwords=lists("bad word\nbcb\nabcx")), url) == (("subword", word) if word else None)


@settings(deadline=None)
@given(st.lists(st.text("abc", min_size=1, max_size=5), max_size=8), st.text("abcd", max_size=20))
def test_the_automaton_finds_what_a_search_finds(tmp_path_factory: Any, words: list[str], text: str) -> None:
    path = tmp_path_factory.mktemp("words") / "list"
    path.write_text("\n".join(words))
    found = subwords([str(path)])
    data = np.frombuffer(text.encode(), np.uint8)
    number = find_subword(data, len(data), found.classes, found.moves, found.found)
    assert (number >= 0) == any(word in text for word in words)
    assert number < 0 or found.texts[number] in text


def test_an_allowed_host_is_touched_by_no_list(lists: Any) -> None:
    step = Url(
        block_domains=lists("blogspot.com"),
        block_words=lists("porn", "words.txt"),
        allow_domains=lists("good.blogspot.com", "allow.txt"),
    )
    assert rule(step, "http://x.blogspot.com/") == ("domain", "blogspot.com")
    assert rule(step, "http://a.good.blogspot.com/porn") is None


def test_rules_come_in_order_and_all_are_told(lists: Any) -> None:
    step = Url(block_domains=lists("evil.org"), block_words=lists("porn", "w"), block_subwords=lists("orn", "s"))
    judged = step(pa.record_batch({"url": ["http://evil.org/porn", "http://ok.org/", "http://ok.org/popcorn"]}))
    assert judged.drops["rules"].to_pylist() == [["domain", "word", "subword"], ["subword"]]
    assert judged.drops["row"].to_pylist() == [0, 2]
    assert judged.kept_rows.tolist() == [1]
    assert judged.signals is not None
    assert judged.signals.schema == SIGNALS


def test_without_a_url_column_all_is_kept(lists: Any) -> None:
    judged = Url(block_domains=lists("evil.org"))(pa.record_batch({"text": ["a", "b"]}))
    assert judged.kept.num_rows == 2
    nulls = pa.record_batch({"url": pa.nulls(2)})
    assert Url(block_domains=lists("evil.org"))(nulls).kept.num_rows == 2


def test_a_missing_list_is_named(tmp_path: Path, lists: Any) -> None:
    path = str(tmp_path / "none.txt")
    with pytest.raises(ValueError, match=r"none\.txt: no such list; give the path of a text file"):
        Url(block_domains=path)
    step = Url(block_domains=lists("evil.org"))
    Path(step.block_domains[0]).unlink()
    with pytest.raises(ListError, match=r"list\.txt: no such list"):
        step(pa.record_batch({"url": ["http://evil.org"]}))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("cut.gz", gzip.compress(b"evil.org\n" * 9999, mtime=0)[:40], r"cut\.gz: cannot read the list"),
        (
            "urls",
            b"good.org\n\nevil.org/path\n",
            r"urls:3: 'evil.org/path' is no host; lists of URLs belong to block_urls",
        ),
        ("mail", b"@\n", r"mail:1: '@' is no host"),
    ],
)
def test_a_bad_list_is_one_line(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ListError, match=message):
        Url(block_domains=str(tmp_path / name))(pa.record_batch({"url": ["http://a.example"]}))


def test_an_edited_list_is_read_again(lists: Any) -> None:
    step = Url(block_domains=lists("evil.org"))
    assert rule(step, "http://other.org/") is None
    lists("evil.org\nother.org")
    assert rule(step, "http://other.org/") == ("domain", "other.org")


def test_a_million_hosts_take_eight_bytes_each(tmp_path: Path) -> None:
    path = tmp_path / "million"
    path.write_text("\n".join(f"host{i}.example" for i in range(1_000_000)))
    started = time.process_time()
    table = hosts([str(path)])
    assert time.process_time() - started < 5  # 0.5 s where this was written
    assert table.nbytes == 8_000_000
    assert rule(Url(block_domains=str(path)), "http://a.host999999.example/") == ("domain", "host999999.example")


@settings(deadline=None)
@given(st.lists(st.text() | st.sampled_from(["http://[", "//", "http://@:", "%", "a%f", "http://\u3002", "://"])))
def test_any_url_gets_an_answer(tmp_path_factory: Any, urls: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "every.txt"
    path.write_text("evil.org\nbad\n\u043f\u043e\u0440\u043d\u043e\n")
    every = str(path)
    step = Url(block_domains=every, block_urls=every, block_words=every, block_soft_words=every, block_subwords=every)
    signals = step.measure(urls)
    assert signals.num_rows == len(urls)
    for url, row in zip(urls, signals.to_pylist(), strict=True):
        assert step.measure([url]).to_pylist() == [row]


def test_real_lists_find_all_of_themselves(shared: Path) -> None:
    folder = shared / "lists"
    domains, urls = folder / "ut1_domains_sample30k.txt.gz", folder / "ut1_urls_sample5k.txt.gz"
    with gzip.open(domains, "rt") as file:
        listed = file.read().split()
    step = Url(block_domains=str(domains))
    judged = step(pa.record_batch({"url": [f"https://www.{host.upper()}:443/index.html" for host in listed]}))
    assert judged.drops.num_rows == len(listed)
    with gzip.open(urls, "rt") as file:
        pages = [line.strip() for line in file if line.strip()]
    judged = Url(block_urls=str(urls))(pa.record_batch({"url": [f"http://{page}" for page in pages]}))
    assert judged.drops.num_rows == len(pages)


def test_golden_counts_of_the_fineweb_words(shared: Path) -> None:
    folder = shared / "lists"
    with gzip.open(folder / "ut1_urls_sample5k.txt.gz", "rt") as file:
        pages = [f"http://{line.strip()}" for line in file if line.strip()]
    step = Url(
        block_words=str(folder / "datatrove_banned_words.txt"),
        block_soft_words=str(folder / "datatrove_soft_banned_words.txt"),
        block_subwords=str(folder / "datatrove_banned_subwords.txt"),
    )
    judged = step(pa.record_batch({"url": pages}))
    assert Counter(judged.drops["rule"].to_pylist()) == {"word": 1242, "soft_words": 237, "subword": 109}
