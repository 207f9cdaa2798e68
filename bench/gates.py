"""Url, language and redact against what datatrove does for them, one core, the same documents.

    python -m bench.gates

Language is compared with fasttext-predict called once a document, as datatrove's LanguageFilter does; datatrove's own
would fetch a model from the network.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from filters import Language, Redact, Url

ROUNDS = 3
URLS = 40_000
DOCUMENT_CHARACTERS = 20_000

FOLDER = Path(os.environ.get("GRISTMILL_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data"


def texts() -> list[str]:
    """Manuals and encyclopedia entries, cut at DOCUMENT_CHARACTERS."""
    found = []
    for name in ("techdoc_en", "techdoc_multilingual", "encyclopedia_en", "code_python"):
        with gzip.open(FOLDER / "text" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            found += [json.loads(line)["text"][:DOCUMENT_CHARACTERS] for line in lines]
    return found


def urls() -> list[str]:
    with gzip.open(FOLDER / "lists/ut1_urls_sample5k.txt.gz", "rt") as lines:
        listed = [f"https://{line.strip()}" for line in lines]
    plain = [f"https://docs{i % 97}.example.org/guide/chapter-{i}/index.html" for i in range(URLS - len(listed))]
    return listed + plain


def language(documents: list[str]) -> tuple[Callable[[], Any], Callable[[], Any]]:
    import fasttext

    from filters.language import model_path

    batch = pa.record_batch({"text": pa.array(documents, pa.large_string())})
    peer = fasttext.load_model(model_path())
    step = Language(keep=("eng_Latn",))
    return lambda: step(batch), lambda: [peer.predict(text.replace("\n", " ")) for text in documents]


def redact(documents: list[str]) -> tuple[Callable[[], Any], Callable[[], Any]]:
    from datatrove.pipeline.formatters.pii import PIIFormatter

    batch = pa.record_batch({"text": pa.array(documents, pa.large_string())})
    peer = PIIFormatter()
    return lambda: Redact()(batch), lambda: [peer.format(text) for text in documents]


def url(addresses: list[str]) -> tuple[Callable[[], Any], Callable[[], Any]] | None:
    try:
        import ahocorasick  # type: ignore[import-not-found]  # noqa: F401
        import tldextract
    except ImportError:
        print("bench url: skipped; datatrove's URLFilter needs pyahocorasick and tldextract")
        return None
    from datatrove.data import Document
    from datatrove.pipeline.filters.url_filter import URLFilter

    lists = {
        key: FOLDER / "lists" / f"datatrove_{name}.txt"
        for key, name in (("words", "banned_words"), ("soft", "soft_banned_words"), ("sub", "banned_subwords"))
    }
    domains = FOLDER / "lists/ut1_domains_sample30k.txt.gz"
    step = Url(
        block_domains=(str(domains),),
        block_words=(str(lists["words"]),),
        block_soft_words=(str(lists["soft"]),),
        block_subwords=(str(lists["sub"]),),
    )
    words = {key: path.read_text().splitlines() for key, path in lists.items()}
    with gzip.open(domains, "rt") as lines:
        peer = URLFilter(
            extra_domains=lines.read().splitlines(),
            banned_words=words["words"],
            soft_banned_words=words["soft"],
            banned_subwords=words["sub"],
            use_integrated_lists=False,
        )
    peer.tldextractor = tldextract.TLDExtract(suffix_list_urls=())
    documents = [Document(text="", id="", metadata={"url": address}) for address in addresses]
    batch = pa.record_batch({"url": addresses})
    return lambda: step(batch), lambda: [peer.filter(document) for document in documents]


def seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def compare(
    name: str, pair: tuple[Callable[[], Any], Callable[[], Any]], amount: float, unit: str, target: float
) -> None:
    ours, theirs = pair
    ours()
    rounds = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]
    mine, other = (statistics.median(column) for column in zip(*rounds, strict=True))
    figures = f"ours {amount / mine:.1f} {unit}/s, theirs {amount / other:.1f} {unit}/s"
    print(f"bench {name}: {figures}, ratio {other / mine:.1f} (target {target:g})")


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # tldextract's, of an attribute that datatrove reads
    documents, addresses = texts(), urls()
    size = sum(len(text.encode()) for text in documents) / 1e6
    compare("language", language(documents), size, "MB", 5)
    compare("redact", redact(documents), size, "MB", 5)
    pair = url(addresses)
    if pair is not None:
        compare("url", pair, len(addresses) / 1e3, "thousand URLs", 5)


if __name__ == "__main__":
    main()
