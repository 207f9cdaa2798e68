"""The extraction engines, called so that an answer depends on the page alone: no caches that dedupe, no state."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any, Literal

Engine = Literal["trafilatura", "resiliparse"]
Favor = Literal["precision", "balanced", "recall"]


def parse(page: str) -> Any:
    """The page as an lxml tree, or None where there is no HTML in it."""
    _quiet()
    from trafilatura.utils import load_html

    return load_html(page)


def main_text(tree: Any, page: str, url: str | None, engine: Engine, favor: Favor) -> str | None:
    """The page's main text, or None. The tree is used up."""
    if engine == "resiliparse":
        return _resiliparse(page, favor)
    return _trafilatura(tree, url, favor)


def _trafilatura(tree: Any, url: str | None, favor: Favor) -> str | None:
    from trafilatura import extract

    text: str | None = extract(
        tree,
        url=url,
        include_comments=False,
        deduplicate=False,
        favor_precision=favor == "precision",
        favor_recall=favor == "recall",
    )
    return text


def _resiliparse(page: str, favor: Favor) -> str | None:
    from resiliparse.extract.html2text import extract_plain_text

    text: str = extract_plain_text(page, main_content=favor != "recall", comments=False, alt_texts=False)
    return text


def _quiet() -> None:
    """The libraries' loggers speak of pages; ours never does."""
    for name in ("trafilatura", "htmldate", "justext", "charset_normalizer", "courlan"):
        logging.getLogger(name).disabled = True


def reset() -> None:
    """Empty the libraries' caches, which otherwise grow in a long-lived worker."""
    from trafilatura.meta import reset_caches

    reset_caches()


def prepare() -> None:
    """Load what extraction needs, once, before limits are set."""
    _quiet()
    for name in ("resiliparse.extract.html2text", "trafilatura", "trafilatura.meta", "ingest.metadata", "ftfy"):
        import_module(name)
