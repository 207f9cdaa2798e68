"""What a reader hands on: rows in batches, which of them are no documents, and what was lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.dates import DATE
from ingest.nul import without_nul
from ingest.source import Source
from shards.digest import row_ids
from shards.step import DROPS, empty

AS_READ = frozenset({"text", "_content"})  # `extract` brings text to its normal form, and ids are made before
IDENTITY = ("content", "date", "source", "source_id", "url")

TRANSIENT_FIELDS = pa.schema(
    [
        ("_content", pa.large_binary()),
        ("_content_type", pa.string()),
        ("_charset", pa.string()),
        ("_bytes", pa.int64()),
    ]
)


@dataclass(frozen=True, kw_only=True)
class Lost:
    """Bytes that did not become a row. location: "file:line" or "file@start-end". message: one line, never text.

    bytes: of the record as it came in; for damage of unknown extent, of the file's range that was given up.
    """

    location: str
    error: str
    message: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Records:
    """Some rows of a unit, in input order.

    batch: every row that could be read, documents or not, with the columns of `read_schema`; `_bytes` is the size of
        the row's record as it came in (a WARC record and a line of a table after unpacking), so that the sum of
        `_bytes` and of lost bytes is the bytes in. Rows that are no documents carry no text and no `_content`.
    drops: DROPS, which rows of `batch` are no documents, and why.
    lost: what failed to decode.
    """

    batch: pa.RecordBatch
    drops: pa.RecordBatch
    lost: tuple[Lost, ...] = ()

    @property
    def kept(self) -> pa.RecordBatch:
        """The rows of `batch` that are documents."""
        if self.drops.num_rows == 0:
            return self.batch
        return self.batch.take(pa.array(self.kept_rows))

    @property
    def kept_rows(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        keep = np.ones(self.batch.num_rows, dtype=np.bool_)
        keep[self.drops.column("row").to_numpy()] = False
        return np.flatnonzero(keep).astype(np.int32)


@dataclass(frozen=True, kw_only=True)
class Drop:
    """Why a row is no document. value: a number where the evidence is one (the HTTP status)."""

    rule: str
    value: float | None = None
    evidence: str | None = None


def read_schema(source: Source) -> pa.Schema:
    """The columns of `Records.batch`: the source's own and the transient ones."""
    return pa.schema([*source.schema(), *TRANSIENT_FIELDS])


def build_batch(source: Source, columns: dict[str, pa.Array], rows: int) -> pa.RecordBatch:
    """A batch of `read_schema` from the columns that a reader has; the others are null, `id` is made here."""
    given = {name: array if name in AS_READ else without_nul(array) for name, array in columns.items()}
    given["source"] = _repeat(source.name, rows)
    given["domain"] = _repeat(source.mixing_domain, rows)
    given["id"] = _ids(given, rows)
    arrays = []
    schema = read_schema(source)
    for column in schema:
        array = given.get(column.name)
        if array is None:
            array = pa.nulls(rows, column.type)
        arrays.append(array if array.type == column.type else array.cast(column.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _ids(given: dict[str, pa.Array], rows: int) -> pa.Array:
    """xxh3-128 of source, source_id, url, date and content as ingested; never of a position."""
    text, content = given.get("text"), given.get("_content")
    if text is None:
        body = content if content is not None else pa.nulls(rows, pa.large_binary())
    else:
        body = text.cast(pa.large_string()).cast(pa.large_binary())
        if content is not None:
            body = pc.coalesce(body, content)
    columns = {
        "content": body,
        "date": given.get("date", pa.nulls(rows, DATE)),
        "source": given["source"],
        "source_id": given.get("source_id", pa.nulls(rows, pa.string())),
        "url": given.get("url", pa.nulls(rows, pa.string())),
    }
    return row_ids(pa.RecordBatch.from_arrays([columns[name] for name in IDENTITY], names=list(IDENTITY)))


def _repeat(value: str, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.string()), rows)


def drops_batch(drops: Sequence[tuple[int, Drop]]) -> pa.RecordBatch:
    """DROPS of (row, why)."""
    if not drops:
        return empty(DROPS)
    columns = [
        pa.array([row for row, _ in drops], pa.int32()),
        pa.array([drop.rule for _, drop in drops], pa.string()),
        pa.array([[drop.rule] for _, drop in drops], pa.list_(pa.string())),
        pa.array([drop.value for _, drop in drops], pa.float64()),
        pa.nulls(len(drops), pa.float64()),
        pa.array([drop.evidence for _, drop in drops], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=DROPS)


@dataclass
class Gatherer:
    """Collects rows one at a time for readers whose records come one at a time (WARC, files, bad lines)."""

    source: Source
    batch_rows: int
    batch_bytes: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    drops: list[tuple[int, Drop]] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    places: list[str] = field(default_factory=list)  # of the rows
    held: int = 0  # bytes of content gathered

    def add(  # the columns of a record, as they are called in it
        self,
        *,
        place: str,
        size: int,
        source_id: str | None = None,
        url: str | None = None,
        date: datetime | None = None,
        text: str | None = None,
        content: bytes | None = None,
        content_type: str | None = None,
        charset: str | None = None,
        drop: Drop | None = None,
    ) -> None:
        if drop is not None:
            text = content = None
            self.drops.append((len(self.rows), drop))
        row = {
            "source_id": source_id,
            "url": url,
            "date": date,
            "text": text,
            "_content": content,
            "_content_type": content_type,
            "_charset": charset,
            "_bytes": size,
        }
        self.rows.append(row)
        self.places.append(place)
        self.held += len(content) if content is not None else len(text) if text is not None else 0

    def lose(self, location: str, error: str, message: str, size: int) -> None:
        self.lost.append(Lost(location=location, error=error, message=message, bytes=size))

    @property
    def full(self) -> bool:
        return len(self.rows) >= self.batch_rows or self.held >= self.batch_bytes or len(self.lost) >= self.batch_rows

    def take(self) -> Records | None:
        """What was gathered so far, or None; the gatherer is empty afterwards."""
        if not self.rows and not self.lost:
            return None
        try:
            batch = self._batch(self.rows)
        except Exception:
            self._part_with_the_odd()
            batch = self._batch(self.rows)
        records = Records(batch=batch, drops=drops_batch(self.drops), lost=tuple(self.lost))
        self.rows, self.drops, self.lost, self.places, self.held = [], [], [], [], 0
        return records

    def _batch(self, rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
        types = {name: read_schema(self.source).field(name).type for name in (rows[0] if rows else {})}
        columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()}
        return build_batch(self.source, columns, len(rows))

    def _part_with_the_odd(self) -> None:
        """Lose the rows that Arrow refuses (a lone surrogate is in no UTF-8), so that the others arrive."""
        good: list[int] = []
        for number, row in enumerate(self.rows):
            try:
                self._batch([row])
            except Exception as error:
                self.lose(self.places[number], "encoding", f"cannot be stored: {type(error).__name__}", row["_bytes"])
            else:
                good.append(number)
        drops = dict(self.drops)
        self.rows = [self.rows[number] for number in good]
        self.drops = [(at, drops[number]) for at, number in enumerate(good) if number in drops]
