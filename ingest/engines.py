"""The extraction engines, called so that an answer depends on the page alone: no deduplication, no state."""

from __future__ import annotations

import logging
import re
from functools import cache
from importlib import import_module
from typing import Any

from ingest import cascade
from ingest.engine_kinds import Engine, Favor

CONTROLS = bytes(set(range(32)) - {9, 10, 13})  # characters that XML, and so lxml, does not take
NON_CHARACTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")
HEAD = 4096
# libxml2 takes a self-closing doctype or html for the whole document (launchpad 1955915).
SELF_CLOSING = re.compile(rb"<!doctype[^>]*/[^<>]*>|(<html[^>]*)/>", re.IGNORECASE)
TAG = re.compile(rb"<[a-zA-Z]")


def parse(page: bytes) -> Any:
    """The page (UTF-8) as an lxml tree, or None where there is no HTML in it."""
    if not TAG.search(page):
        return None
    import lxml.etree

    page = page.translate(None, CONTROLS)
    for character in NON_CHARACTERS:
        if character in page:
            page = page.replace(character, b"")
    if SELF_CLOSING.search(page, 0, HEAD):
        page = SELF_CLOSING.sub(_open, page[:HEAD]) + page[HEAD:]
    try:
        return lxml.etree.fromstring(page, parser=_parser())
    except (lxml.etree.ParserError, lxml.etree.XMLSyntaxError, ValueError):
        return None


def _open(match: re.Match[bytes]) -> bytes:
    return match[1] + b">" if match[1] else b""


@cache
def _parser() -> Any:
    """trafilatura's parser settings; every element of one class, looked up in C.

    lxml.html asks a Python function for the class of each element it meets, for the sake of forms and inputs.
    """
    import lxml.etree
    import lxml.html

    parser = lxml.etree.HTMLParser(
        collect_ids=False,
        default_doctype=False,
        encoding="utf-8",
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
    )
    parser.set_element_class_lookup(_classes())
    return parser


@cache
def _classes() -> Any:
    import lxml.etree
    import lxml.html

    return lxml.etree.ElementDefaultClassLookup(
        element=lxml.html.HtmlElement,
        comment=lxml.html.HtmlComment,
        pi=lxml.html.HtmlProcessingInstruction,
        entity=lxml.html.HtmlEntity,
    )


def main_text(tree: Any, page: bytes, engine: Engine, favor: Favor) -> str | None:
    """The page's main text, or None. The tree is used up."""
    if engine == "resiliparse":
        return _resiliparse(page, favor)
    if cascade.usable():
        return cascade.cascade(tree, page, favor) or None
    return _trafilatura(tree, favor)


def _trafilatura(tree: Any, favor: Favor) -> str | None:
    from trafilatura import extract

    text: str | None = extract(
        tree,
        include_comments=False,
        deduplicate=False,
        favor_precision=favor == "precision",
        favor_recall=favor == "recall",
    )
    return text


def _resiliparse(page: bytes, favor: Favor) -> str | None:
    from resiliparse.extract.html2text import extract_plain_text

    text: str = extract_plain_text(
        page.decode("utf-8", "replace"), main_content=favor != "recall", comments=False, alt_texts=False
    )
    return text or None


@cache
def quiet() -> None:
    """The libraries' loggers speak of pages; ours never does."""
    for name in ("trafilatura", "htmldate", "justext", "charset_normalizer", "courlan"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def prepare() -> None:
    """Load what extraction needs, once, before limits are set. For a process that does nothing else."""
    quiet()
    for name in ("resiliparse.extract.html2text", "trafilatura", "trafilatura.meta", "ingest.metadata", "ftfy"):
        import_module(name)
    lookup = _classes()
    import_module("trafilatura.utils").HTML_PARSER.set_element_class_lookup(lookup)
    import_module("lxml.html").html_parser.set_element_class_lookup(lookup)
    _keep_stop_words()
    cascade.usable()


def _keep_stop_words() -> None:
    """jusText lower-cases its 100,000 stop words again on each call; here once for each list."""
    core: Any = import_module("justext.core")
    external: Any = import_module("trafilatura.external")
    words = external.JT_STOPLIST or external.jt_stoplist_init()
    ready = core.define_stoplist(words)
    plain = core.define_stoplist
    core.define_stoplist = lambda given: ready if given is words else plain(given)


def reset() -> None:
    """Empty the libraries' caches, which otherwise grow in a long-lived worker."""
    from trafilatura.meta import reset_caches

    reset_caches()
