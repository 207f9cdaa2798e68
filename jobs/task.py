"""The work on one shard: read, pass through fused steps, write, account. Engines call it; it knows none of them.

A task's record is written after its files, so a shard is done exactly when its record is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest import Unit, read
from jobs.outcome import Outcome, apply, row_bytes, settle
from jobs.plan import StepPlan
from jobs.writing import Clock, StepFiles, peak_bytes
from shards.manifest import Tally
from shards.step import DROPS, Judged, Verdicts, empty
from shards.store import filesystem, join, read_batches, read_json, tables, write_json

UNITS = ".units"
NOT_WARMED = ("read", "extract", "datatrove", "python")
"""`extract` keeps a child process, which is no one's to share; a user's code may do anything, so it runs isolated."""


@dataclass(frozen=True, kw_only=True)
class ShardWork:
    """What every kind of task shares: where a group's results lie, and how many shards it has."""

    out: str
    steps: tuple[StepPlan, ...]
    shards: int
    keep_dropped: float

    @property
    def fingerprint(self) -> str:
        return self.steps[-1].fingerprint

    def part(self, number: int) -> str:
        return f"part-{number:05d}-of-{self.shards:05d}.parquet"

    def note(self, name: str) -> str:
        return join(self.out, self.steps[-1].folder, UNITS, name)

    def __call__(self, number: int) -> None:
        """Do one shard: write its files, then its record."""
        raise NotImplementedError

    def record(self, number: int) -> dict[str, Tally] | None:
        """The tallies of a finished shard by step; None when it is not finished for these settings."""
        found = read_json(self.note(f"{number:05d}.json"))
        if found is None or found.get("fingerprint") != self.fingerprint:
            return None
        return {name: Tally.from_json(told) for name, told in found["steps"].items()}

    def open(self, number: int) -> list[StepFiles]:
        last = self.steps[-1]
        return [
            StepFiles(join(self.out, step.folder), self.part(number), step.schema, holds_data=step is last)
            for step in self.steps
        ]

    def finish(self, number: int, files: list[StepFiles], clocks: list[Clock]) -> None:
        told = {}
        for step, opened, clock in zip(self.steps, files, clocks, strict=True):
            opened.tally.seconds, opened.tally.cpu_seconds = clock.seconds, clock.cpu_seconds
            opened.tally.peak_bytes = peak_bytes()
            told[step.name] = opened.close().to_json()
        write_json(self.note(f"{number:05d}.json"), {"fingerprint": self.fingerprint, "steps": told})


@dataclass(frozen=True, kw_only=True)
class DocumentTask(ShardWork):
    """Fused per-document steps over units of raw input (the first group) or over the shards of the group before."""

    units: tuple[Unit, ...] = ()
    inputs: tuple[str, ...] = ()
    limit: int | None = None
    batch_rows: int = 1024

    def __call__(self, number: int) -> None:
        files = self.open(number)
        clocks = [Clock() for _ in self.steps]
        try:
            for batch, start in self._batches(number, files, clocks):
                self._pass(batch, start, files, clocks)
        except BaseException:
            for opened in files:
                opened.abandon()
            raise
        self.finish(number, files, clocks)

    def warm(self) -> None:
        """Call each step on no rows: it loads its models, lists and indexes, which the shards' processes then share."""
        for plan in self.steps:
            if plan.kind not in NOT_WARMED:
                plan.step(empty(plan.schema))

    def _batches(
        self, number: int, files: list[StepFiles], clocks: list[Clock]
    ) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Batches and the position of the step that they go to next."""
        if self.units:
            yield from ((batch, 1) for batch in self._read(self.units[number], files[0], clocks[0]))
        else:
            yield from ((batch, 0) for batch in read_batches(self.inputs[number], batch_rows=self.batch_rows))

    def _read(self, unit: Unit, files: StepFiles, clock: Clock) -> Iterator[pa.RecordBatch]:
        """The documents of a unit; records that are none, and what is lost, are written to the step `read`."""
        left = self.limit
        records = read(unit, batch_rows=self.batch_rows)
        while left is None or left > 0:
            with clock:
                told = next(records, None)
                if told is None:
                    return
                batch, drops, lost = told.batch, told.drops, told.lost
                if left is not None:
                    batch, drops = batch.slice(0, left), drops.filter(pc.less(drops.column("row"), left))
                    lost = lost[: left - batch.num_rows]
                    left -= batch.num_rows + len(lost)
                sizes = batch.column("_bytes").to_numpy().astype(np.int64)
                keep = np.setdiff1d(np.arange(batch.num_rows, dtype=np.int32), drops.column("row").to_numpy())
                judged = Judged(kept=batch.take(pa.array(keep)), kept_rows=keep, drops=drops)
                outcome = settle("read", batch, judged, sizes=sizes, keep_dropped=self.keep_dropped)
                files.take(outcome, batch)
                files.lose([vars(item) for item in lost], unit.source.name)
                files.out(outcome.kept)
            yield outcome.kept

    def _pass(self, batch: pa.RecordBatch, start: int, files: list[StepFiles], clocks: list[Clock]) -> None:
        for at in range(start, len(self.steps)):
            with clocks[at]:
                outcome = apply(self.steps[at], batch, keep_dropped=self.keep_dropped)
                files[at].take(outcome, batch)
                files[at].out(outcome.kept)
            batch = outcome.kept


@dataclass(frozen=True, kw_only=True)
class ApplyTask(ShardWork):
    """A whole-corpus step's verdicts applied to one shard; the layout and order of shards stay as they were."""

    inputs: tuple[str, ...]
    verdicts: Verdicts
    decide_seconds: float = 0.0
    """What the comparing took, as one process sees it; shard 0's account carries it."""
    batch_rows: int = 1024

    def __call__(self, number: int) -> None:
        files = self.open(number)
        clock = Clock()
        try:
            with clock:
                removed, survivors = of_shard(self.verdicts.removed, number), of_shard(self.verdicts.survivors, number)
                start = 0
                for batch in read_batches(self.inputs[number], batch_rows=self.batch_rows):
                    batch = with_copies(batch, survivors, start)
                    outcome = settle_verdicts(self.steps[0].name, batch, removed, start, self.keep_dropped)
                    files[0].take(outcome, batch)
                    files[0].out(outcome.kept)
                    start += batch.num_rows
        except BaseException:
            files[0].abandon()
            raise
        if number == 0:
            clock.seconds += self.decide_seconds
        self.finish(number, files, [clock])


