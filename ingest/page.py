"""One page at a time: bytes to text, title, date, language hint and rights. The plain form of the `extract` step."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ingest.charset import decode_page
from ingest.engine_kinds import Engine, Favor
from ingest.engines import main_text, parse, quiet
from ingest.normalise import normalise_text

FAVOR: Favor = "precision"


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """What a page holds. None where it does not say. language_hint: as the page states it, not identified."""

    text: str
    title: str | None = None
    date: datetime | None = None
    url: str | None = None
    language_hint: str | None = None
    rights: str | None = None


def extract(
    html: bytes,
    url: str | None = None,
    engine: Engine = "trafilatura",
    *,
    favor: Favor = FAVOR,
    charset: str | None = None,
) -> Extracted | None:
    """The main text of a page and what it states about itself; None where there is no text.

    charset: what the HTTP header said. Runs in this process, under no limit: for crawls use the `extract` step.
    """
    quiet()
    return extract_page(decode_page(html, charset).encode("utf-8", "replace"), url, engine, favor)


def extract_page(
    page: bytes, url: str | None, engine: Engine, favor: Favor, captured: datetime | None = None
) -> Extracted | None:
    """The same of a page decoded to UTF-8. captured: when it was fetched."""
    from ingest.metadata import read_metadata

    tree = parse(page)
    if tree is None:
        return None
    stated = read_metadata(tree, url, captured=captured)
    text = main_text(tree, page, engine, favor)
    text = normalise_text(text).strip() if text else ""
    if not text:
        return None
    return Extracted(
        text=text,
        title=normalise_text(stated.title) if stated.title else None,
        date=stated.date,
        url=stated.url,
        language_hint=stated.language,
        rights=stated.rights,
    )
