"""A page's title, date, address, language and rights, read from where pages state them: meta tags, JSON-LD, <time>.

One pass over a handful of element kinds; no search through the text, so it costs far less than extraction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain, islice
from typing import Any

from ingest.dates import as_date

KINDS = ("meta", "title", "link", "time", "script", "h1")
TITLE_KEYS = ("og:title", "citation_title", "twitter:title", "dc.title", "dcterms.title", "title")
DATE_KEYS = (
    "article:published_time", "datepublished", "og:published_time", "publication_date", "citation_publication_date",
    "citation_date", "dc.date.issued", "dcterms.issued", "dcterms.created", "dc.date.created", "dc.created", "pubdate",
    "publishdate", "publish-date", "publish_date", "date.created", "datecreated", "created", "sailthru.date",
    "parsely-pub-date", "article.published", "published_time", "dc.date", "dcterms.date", "date", "bt:pubdate",
    "date_published", "originalpublicationdate",
)  # fmt: skip
LATER_DATE_KEYS = (
    "article:modified_time",
    "datemodified",
    "og:updated_time",
    "dcterms.modified",
    "last-modified",
    "lastmod",
)
RIGHTS_KEYS = ("dcterms.license", "dc.rights", "dcterms.rights", "license", "copyright", "rights")
JSON_DATE = re.compile(r'"date(?:Published|Created)"\s*:\s*"([^"\\]{4,40})"')
JSON_LATER = re.compile(r'"dateModified"\s*:\s*"([^"\\]{4,40})"')
JSON_HEADLINE = re.compile(r'"headline"\s*:\s*("(?:[^"\\]|\\.){3,400}")')
URL_DATE = re.compile(r"[/_-]((?:19[9]|20[0-4])\d)[/_-](0?[1-9]|1[0-2])[/_-](0?[1-9]|[12]\d|3[01])(?=[/_.-]|$)")
NUMERIC = re.compile(r"^\s*(\d{1,4})[./-](\d{1,2})[./-](\d{1,4})\b")
NAMED = re.compile(
    r"(?:(\d{1,2})(?:st|nd|rd|th)?\.?\s+)?([^\W\d_]{3,10})\.?\s+(?:(\d{1,2})(?:st|nd|rd|th)?,?\s+)?(\d{4})\b"
)
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)  # earlier dates are a page's subject, or a default
SPACES = re.compile(r"\s+")
MAX_TITLE = 500
MONTHS = {
    name: number + 1
    for number, names in enumerate(
        (
            "january janvier januar enero janeiro jan", "february février februar febrero fevereiro feb",
            "march mars märz marzo março mar mär", "april avril abril apr", "may mai mayo maio",
            "june juin juni junio junho jun", "july juillet juli julio julho jul", "august août agosto aug",
            "september septembre septiembre setembro sep sept", "october octobre oktober octubre outubro oct okt",
            "november novembre noviembre novembro nov", "december décembre dezember diciembre dezembro dec dez",
        )
    )
    for name in names.split()
}  # fmt: skip
SEPARATORS = re.compile(r"\s+[|\u2013\u2014\u00bb\u00ab\u2022\u00b7-]\s+|\s+::\s+")


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """None where the page does not say. language: as stated (`de-AT`), a hint. rights: a licence's URL or words."""

    title: str | None = None
    date: datetime | None = None
    url: str | None = None
    language: str | None = None
    rights: str | None = None


@dataclass
class _Seen:
    meta: dict[str, str] = field(default_factory=dict)
    document_title: str | None = None
    headings: list[str] = field(default_factory=list)
    canonical: str | None = None
    licence: str | None = None
    times: list[tuple[bool, str]] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)


def read_metadata(tree: Any, url: str | None = None, *, captured: datetime | None = None) -> Metadata:
    """What the page (an lxml tree) states about itself. captured: when it was fetched; later dates are mistakes."""
    seen = _collect(tree)
    return Metadata(
        title=_title(seen),
        date=_date(seen, tree, url, captured),
        url=_url(seen),
        language=_language(tree, seen),
        rights=seen.licence or _first(seen.meta, RIGHTS_KEYS),
    )


def _collect(tree: Any) -> _Seen:
    seen = _Seen()
    for element in tree.iter(*KINDS):
        kind = element.tag
        if kind == "meta":
            key = element.get("property") or element.get("name") or element.get("itemprop") or element.get("http-equiv")
            content = element.get("content") or (element.get("datetime") if key else None)
            if key and content and content.strip():
                seen.meta.setdefault(key.strip().lower(), content.strip())
        elif kind == "title":
            if seen.document_title is None:
                seen.document_title = _words(element.text_content())
        elif kind == "h1":
            if len(seen.headings) < 3:
                seen.headings.append(_words(element.text_content()))
        elif kind == "link":
            relation = (element.get("rel") or "").lower()
            if relation == "canonical" and seen.canonical is None:
                seen.canonical = element.get("href")
            elif relation == "license" and seen.licence is None:
                seen.licence = element.get("href")
        elif kind == "time":
            if len(seen.times) < 20:
                marked = element.get("pubdate") is not None or "ublish" in (
                    element.get("itemprop") or element.get("class") or ""
                )
                seen.times.append((marked, element.get("datetime") or _words(element.text_content())))
        elif "ld+json" in (element.get("type") or "") and element.text:
            seen.scripts.append(element.text[: 1 << 20])
    return seen


