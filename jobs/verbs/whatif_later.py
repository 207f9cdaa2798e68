"""Documents that a changed threshold would keep, sent through the per-document steps after it, which are the run's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.outcome import apply
from jobs.plan import StepPlan
from jobs.report.database import Output
from jobs.verbs.whatif_changes import Place
from shards.schema import DOCUMENT

BATCH = 1024
HAVE = frozenset({"id", "text", "url", "source", "domain"})
"""What a dropped row still has of a document; a step that reads more cannot be tried on it."""
FATES = pa.schema(
    [
        ("id", pa.string()),
        ("at", pa.int32()),
        ("outcome", pa.string()),
        ("step", pa.string()),
        ("rule", pa.string()),
        ("rows", pa.int64()),
    ]
)

Fate = tuple[str, str, str | None, str | None]
"""id, outcome, step, rule."""


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """Who looks at the rows that come to step `number`, with their texts as they are there."""

    number: int
    read: Callable[[pa.RecordBatch], None]


class Later:
    """The per-document steps of a run that come after a place, as they would be."""

    def __init__(self, found: Output, told: Sequence[Place]) -> None:
        self.found = found
        self.places = [place for place in told if not place.is_corpus]
        self.domains = {
            source["name"]: source.get("domain") or source["name"]
            for source in (found.run.get("recipe") or {}).get("sources", [])
            if "name" in source
        }
        found.connection.execute(
            'CREATE TABLE fates (id VARCHAR, "at" INTEGER, outcome VARCHAR, step VARCHAR, rule VARCHAR, rows BIGINT)'
        )

    def unreadable(self, after: int) -> list[str]:
        """Steps after a place that cannot be tried on a dropped row."""
        return [place.name for place in self._after(after) if not self._reads(place) <= HAVE]

    def _reads(self, place: Place) -> frozenset[str]:
        reads: frozenset[str] = place.new.reads
        return reads

    def _after(self, number: int) -> list[Place]:
        return [place for place in self.places if place.number > number]

    def send(self, query: str, parameters: Sequence[Any], after: int, arrivals: Arrivals | None = None) -> None:
        """Send rows (id, source, url, text, rows) through the steps after a place and note their fates, as of `after`.

        outcome is kept, dropped, quarantined, or unknown where the text was not kept or a step cannot be tried.
        """
        blocked, free = bool(self.unreadable(after)), arrivals is None and not self._after(after)
        for batch in self.found.stream(query, parameters, BATCH):
            counts = dict(zip(batch.column("id").to_pylist(), batch.column("rows").to_pylist(), strict=True))
            if free:  # nothing comes after, so that no text is asked for
                self._note([(one, "kept", None, None) for one in counts], counts, after)
                continue
            known = batch.column("text").is_valid()
            lost = batch if blocked else batch.filter(pc.invert(known))
            fates: list[Fate] = [(one, "unknown", None, None) for one in lost.column("id").to_pylist()]
            if not blocked:
                fates += self._through(self._documents(batch.filter(known)), after, arrivals)
            self._note(fates, counts, after)

    def _through(self, batch: pa.RecordBatch, after: int, arrivals: Arrivals | None) -> Iterator[Fate]:
        for place in self._after(after):
            if batch.num_rows == 0:
                return
            if arrivals is not None and place.number > arrivals.number:
                arrivals.read(batch)
                arrivals = None
            outcome = apply(self._plan(place), batch, keep_dropped=0.0)
            for row in outcome.dropped.select(["id", "rule"]).to_pylist():
                yield row["id"], "dropped", place.name, row["rule"]
            for row in outcome.quarantined.select(["id", "error"]).to_pylist():
                yield row["id"], "quarantined", place.name, row["error"]
            batch = outcome.kept
        if arrivals is not None and batch.num_rows:
            arrivals.read(batch)
        for one in batch.column("id").to_pylist():
            yield one, "kept", None, None

    def _plan(self, place: Place) -> StepPlan:
        entry = place.after
        return StepPlan(
            name=entry.name,
            kind=entry.kind,
            folder="",
            step=entry.step,
            domains=entry.domains,
            settings={},
            code={},
            fingerprint="",
            schema=DOCUMENT,
        )

    def _documents(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Dropped rows as documents; the domain is that of their source."""
        sources = batch.column("source").to_pylist()
        columns = {
            "id": batch.column("id"),
            "source_id": pa.nulls(batch.num_rows, pa.string()),
            "source": batch.column("source"),
            "domain": pa.array([self.domains.get(source, source) for source in sources], pa.string()),
            "url": batch.column("url"),
            "date": pa.nulls(batch.num_rows, pa.timestamp("us", tz="UTC")),
            "text": batch.column("text").cast(pa.large_string()),
        }
        return pa.RecordBatch.from_arrays([columns[field.name].cast(field.type) for field in DOCUMENT], schema=DOCUMENT)

    def _note(self, fates: list[Fate], counts: dict[str, int], after: int) -> None:
        rows = [
            {"id": one, "at": after, "outcome": outcome, "step": step, "rule": rule, "rows": counts[one]}
            for one, outcome, step, rule in fates
        ]
        self.found.insert("fates", pa.Table.from_pylist(rows, schema=FATES))


def dropped_rows(place: Place) -> tuple[str, list[Any]]:
    """The query of the rows that a changed step would keep, with their texts as they came to it."""
    return (
        "SELECT d.id, any_value(d.source) AS source, any_value(d.url) AS url, any_value(d.text) AS text, "
        "any_value(m.rows) AS rows "
        'FROM dropped d JOIN moved m ON m.id = d.id AND m."at" = ? AND m.kept WHERE d.step = ? GROUP BY d.id',
        [place.number, place.name],
    )
