"""The `extract` step: pages to main text, title and date; all text to its normal form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from ingest.charset import decode_page
from ingest.dates import DATE
from ingest.engine_kinds import Engine, Favor
from ingest.gates import GateError, Gates
from ingest.normalise_columns import normalise
from ingest.page import FAVOR
from ingest.sandbox import sandbox
from ingest.worker_frames import Answer, Job, Orders
from shards.step import Check, Judged, judge, with_column


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Extract:
    """Main text, title and date of pages; rows that have text already pass with their text normalised.

    Rows with `_content` are pages. They are decoded (HTTP header, meta, detection), gated, and parsed in a child
    process that each worker keeps. `date` becomes the page's own date where it states one, else it stays what the
    crawler recorded; `url` stays, or is the stated canonical one where there was none; `title` is added.

    engine: trafilatura, or resiliparse (about ten times as fast, with less precision).
    favor: precision, balanced or recall. The default is the best by F1 on two reviewed sets (see cascade.py).
    max_html_bytes, max_nodes, max_depth, max_cells: gates on the page before it is parsed (see gates.py). Among those
        657 pages the largest values are 10,106 start tags, 42 open elements and 7,121 cells.
    cpu_limit_s: CPU seconds a page may take in the child; wide, since what it catches is lost as `resource`.
    memory_limit_bytes: address space that the child may add to what it has once its libraries are loaded.
    Drops: no_text. Failures: too_large, too_many_nodes, too_deep, too_many_cells, resource, or the extractor's error.
    """

    name: ClassVar[str] = "extract"
    version: ClassVar[int] = 1
    reads: ClassVar[frozenset[str]] = frozenset({"text", "url", "date"})
    adds: ClassVar[pa.Schema] = pa.schema([("title", pa.string())])
    libraries: ClassVar[tuple[str, ...]] = ("trafilatura", "lxml", "justext", "resiliparse", "ftfy")

    engine: Engine = "trafilatura"
    favor: Favor = FAVOR
    max_html_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = 20 << 20
    max_nodes: Annotated[int, Field(ge=100)] = 100_000
    max_depth: Annotated[int, Field(ge=10, le=10_000)] = 250
    max_cells: Annotated[int, Field(ge=100)] = 20_000
    cpu_limit_s: Annotated[float, Field(gt=0, le=3600)] = 60.0
    memory_limit_bytes: Annotated[int, Field(ge=64 << 20)] = 1 << 30

    def files(self) -> tuple[str, ...]:
        """Nothing is read besides the batch."""
        return ()

    def __call__(self, batch: pa.RecordBatch) -> Judged:
        text = batch.column("text").cast(pa.large_string())
        dates = batch.column("date")
        urls = batch.column("url")
        titles = pa.nulls(batch.num_rows, pa.string())
        failures: dict[int, tuple[str, str]] = {}
        rows = self._pages(batch)
        passed = normalise(text)
        if len(rows):
            found = self._extract(batch, rows, failures)
            passed = _put(passed, found, "text")
            titles = _put(titles, found, "title")
            dates = _put(dates.cast(DATE), found, "date")
            urls = _put(urls, {row: value for row, value in found.items() if not urls[row].is_valid}, "url")
        kept = with_column(batch, "text", passed)
        for name, column in (("title", titles), ("date", dates), ("url", urls)):
            kept = with_column(kept, name, column)
        return judge(kept, [Check(rule="no_text", failed=_blank(passed))], failures=failures)

    @staticmethod
    def _pages(batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int64]]:
        if "_content" not in batch.schema.names:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(np.asarray(batch.column("_content").is_valid()))

    def _extract(
        self, batch: pa.RecordBatch, rows: np.ndarray[Any, np.dtype[np.int64]], failures: dict[int, tuple[str, str]]
    ) -> dict[int, Any]:
        """{row: Extracted}; rows that failed go to `failures`, rows without text to neither."""
        sent: list[int] = []
        jobs: list[Job] = []
        for row, job in self._jobs(batch, rows, failures):
            sent.append(row)
            jobs.append(job)
        orders = Orders(
            engine=self.engine,
            favor=self.favor,
            cpu_limit_s=self.cpu_limit_s,
            memory_limit_bytes=self.memory_limit_bytes,
        )
        found: dict[int, Any] = {}
        answers: Iterator[Answer] = sandbox(orders).run(jobs)
        for row, (kind, value) in zip(sent, answers, strict=True):
            if kind == "text":
                found[row] = value
            elif kind == "error":
                failures[row] = value
        return found

    def _jobs(
        self, batch: pa.RecordBatch, rows: np.ndarray[Any, np.dtype[np.int64]], failures: dict[int, tuple[str, str]]
    ) -> Iterator[tuple[int, Job]]:
        gates = Gates(
            max_html_bytes=self.max_html_bytes,
            max_nodes=self.max_nodes,
            max_depth=self.max_depth,
            max_cells=self.max_cells,
        )
        content = batch.column("_content")
        charsets = batch.column("_charset") if "_charset" in batch.schema.names else pa.nulls(batch.num_rows)
        urls, dates = batch.column("url"), batch.column("date")
        for row in rows.tolist():
            data = content[row].as_buffer()
            try:
                gates.check_size(data.size)
                page = decode_page(data.to_pybytes(), charsets[row].as_py()).encode("utf-8", "replace")
                gates.check(page)
            except GateError as error:
                failures[row] = (error.error, str(error))
                continue
            yield row, Job(page=page, url=urls[row].as_py(), captured=dates[row].as_py())


def _put(column: pa.Array, found: dict[int, Any], name: str) -> pa.Array:
    """The column with the pages' values where they have one."""
    values = {row: value for row, page in found.items() if (value := getattr(page, name)) is not None}
    if not values:
        return column
    mask = np.zeros(len(column), dtype=np.bool_)
    rows = sorted(values)
    mask[rows] = True
    return pc.replace_with_mask(column, pa.array(mask), pa.array([values[row] for row in rows], column.type))


def _blank(text: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """bool[n]: no text, or nothing but white space."""
    blank = pc.equal(pc.utf8_length(pc.utf8_ltrim_whitespace(text)), 0)
    return np.asarray(pc.fill_null(blank, True).to_numpy(zero_copy_only=False), dtype=np.bool_)
