"""The pages of a small documentation site: pydoc's HTML of the modules that this Python can import.

`answer(path)` is the whole site. It imports what it documents, so `demo.server` runs it in a process of its own.
"""

from __future__ import annotations

import importlib.metadata
import pydoc
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from pydoc_data.topics import topics

HTML = "text/html; charset=utf-8"
ROBOTS = "User-agent: *\nDisallow: /source/\n"

# What must not be imported only to be described: it opens a browser or a window, or prints when imported.
UNSAFE = frozenset({"__main__", "antigravity", "idlelib", "this", "tkinter", "turtle", "turtledemo"})
# Tests of a library are not its documentation, and some change global state when they are imported.
TESTS = frozenset({"conftest", "idle_test", "test", "testing", "tests"})
# Where an object lies in memory differs in each process; pydoc itself hides it in values, but not in signatures.
ADDRESS = re.compile(r"(?: |&nbsp;)(?:at|handle)(?: |&nbsp;)(?:0x)?[0-9a-fA-F]{6,16}\b")
# The product itself: a site that documents its own crawler would change with each edit of it.
OURS = frozenset({"gristmill"})


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the site says to one request; `location` is where a redirect leads."""

    status: int
    body: bytes = b""
    content_type: str = HTML
    location: str | None = None


def answer(path: str) -> Answer:
    """The page at a path such as /json.decoder.html. Never raises: what cannot be made is a 404 or a 500."""
    fixed = {"/index.html": _front, "/stdlib.html": _stdlib, "/packages.html": _packages, "/topics.html": _topics}
    if path == "/":
        return Answer(status=301, location="/index.html")
    if path == "/robots.txt":
        return Answer(status=200, body=ROBOTS.encode(), content_type="text/plain; charset=utf-8")
    if path in fixed:
        return _page(*fixed[path]())
    if path.startswith("/topics/") and path.endswith(".html"):
        return _topic(path.removeprefix("/topics/").removesuffix(".html"))
    if path.endswith(".html"):
        return _module(path.removeprefix("/").removesuffix(".html"))
    return _error(404, "there is no such page")


@cache
def standard_library() -> list[str]:
    """The public top-level modules of the standard library, whether or not this platform has them, in order."""
    return sorted(name for name in sys.stdlib_module_names if _servable(name) and not name.startswith("_"))


@cache
def installed_packages() -> list[str]:
    """The public top-level modules of the installed distributions, in order."""
    owners: Mapping[str, list[str]] = importlib.metadata.packages_distributions()
    return sorted(
        name
        for name, distributions in owners.items()
        if _servable(name) and name.isidentifier() and not name.startswith("_") and not OURS.intersection(distributions)
    )


def _servable(name: str) -> bool:
    parts = name.split(".")
    return parts[0] not in UNSAFE and parts[-1] != "__main__" and TESTS.isdisjoint(parts)


def _module(name: str) -> Answer:
    known = sys.stdlib_module_names | set(installed_packages())
    if not _servable(name) or name.split(".", maxsplit=1)[0] not in known:
        return _error(404, f"no documentation for {name}")
    try:
        module = pydoc.safeimport(name)
        if module is None:
            return _error(404, f"no module {name} here")
        own = module.__name__
        if own != name and own.split(".")[0] in known:
            return Answer(status=301, location=f"/{own}.html")
        return _page(pydoc.describe(module), pydoc.html.document(module, name))
    except (Exception, SystemExit):  # importing and describing run other people's code: any of it may fail
        return _error(500, f"{name} could not be documented")


def _topic(name: str) -> Answer:
    text = topics.get(name)
    if text is None:
        return _error(404, f"no topic {name}")
    home = '<p><a href="../topics.html">Topics</a></p>'
    return _page(f"topic {name}", f"{home}<article>{article(text)}</article>")


def article(text: str) -> str:
    """A topic's plain text as HTML: underlined lines are headings, indented blocks are verbatim, others paragraphs."""
    made = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        first, _, rest = block.partition("\n")
        if re.fullmatch(r"([*=~^-])\1{2,}\s*", rest):
            made.append(f"<h2>{escape(first)}</h2>")
        elif block.startswith(" "):
            made.append(f"<pre>{escape(block)}</pre>")
        else:
            made.append(f"<p>{escape(' '.join(block.split()))}</p>")
    return "\n".join(made)


def _front() -> tuple[str, str]:
    places = [("stdlib.html", "Standard library"), ("packages.html", "Installed packages"), ("topics.html", "Topics")]
    return "documentation of this Python", _links("Documentation of this Python", places)


def _stdlib() -> tuple[str, str]:
    return "standard library", _links("Standard library", ((f"{name}.html", name) for name in standard_library()))


def _packages() -> tuple[str, str]:
    return "installed packages", _links("Packages", ((f"{name}.html", name) for name in installed_packages()))


def _topics() -> tuple[str, str]:
    return "topics", _links("Topics", ((f"topics/{name}.html", name) for name in sorted(topics)))


def _links(title: str, links: Iterable[tuple[str, str]]) -> str:
    rows = [f'<li><a href="{escape(href)}">{escape(text)}</a></li>' for href, text in links]
    return pydoc.html.bigsection(title, "index", f"<ul>{''.join(rows)}</ul>")


def _page(title: str, contents: str) -> Answer:
    text = ADDRESS.sub("", pydoc.html.page(title, contents))
    # Docstrings may hold lone surrogates, which UTF-8 cannot write.
    return Answer(status=200, body=text.encode("utf-8", "backslashreplace"))


def _error(status: int, reason: str) -> Answer:
    body = f"<!doctype html><title>{status}</title><h1>{status}</h1><p>{escape(reason)}</p>"
    return Answer(status=status, body=body.encode())
