"""The store's front door: opening, locking, committing."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from synth.errors import SynthError
from synth.items import Item, Outcome, Sample
from synth.store.answers import Answers
from synth.store.items import Items
from synth.store.lock import FolderLock
from synth.store.packing import pack_json, unpack_json
from synth.store.tables import connect

FILE: Final = "store.sqlite"
LOCK: Final = "store.lock"
COMMIT_ROWS: Final = 1024
COMMIT_SECONDS: Final = 0.25
"""Rows and seconds after which a write commits by itself; the driver commits sooner, before it lets a request go."""


class Store:
    """One folder's store. A row is there for good once it is committed; a process that dies loses only what it had
    written since. Not for network file systems: SQLite's write-ahead log needs shared memory.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection, lock: FolderLock | None) -> None:
        self.folder = folder
        self.connection = connection
        self._lock = lock
        self._rows, self._since = 0, 0.0
        self.answers = Answers(connection, self._written)
        self.items = Items(connection, self._written)
        self.runs = Runs(connection, self._written)
        if lock is not None:
            connection.execute("BEGIN")

    @classmethod
    def open(cls, folder: str | Path, *, read_only: bool = False) -> Store:
        """The store of a folder, made where there is none. Raises SynthError where another process writes to it, where
        it is of another format, or, for readers, where it is not there."""
        folder = Path(folder)
        if read_only:
            if not (folder / FILE).exists():
                raise SynthError(f"{folder}: nothing was run here yet; name the folder of a run")
            return cls(folder, connect(folder / FILE, read_only=True), None)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FolderLock(folder / LOCK)
        except OSError as error:
            raise SynthError(f"{folder}: {error.strerror}; name a folder that can be written to") from None
        try:
            return cls(folder, connect(folder / FILE, read_only=False), lock)
        except BaseException:
            lock.release()
            raise

    def commit(self) -> None:
        """What was written is there for good."""
        if self._rows:
            self.connection.execute("COMMIT")
            self.connection.execute("BEGIN")
            self._rows = 0

    @property
    def uncommitted(self) -> int:
        """Rows written since the last commit."""
        return self._rows

    def samples(self, outcome: Outcome | None = None) -> Iterator[tuple[str, Sample]]:
        """Task and sample; see Items.samples."""
        return self.items.samples(outcome)

    def rows(self, outcome: Outcome | None = None) -> Iterator[tuple[str, Item, Sample, tuple[str, ...]]]:
        """What exports take: task, item, sample, teachers; see Items.rows."""
        return self.items.rows(outcome)

    def close(self) -> None:
        """Commit, and let others write; allowed twice."""
        if self._lock is not None:
            if self.connection.in_transaction:
                self.connection.execute("COMMIT")
            self._lock.release()
            self._lock = None
        self.connection.close()

    def _written(self) -> None:
        now = time.monotonic()
        if not self._rows:
            self._since = now
        self._rows += 1
        if self._rows >= COMMIT_ROWS or now - self._since > COMMIT_SECONDS:
            self.commit()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Runs:
    """Part of a store: each run's settings, seconds, counts and cost. ended: running, done, interrupted, or why it
    stopped; one that is `running` in a store that nobody writes to was killed."""

    def __init__(self, connection: sqlite3.Connection, written: Any) -> None:
        self._connection, self._written = connection, written

    def begin(self, settings: Mapping[str, Any]) -> int:
        """The number of a new run, from 1. The day is for people; nothing that is made depends on it."""
        began = datetime.now(UTC).isoformat(timespec="seconds")
        told = (pack_json(dict(settings)), began)
        made = self._connection.execute("INSERT INTO runs VALUES (NULL, ?, ?, 0.0, 'running', '{}', 0.0)", told)
        self._written()
        return int(made.lastrowid or 0)

    def tell(self, run: int, *, seconds: float, cost: float, counts: Mapping[str, int], ended: str) -> None:
        """How far it is."""
        self._connection.execute(
            "UPDATE runs SET seconds = ?, cost = ?, counts = ?, ended = ? WHERE id = ?",
            (seconds, cost, json.dumps(counts), ended, run),
        )
        self._written()

    def settings(self) -> dict[str, Any]:
        """Of the last run; {} where there was none."""
        row = self._connection.execute("SELECT settings FROM runs ORDER BY id DESC LIMIT 1").fetchone()
        return {} if row is None else dict(unpack_json(row[0]))

    def all(self) -> list[dict[str, Any]]:
        """began, seconds, ended, counts, cost of each, in order."""
        rows = self._connection.execute("SELECT id, began, seconds, ended, counts, cost FROM runs ORDER BY id")
        return [
            {"run": run, "began": began, "seconds": seconds, "ended": ended, "counts": json.loads(counts), "cost": cost}
            for run, began, seconds, ended, counts, cost in rows
        ]
