"""Which documents to drop for where they come from: hosts, URLs and words in URLs, by lists."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from shards.step import Check, Judged, judge
from text import buffers_of

SIGNALS = pa.schema(
    [
        ("url_domain", pa.string()),
        ("url_listed", pa.bool_()),
        ("url_word", pa.string()),
        ("url_soft_words", pa.int32()),
        ("url_subword", pa.string()),
    ]
)


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


def _present(paths: tuple[str, ...]) -> tuple[str, ...]:
    import os.path

    for path in paths:
        if "://" not in path and not os.path.isfile(path):
            raise ValueError(f"{path}: no such list; give the path of a text file (or .gz) with one entry a line")
    return paths


Lists = Annotated[tuple[str, ...], BeforeValidator(_one_or_more), AfterValidator(_present)]
"""Paths or fsspec URLs of lists: plain or gzip, an entry a line; blank lines and what follows `#` do not count."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Url:
    """Drops documents whose URL is on a list. A document without a URL is kept, and no network is asked.

    block_domains: hosts; an entry covers the host and all below it, in any case, with any port, user or dot at the
        end, written in Unicode or punycode. Hosts files (`0.0.0.0 bad.example`) are read too.
    block_urls: whole URLs; scheme, user, port, fragment and a slash at the end do not count, the case of the path does.
    block_words: words; one must stand in the URL between characters that are no letters or digits, in any case.
    block_soft_words: words of which min_soft_words different ones must stand there.
    block_subwords: words found anywhere, also across separators (`bad-word` holds `badword`).
    allow_domains: hosts which, with all below them, no other list touches.

    The URL is percent-decoded before words are sought; list words lose what is no letter or digit. The word rules are
    RefinedWeb's (arXiv:2306.01116, appendix G.1), which FineWeb uses; two soft words are its threshold.

    Rules, in order: domain, url, word, soft_words, subword; evidence is the entry that matched (for `url` the dropped
    row's own URL says it).
    """

    name: ClassVar[str] = "url"
    version: ClassVar[int] = 1
    reads: ClassVar[frozenset[str]] = frozenset({"url"})
    adds: ClassVar[pa.Schema] = pa.schema([])
    signals: ClassVar[pa.Schema] = SIGNALS
    libraries: ClassVar[tuple[str, ...]] = ()

    block_domains: Lists = ()
    block_urls: Lists = ()
    block_words: Lists = ()
    block_soft_words: Lists = ()
    block_subwords: Lists = ()
    allow_domains: Lists = ()
    min_soft_words: int = Field(default=2, ge=1, le=64)

    def files(self) -> tuple[str, ...]:
        """The lists, whose digests are part of the fingerprint."""
        lists = (self.block_domains, self.block_urls, self.block_words, self.block_soft_words, self.block_subwords)
        return tuple(path for paths in (*lists, self.allow_domains) for path in paths)

    def __call__(self, batch: pa.RecordBatch) -> Judged:
        known = "url" in batch.schema.names
        signals = self.measure(batch.column("url") if known else pa.nulls(batch.num_rows, pa.string()))
        return judge(batch, self.checks(signals), signals=signals)

    def measure(self, urls: Any) -> pa.RecordBatch:
        """SIGNALS, a row a URL: which entry of which list covers it. Raises ListError where a list cannot be read."""
        from filters import url_lists as lists
        from filters.url_words import look

        words, soft_words = lists.words(self.block_words), lists.words(self.block_soft_words)
        subwords = lists.subwords(self.block_subwords)
        data, offsets = buffers_of(urls)
        data, starts, ends = lists.with_ascii_hosts(data, offsets[:-1], offsets[1:])
        first, last, listed, hits, softs, parts = look(
            data, starts, ends, lists.hosts(self.block_domains), lists.hosts(self.allow_domains),
            lists.urls(self.block_urls), words.hashes, soft_words.hashes, subwords.classes, subwords.moves,
            subwords.found,
        )  # fmt: skip
        n = len(starts)
        domains = {i: bytes(data[first[i] : last[i]]).decode().lower() for i in np.flatnonzero(first >= 0)}
        arrays = [
            _sparse(n, domains),
            pa.array(listed),
            _sparse(n, {i: words.texts[int(hits[i])] for i in np.flatnonzero(hits)}),
            pa.array(softs),
            _sparse(n, {i: subwords.texts[parts[i]] for i in np.flatnonzero(parts >= 0)}),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SIGNALS)

    def checks(self, signals: pa.RecordBatch) -> list[Check]:
        """The rules on signals alone, stored ones too: what another threshold would have dropped needs no URL."""
        softs: npt.NDArray[Any] = signals.column("url_soft_words").to_numpy(zero_copy_only=False)
        listed: npt.NDArray[Any] = signals.column("url_listed").to_numpy(zero_copy_only=False)
        return [
            _entry("domain", signals.column("url_domain")),
            Check(rule="url", failed=listed),
            _entry("word", signals.column("url_word")),
            Check(
                rule="soft_words",
                failed=softs >= self.min_soft_words,
                value=softs.astype(np.float64),
                threshold=float(self.min_soft_words),
            ),
            _entry("subword", signals.column("url_subword")),
        ]


def compile() -> None:
    """Build the kernels now, or load them from numba's cache, so that no worker does."""
    from filters import url_kernels as kernels
    from filters import url_lists as lists

    data = np.frombuffer(b"0.0.0.0 bad.example\nhttps://a.example/b?c", np.uint8)
    starts, ends, _ = kernels.entries(data)
    kernels.after_address(data, starts, ends)
    kernels.host_hashes(data, starts, ends)
    kernels.url_hashes(data, starts, ends)
    lists.plain(b"word")
    lists.ascii_host("b\u00fccher.example".encode())
    Url().measure(["https://a.example/"])


def _entry(rule: str, column: pa.Array) -> Check:
    return Check(rule=rule, failed=np.asarray(column.is_valid()), evidence=column.to_pylist())


def _sparse(n: int, values: dict[Any, str]) -> pa.Array:
    """A string array of n rows that is null but for a few."""
    found: list[str | None] = [None] * n
    for row, value in values.items():
        found[row] = value
    return pa.array(found, pa.string())