def settle_verdicts(name: str, batch: pa.RecordBatch, removed: pa.Table, start: int, keep_dropped: float) -> Outcome:
    """Split a batch whose first row is row `start` of its shard by the removals of that shard."""
    rows = removed.column("row").to_numpy() - start
    here = np.flatnonzero((rows >= 0) & (rows < batch.num_rows))
    here = here[np.argsort(rows[here], kind="stable")]
    told = removed.take(pa.array(here)).combine_chunks()
    rule = told.column("rule").combine_chunks()
    columns = {
        "row": pa.array(rows[here], pa.int32()),
        "rule": rule,
        "rules": pa.array([[name] for name in rule.to_pylist()], pa.list_(pa.string())),
        "value": told.column("similarity"),
        "threshold": told.column("threshold"),
        "evidence": told.column("kept_id"),
    }
    drops = pa.table(columns).cast(DROPS).combine_chunks().to_batches()
    keep = np.setdiff1d(np.arange(batch.num_rows, dtype=np.int32), rows[here].astype(np.int32))
    judged = Judged(kept=batch.take(pa.array(keep)), kept_rows=keep, drops=drops[0] if drops else empty(DROPS))
    return settle(name, batch, judged, sizes=row_bytes(batch), keep_dropped=keep_dropped)


def with_copies(batch: pa.RecordBatch, survivors: pa.Table, start: int) -> pa.RecordBatch:
    """The batch with `copies` and `first_seen`: its own, or for a survivor those of all that it stands for."""
    present = batch.schema.names
    copies = batch.column("copies").to_numpy().copy() if "copies" in present else np.ones(batch.num_rows, np.int32)
    seen_now = batch.column("first_seen") if "first_seen" in present else batch.column("date")
    seen = seen_now.cast(pa.timestamp("us", tz="UTC")).to_pylist() if survivors.num_rows else None
    rows: npt.NDArray[Any] = survivors.column("row").to_numpy() - start
    here = np.flatnonzero((rows >= 0) & (rows < batch.num_rows))
    copies[rows[here]] = survivors.column("copies").to_numpy()[here]
    if seen is not None:
        for at, value in zip(rows[here], survivors.column("first_seen").take(pa.array(here)).to_pylist(), strict=True):
            seen[at] = value
        seen_now = pa.array(seen, pa.timestamp("us", tz="UTC"))
    for name, column in (("copies", pa.array(copies, pa.int32())), ("first_seen", seen_now)):
        at = batch.schema.get_field_index(name)
        field_ = pa.field(name, column.type)
        batch = batch.append_column(field_, column) if at < 0 else batch.set_column(at, field_, column)
    return batch


def of_shard(table: str, shard: int) -> pa.Table:
    """The rows of a verdicts table about one shard; row groups of other shards are not read."""
    parts = []
    for path in tables(table):
        files, inner = filesystem(path)
        parts.append(pq.read_table(inner, filesystem=files, filters=[("shard", "==", shard)]))
    return pa.concat_tables(parts)