def _words(text: str) -> str:
    return SPACES.sub(" ", text).strip()


def _first(meta: dict[str, str], keys: tuple[str, ...]) -> str | None:
    return next((meta[key] for key in keys if key in meta), None)


def _title(seen: _Seen) -> str | None:
    """The first of: meta title, JSON-LD headline, the only h1, the document's title without the site's name."""
    named = _first(seen.meta, TITLE_KEYS) or _headline(seen.scripts)
    headings = [heading for heading in seen.headings if heading]
    document = seen.document_title or ""
    if named is None and len(headings) == 1 and headings[0]:
        named = headings[0]
    chosen = _words(named or document)
    if named is None or chosen == document:
        chosen = _without_site(chosen, headings)
    return chosen[:MAX_TITLE].rstrip() or None


def _without_site(title: str, headings: list[str]) -> str:
    """The title without " | Site": the h1 where it stands in it, else the longest part if it is most of it."""
    for heading in headings:
        if len(heading) > 3 and heading in title:
            return heading
    parts = SEPARATORS.split(title)
    longest = max(parts, key=len)
    return longest if len(parts) > 1 and len(longest) > len(title) / 2 else title


def _headline(scripts: list[str]) -> str | None:
    for script in scripts:
        if match := JSON_HEADLINE.search(script):
            try:
                return str(json.loads(match[1], strict=False))
            except ValueError:
                continue
    return None


def _date(seen: _Seen, tree: Any, url: str | None, captured: datetime | None) -> datetime | None:
    latest = captured or datetime.max.replace(tzinfo=UTC)
    latest = latest + timedelta(days=1) if captured else latest
    for text in chain(_date_texts(seen, url), _dated_elements(tree)):
        date = page_date(text)
        if date is not None and EARLIEST <= date <= latest:
            return date
    return None


def _date_texts(seen: _Seen, url: str | None) -> Iterator[str]:
    """Where a date may stand, the most telling first."""
    for key in DATE_KEYS[:3]:
        if key in seen.meta:
            yield seen.meta[key]
    for script in seen.scripts:
        yield from (match[1] for match in JSON_DATE.finditer(script))
    for key in DATE_KEYS[3:]:
        if key in seen.meta:
            yield seen.meta[key]
    yield from (text for marked, text in seen.times if marked)
    if url and (match := URL_DATE.search(url)):
        yield "-".join(match.groups())
    yield from (text for marked, text in seen.times if not marked)
    for script in seen.scripts:
        yield from (match[1] for match in JSON_LATER.finditer(script))
    for key in LATER_DATE_KEYS:
        if key in seen.meta:
            yield seen.meta[key]


def _dated_elements(tree: Any) -> Iterator[str]:
    """The text of elements whose class speaks of a date; looked for only where nothing states one."""
    for element in islice(_dated()(tree), 20):
        text = _words(element.text_content()[:400])
        if len(text) <= 80:
            yield text


@cache
def _dated() -> Any:
    from lxml.etree import XPath

    words = ("date", "datum", "publi", "time", "meta")
    tests = " or ".join(f"contains(@class, '{word}')" for word in words)
    return XPath(
        f".//*[self::span or self::p or self::div or self::td or self::li or self::small or self::abbr][{tests}]"
    )


def page_date(text: str) -> datetime | None:
    """A date as pages write it: ISO 8601, HTTP, 31.12.2020, 2020/12/31, 31 December 2020, December 31, 2020."""
    text = text.strip()[:60]
    if (date := as_date(text)) is not None:
        return date
    if match := NUMERIC.match(text):
        first, second, third = int(match[1]), int(match[2]), int(match[3])
        if len(match[1]) == 4:
            return _day(first, second, third)
        if len(match[3]) == 4:
            # 31/12/2020 in most of the world; 12/31/2020 only where nothing else fits.
            return _day(third, second, first) or _day(third, first, second)
    if match := NAMED.search(text):
        month = MONTHS.get(match[2].lower())
        day = match[1] or match[3]
        if month and day:
            return _day(int(match[4]), month, int(day))
    return None


def _day(year: int, month: int, day: int) -> datetime | None:
    try:
        return datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None


def _url(seen: _Seen) -> str | None:
    for url in (seen.canonical, seen.meta.get("og:url")):
        if url and url.strip().lower().startswith(("http://", "https://")):
            return url.strip()
    return None


def _language(tree: Any, seen: _Seen) -> str | None:
    root = tree if tree.tag == "html" else tree.getroottree().getroot()
    stated = root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or root.get("xml:lang")
    return (stated or seen.meta.get("content-language") or seen.meta.get("og:locale") or "").strip()[:35] or None
