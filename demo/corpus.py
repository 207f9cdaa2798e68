"""The demo's corpus in one folder: a crawl of documentation, the standard library's sources, descriptions of packages.

    pydoc.warc.gz        domain web     pydoc's pages, crawled over HTTP
    code/**/*.py         domain code    the standard library's sources
    descriptions.jsonl   domain prose   what the installed packages say of themselves: id, url, text

The folder is made again when the Python, the installed packages or the demo's code change, and only then.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
import sysconfig
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from demo.crawl import CrawlSettings, crawl
from demo.server import serving

# Not the library but what stands beside it: other people's packages, tests, bundled wheels, and editors' windows.
LEFT_OUT = ("site-packages", "dist-packages", "__pycache__", "test", "tests", "idlelib", "ensurepip", "turtledemo")
COMPLETE = "corpus.json"


def build(folder: Path, *, settings: CrawlSettings | None = None) -> dict[str, object]:
    """Make the corpus in `folder` unless it is there already; returns what corpus.json says of it.

    WARC-Date is SOURCE_DATE_EPOCH where that is set (seconds since 1970), else the time of the crawl.
    """
    settings = settings or CrawlSettings()
    key = corpus_key(settings)
    marker = folder / COMPLETE
    if marker.is_file():
        told: dict[str, object] = json.loads(marker.read_text())
        if told.get("key") == key:
            return told
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    date = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    with serving() as port:
        crawled = crawl(port, folder / "pydoc.warc.gz", date=date, settings=settings)
    told = {
        "key": key,
        "pages": {str(status): count for status, count in sorted(crawled.statuses.items())},
        "page_bytes": crawled.bytes,
        "unanswered": crawled.unanswered,
        "sources": copy_sources(Path(sysconfig.get_path("stdlib")), folder / "code"),
        "descriptions": write_descriptions(folder / "descriptions.jsonl"),
    }
    marker.write_text(json.dumps(told, indent=1) + "\n")
    return told


def corpus_key(settings: CrawlSettings) -> str:
    """What the corpus depends on, as one hash: the Python, the installed packages, the settings, the demo's code."""
    packages = sorted(f"{d.name} {d.version}" for d in importlib.metadata.distributions())
    code = [path.read_text() for path in sorted(Path(__file__).parent.glob("*.py"))]
    said = json.dumps([sys.version, packages, asdict(settings), code])
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()


def copy_sources(library: Path, out: Path) -> int:
    """Copy a library's .py files, without its tests, keeping their folders; returns how many."""
    count = 0
    for folder, names, files in os.walk(library):
        names[:] = sorted(name for name in names if name not in LEFT_OUT and not name.startswith("config-"))
        target = out / Path(folder).relative_to(library)
        for name in sorted(file for file in files if file.endswith(".py")):
            target.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(folder) / name, target / name)
            count += 1
    return count


def write_descriptions(out: Path) -> int:
    """Write the long descriptions of the installed distributions as JSON lines, by name; returns how many."""
    rows = {}
    for distribution in importlib.metadata.distributions():
        metadata = distribution.metadata
        text = metadata.get("Description") or metadata.get_payload()  # type: ignore[attr-defined]
        if isinstance(text, str) and text.strip():
            name = str(metadata["Name"])
            url = f"http://packages.localhost/{name.lower()}/"
            rows[name.lower()] = {"id": f"{name} {metadata['Version']}", "url": url, "text": text}
    with out.open("w", encoding="utf-8") as file:
        for _, row in sorted(rows.items()):
            file.write(json.dumps(row) + "\n")
    return len(rows)
