"""The documentation site: what is a page, what is refused, what fails."""

from __future__ import annotations

import re

import pytest

from demo import pages
from demo.pages import answer


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/robots.txt", 200),
        ("/index.html", 200),
        ("/stdlib.html", 200),
        ("/packages.html", 200),
        ("/topics.html", 200),
        ("/topics/with.html", 200),
        ("/topics/no-such-topic.html", 404),
        ("/textwrap.html", 200),
        ("/json.decoder.html", 200),
        ("/no_such_module.html", 404),
        ("/json.no_such_module.html", 404),
        ("/antigravity.html", 404),
        ("/this.html", 404),
        ("/unittest.__main__.html", 404),
        ("/test.support.html", 404),
        ("/.html", 404),
        ("/..%2fetc.html", 404),
        ("/textwrap", 404),
    ],
)
def test_each_path_has_one_status(path: str, status: int) -> None:
    said = answer(path)
    assert said.status == status
    assert said.body


def test_the_root_and_a_module_by_another_name_are_redirects() -> None:
    assert answer("/").location == "/index.html"
    said = answer("/os.path.html")
    assert (said.status, said.location) in {(301, "/posixpath.html"), (301, "/ntpath.html")}


def test_a_module_that_fails_to_import_is_a_server_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> object:
        raise SystemExit(f"{name} ends the process")

    monkeypatch.setattr("pydoc.safeimport", fails)
    assert answer("/textwrap.html").status == 500


def test_addresses_in_memory_are_hidden_and_other_numbers_stay() -> None:
    shown = "default=&lt;object object at 0x7f8158e6c160&gt;, mask=0x7f8158e6c160, f&nbsp;at&nbsp;0x7f8158e6c160&gt;"
    assert pages.ADDRESS.sub("", shown) == "default=&lt;object object&gt;, mask=0x7f8158e6c160, f&gt;"
    assert not re.search(rb"(?: |&nbsp;)at(?: |&nbsp;)0x", answer("/textwrap.html").body)


def test_the_lists_hold_what_people_import_and_nothing_unsafe() -> None:
    library = pages.standard_library()
    assert {"json", "heapq", "textwrap"} <= set(library)
    assert not pages.UNSAFE.intersection(library)
    packages = pages.installed_packages()
    assert {"numpy", "pyarrow"} <= set(packages)
    assert not {"shards", "jobs", "text"}.intersection(packages)
    assert library == sorted(library)
    assert packages == sorted(packages)


def test_a_topic_is_headings_paragraphs_and_verbatim_blocks() -> None:
    text = "The title\n*********\n\nOne line\nand <another>.\n\n   code(\n      x)\n\n- item one\n  goes on\n"
    assert pages.article(text).split("\n<p>")[0] == "<h2>The title</h2>"
    assert "<p>One line and &lt;another&gt;.</p>" in pages.article(text)
    assert "<pre>   code(\n      x)</pre>" in pages.article(text)
    assert "<p>- item one goes on</p>" in pages.article(text)
    assert b"<h2>The &quot;with&quot; statement</h2>" in answer("/topics/with.html").body
