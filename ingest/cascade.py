"""trafilatura's extractors in an order of our own: each page pays only for what its text needs.

trafilatura 2.3 runs its main extractor, compares with readability and jusText on every page, and where little of the
page came out runs everything again in recall mode. Measured on its own 657 evaluation pages (segments) and on
Readability.js's 60 reviewed pages (words), as bench/extraction does:

- The comparison pays only where the main extractor found little (up to COMPARE_BELOW characters).
- Of the second run only the jusText candidate pays; it is kept for `balanced` (F1 .925 and .932).
- `precision`, with the rescue of pages on which nothing was found, does best on both (F1 .921 and .950; trafilatura's
  own precision mode .919 and .950), and is the default.

The parts called here are internal to trafilatura, hence the check of its version: with another one `usable` is False
and its public function is called instead. Two cautions of the library's are kept for every page: no deduplication
across documents, and trees are copied before an extractor uses them up.
"""

from __future__ import annotations

import sys
from copy import copy
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from ingest.engine_kinds import Favor

VERSIONS = ("2.3.",)
COMPARE_BELOW = 1000  # characters of main text; swept 500-2500: F1 flat from 1000 up
RESCUE_BELOW = 250  # trafilatura's MIN_EXTRACTED_SIZE
RETRY_BELOW = 3000  # its ESCALATION_MAX_LENGTH
RETRY_SHARE = 0.2  # of the cleaned page's text; its ESCALATION_PAGE_SHARE, of the whole page's
RETRY_GAIN = 2.0  # its ESCALATION_JUSTEXT_RATIO

# A prune can only match where its attribute value stands in the page's source; most pages hold none of them.
RAW_PRUNE = (b"mvp-post-add-", b"infinite", b"elementor-share-buttons")
LISTS = ("ul", "ol", "dl")
CONTAINERS = ("article", "div", "main", "section", "td", "frameset")
COMMENTS = (b"omment", b"comol", b"disqus_thread")


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """What is called of trafilatura."""

    core: Any
    main: Any
    baseline: Any
    external: Any
    cleaning: Any
    xml: Any
    xpaths: Any
    etree: Any
    count: Any
    options: dict[str, Any]


@cache
def _parts() -> _Parts | None:
    import trafilatura

    if not trafilatura.__version__.startswith(VERSIONS):
        return None
    names = ("core", "main_extractor", "baseline", "external", "htmlprocessing", "xml", "xpaths", "settings")
    for name in names:
        import_module(f"trafilatura.{name}")
    # Some of these modules share their name with a function that the package exports.
    modules = {name: sys.modules[f"trafilatura.{name}"] for name in names}
    etree = import_module("lxml.etree")
    extractor = modules["settings"].Extractor
    return _Parts(
        core=modules["core"],
        main=modules["main_extractor"],
        baseline=modules["baseline"],
        external=modules["external"],
        cleaning=modules["htmlprocessing"],
        xml=modules["xml"],
        xpaths=modules["xpaths"],
        etree=etree,
        count=etree.XPath("count(.//*[not(self::done)])"),
        options={
            favor: extractor(comments=False, precision=favor == "precision", recall=favor == "recall")
            for favor in ("precision", "balanced", "recall")
        },
    )


def usable() -> bool:
    """Whether the installed trafilatura is one whose parts are known."""
    return _parts() is not None


def cascade(tree: Any, source: bytes, favor: Favor) -> str:
    """The main text of a page (its lxml tree, which is used up, and its bytes)."""
    parts = _parts()
    assert parts is not None, "ask usable() first"
    return _Page(parts, tree, source, favor).text()


