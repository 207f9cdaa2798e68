"""The files of one step for one shard, written together and accounted for."""

from __future__ import annotations

import re
import resource
import time
from collections import Counter
from typing import Any

import pyarrow as pa

from jobs.outcome import Outcome, row_bytes
from shards.digest import MODULUS, row_hashes, to_hex
from shards.manifest import Tally
from shards.schema import DROPPED, QUARANTINE, conform, stored_columns
from shards.store import ParquetWriter, filesystem, join, remove

SIDE_ROW_GROUP_BYTES = 16 << 20
BYTE_RANGE = re.compile(r"@[0-9]+-[0-9]+$")
"""How ingest writes the place of damage of unknown extent."""


class StepFiles:
    """Writers of one step's dropped, signals, quarantine and (the group's last step) data, and its tally.

    data is written even when it is empty, so that every shard has its schema; the others only when they have rows.
    """

    def __init__(self, folder: str, part: str, schema: pa.Schema, *, holds_data: bool) -> None:
        self.folder = folder
        self.part = part
        self.tally = Tally()
        self._writers: dict[str, ParquetWriter] = {}
        self._schema = stored_columns(schema)
        self._holds_data = holds_data
        if holds_data:
            self._writers["data"] = ParquetWriter(self.path("data"), self._schema)

    def path(self, kind: str) -> str:
        return join(self.folder, kind, self.part)

    def take(self, outcome: Outcome, batch: pa.RecordBatch) -> None:
        """Write what a batch left behind at this step and add it to the account. `batch` is what went in."""
        self.count(outcome.sizes, outcome.kept_rows, outcome.dropped_rows, outcome.failed_rows)
        self.tally.rules.update(Counter(outcome.dropped.column("rule").to_pylist()))
        self.count_domains(batch.column("domain"), outcome.kept_rows)
        self.write("dropped", outcome.dropped, DROPPED)
        self.write("quarantine", outcome.quarantined, QUARANTINE)
        if outcome.signals is not None:
            self.tally.observe(outcome.signals)
            self.write("signals", outcome.signals, outcome.signals.schema)

    def lose(self, lost: list[dict[str, Any]], source: str) -> None:
        """Quarantine what never became a row: its place, error and bytes."""
        if not lost:
            return
        size = sum(item["bytes"] for item in lost)
        self.tally.damaged_ranges += sum(bool(BYTE_RANGE.search(item["location"])) for item in lost)
        self.tally.rows.update({"in": len(lost), "quarantined": len(lost)})
        self.tally.bytes.update({"in": size, "quarantined": size})
        rows = [{**item, "id": None, "source": source, "step": "read"} for item in lost]
        self.write("quarantine", pa.RecordBatch.from_pylist(rows, schema=QUARANTINE), QUARANTINE)

    def count(self, sizes: Any, kept: Any, dropped: Any, failed: Any) -> None:
        for key, rows in (("kept", kept), ("dropped", dropped), ("quarantined", failed)):
            self.tally.rows[key] += len(rows)
            self.tally.bytes[key] += int(sizes[rows].sum())
        self.tally.rows["in"] += len(sizes)
        self.tally.bytes["in"] += int(sizes.sum())

    def count_domains(self, domains: pa.Array, kept_rows: Any) -> None:
        for key, column in (("in", domains), ("kept", domains.take(pa.array(kept_rows)))):
            for told in column.value_counts().to_pylist():
                counts = self.tally.domains.setdefault(told["values"] or "", Counter())
                counts[key] += told["counts"]

    def out(self, kept: pa.RecordBatch) -> None:
        """Note the rows that leave: their bytes, their digest, and, in the group's last step, the rows."""
        self.tally.bytes["out"] += int(row_bytes(kept).sum())
        if self._holds_data:
            self._writers["data"].write(kept)
        else:
            hashes = row_hashes(conform(kept, self._schema))
            self.tally.digests["data"] = (self.tally.digests.get("data", 0) + sum(hashes)) % MODULUS

    def write(self, kind: str, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        if batch.num_rows == 0:
            return
        if kind not in self._writers:
            self._writers[kind] = ParquetWriter(self.path(kind), schema, row_group_bytes=SIDE_ROW_GROUP_BYTES)
        self._writers[kind].write(batch)

    def close(self) -> Tally:
        """Let the files appear and finish the account."""
        for kind, writer in self._writers.items():
            writer.close()
            self.tally.digests[kind] = writer.digest
        for kind, writer in self._writers.items():
            files, path = filesystem(self.path(kind))
            size = int(files.size(path))
            if kind == "data":
                told = {"name": self.part, "rows": writer.rows, "bytes": size, "digest": to_hex(writer.digest)}
                self.tally.shards.append(told)
            else:
                self.tally.files.append({"name": f"{kind}/{self.part}", "bytes": size})
        for kind in ("data", "dropped", "signals", "quarantine"):
            if kind not in self._writers:
                remove(self.path(kind))
        self.tally.check(self.folder)
        return self.tally

    def abandon(self) -> None:
        """Leave nothing behind after an error."""
        for writer in self._writers.values():
            writer.__exit__(RuntimeError, RuntimeError("abandoned"), None)


class Clock:
    """Wall and processor seconds of one step over many batches, and the process's peak memory."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.cpu_seconds = 0.0

    def __enter__(self) -> Clock:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._wall
        self.cpu_seconds += time.process_time() - self._cpu


def peak_bytes() -> int:
    """The largest resident memory that this process, or a child of it, has had."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) * 1024