class _Page:
    """One page on its way through the extractors."""

    def __init__(self, parts: _Parts, tree: Any, source: bytes, favor: Favor) -> None:
        self.parts = parts
        self.favor = favor
        self.options = parts.options[favor]
        self.raw = self._pruned(_framed(tree), source)
        self.cleaned_length = 0

    def text(self) -> str:
        body, text = self._main_pass()
        if len(text) <= COMPARE_BELOW:
            body, text = self._compared(body, text)
        if len(text) < RESCUE_BELOW:
            rescued, rescued_text, length = self.parts.baseline.baseline(self.raw)
            if length > len(text):
                body, text = rescued, rescued_text
        if self.favor == "balanced" and 0 < len(text) < min(RETRY_BELOW, RETRY_SHARE * self.cleaned_length):
            other, other_text = self.parts.external.justext_rescue(copy(self.raw), self.options)
            if len(other_text) > RETRY_GAIN * len(text):
                body = other
        return str(self.parts.xml.xmltotxt(body, False))

    def _pruned(self, tree: Any, source: bytes) -> Any:
        """The page without appended articles and readers' comments; a forum's comments are its content."""
        prune, xpaths = self.parts.cleaning.prune_unwanted_nodes, self.parts.xpaths
        forum = self.parts.core._forum_thread_page(tree)
        if any(word in source for word in RAW_PRUNE):
            tree = prune(tree, xpaths.RAW_TREE_PRUNE_XPATH)
        if (self.favor == "precision" or not forum) and any(word in source for word in COMMENTS):
            tree = prune(tree, xpaths.REMOVE_COMMENTS_AND_LISTS_XPATH)
        return tree

    def _prepared(self) -> Any:
        cleaned = self.parts.cleaning.tree_cleaning(copy(self.raw), self.options)
        self.cleaned_length = len(" ".join(cleaned.text_content().split()))
        return self.parts.cleaning.convert_tags(cleaned, self.options, None)

    def _main_pass(self) -> tuple[Any, str]:
        main = self.parts.main
        prepared = self._prepared()
        size = self.parts.count(prepared)
        body, text, tags = main._extract(prepared, self.options)
        if len(body) > 0 and len(text) >= RESCUE_BELOW:
            return self._finished(body), str(text)
        if len(body) == 0 and self.parts.count(prepared) == size:
            # No frame was found, so the tree is as it was: its recovery of stray text may use it.
            body = self._finished(main.recover_wild_text(prepared, body, self.options, tags))
            return body, " ".join(body.itertext()).strip()
        # The recovery needs an untouched tree: from the start again, for the few that come here.
        body, text = main.extract_content(self._prepared(), self.options)
        return body, str(text)

    def _finished(self, body: Any) -> Any:
        """The main pass's own closing steps: long repeats, used-up elements, wrappers, blank line ends."""
        main, etree = self.parts.main, self.parts.etree
        before = None
        for element in list(body):
            said = main._elem_text(element)
            if said and said == before and len(said) > main.MIN_DUPLICATE_LENGTH:
                self.parts.xml.delete_element(element, keep_tail=False)
            else:
                before = said
        etree.strip_elements(body, "done")
        etree.strip_tags(body, "div")
        for line_end in body.iter("lb"):
            tail = line_end.tail
            if tail and tail.isspace() and not any(up.tag in main.SPACING_PROTECTED for up in line_end.iterancestors()):
                line_end.tail = None
        return body

    def _compared(self, body: Any, text: str) -> tuple[Any, str]:
        cleaned = self.parts.cleaning.tree_cleaning(copy(self.raw), self.options)
        body, text = self.parts.external.compare_extraction(cleaned, copy(self.raw), body, text, self.options)
        return body, str(text)


def _framed(tree: Any) -> Any:
    """A page with a list in its body and no container at all is one article: else the list is dropped (#233)."""
    body = tree.find("body")
    if body is None or next(body.iterchildren(*LISTS), None) is None or next(body.iter(*CONTAINERS), None) is not None:
        return tree
    article = body.makeelement("article")
    inside = list(body)
    if inside[0].tag == "h1":
        del inside[0]  # the page's title, which has a column of its own
    else:
        article.text, body.text = body.text, None
    article.extend(inside)
    body.append(article)
    return tree
