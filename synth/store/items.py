"""What runs work on and what they made: tasks, items with their outcome, samples, allocations of rollouts."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from synth.items import Item, Outcome, Sample
from synth.store.packing import (
    item_of,
    item_plain,
    pack_json,
    pack_keys,
    sample_of,
    sample_plain,
    short,
    unpack_json,
    unpack_keys,
)

CURRENT: Final = "items.seen >= tasks.read_by"
"""Items that the input still has: seen by the last run that read it to its end, or by one after that."""

CONCLUDED: Final = "items.concluded = tasks.fingerprint"
"""Items whose outcome is of the settings that the task has now."""

SAMPLE: Final = (
    "samples.item, samples.number, samples.kind, samples.outcome, samples.reason, samples.tokens, samples.keys, "
    "samples.data"
)


@dataclass(frozen=True, kw_only=True)
class Known:
    """What a store knows of an item. fingerprint: of its content; concluded: of the task's settings under which it was
    concluded, b"" while it is pending. verifiers: kinds and versions that its verdicts came from, as JSON.
    again: a request got no reply that another run may get."""

    row: int
    fingerprint: bytes
    concluded: bytes
    seen: int
    outcome: Outcome
    verifiers: str
    again: bool


class Items:
    """Part of a store. Rows are counted by task; a task's row is that of its name in the recipe."""

    def __init__(self, connection: sqlite3.Connection, written: Callable[[], None]) -> None:
        self._connection, self._written = connection, written

    def task(self, name: str, kind: str, fingerprint: bytes) -> int:
        """The row of a task, which from now on has these settings."""
        self._connection.execute(
            "INSERT INTO tasks VALUES (NULL, ?, ?, ?, 0) ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, "
            "fingerprint = excluded.fingerprint",
            (name, kind, fingerprint),
        )
        self._written()
        [row] = self._connection.execute("SELECT id FROM tasks WHERE name = ?", (name,)).fetchone()
        return int(row)

    def tasks(self) -> dict[str, int]:
        """Rows by name, in the order of their first run."""
        return dict(self._connection.execute("SELECT name, id FROM tasks ORDER BY id"))

    def find(self, task: int, item: str) -> Known | None:
        row = self._connection.execute(
            "SELECT id, fingerprint, concluded, seen, outcome, verifiers, again FROM items WHERE task = ? AND item = ?",
            (task, item),
        ).fetchone()
        if row is None:
            return None
        return Known(
            row=row[0], fingerprint=row[1], concluded=row[2], seen=row[3], outcome=Outcome(row[4]), verifiers=row[5],
            again=bool(row[6]),
        )  # fmt: skip

    def see(self, task: int, item: Item, fingerprint: bytes, known: Known | None, run: int) -> None:
        """An item that a run has read. One whose content changed is pending again."""
        if known is None:
            data = pack_json(item_plain(item))
            told = (task, item.id, fingerprint, run, Outcome.PENDING, "", b"", "{}", 0, 0, data)
            self._connection.execute("INSERT INTO items VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", told)
        elif known.fingerprint == fingerprint:
            self._connection.execute("UPDATE items SET seen = ? WHERE id = ?", (run, known.row))
        else:
            self._connection.execute(
                "UPDATE items SET seen = ?, data = ?, fingerprint = ?, concluded = ? WHERE id = ?",
                (run, pack_json(item_plain(item)), fingerprint, b"", known.row),
            )
        self._written()

    def refuse(self, task: int, place: str, reason: str, run: int) -> None:
        """A row of the input that becomes no item."""
        self._connection.execute(
            "INSERT INTO refused_rows VALUES (NULL, ?, ?, ?, ?)", (task, run, short(place), reason)
        )
        self._written()

    def read_to_end(self, task: int, run: int) -> None:
        """A run has seen all that the input has now."""
        self._connection.execute("UPDATE tasks SET read_by = ? WHERE id = ?", (run, task))
        self._written()

    def conclude(
        self, task: int, item: str, samples: Sequence[Sample], *, outcome: Outcome, reason: str, concluded: bytes,
        verifiers: str, again: bool, by: int = 0,
    ) -> None:  # fmt: skip
        """An item's outcome and samples, in place of those that it had. by: the pass of a run that says so.

        Raises TypeError, ValueError, OverflowError or RecursionError for samples that are no JSON.
        """
        rows = [
            (task, item, one.number, one.kind, one.outcome, short(one.reason), one.tokens, pack_keys(one.keys),
             pack_json(sample_plain(one)))
            for one in samples
        ]  # fmt: skip
        self._connection.execute("DELETE FROM samples WHERE task = ? AND item = ?", (task, item))
        self._connection.executemany("INSERT INTO samples VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self._connection.execute(
            "UPDATE items SET outcome = ?, reason = ?, concluded = ?, verifiers = ?, again = ?, by = ? "
            "WHERE task = ? AND item = ?",
            (outcome, short(reason), concluded, verifiers, again, by, task, item),
        )
        self._written()

    def pilot(self, task: int, item: str) -> tuple[int, int, int | None] | None:
        """Trials, how many of them were right, and the rollouts allocated, None while there is no allocation."""
        where = "WHERE task = ? AND item = ?"
        found = self._connection.execute(f"SELECT trials, right, rollouts FROM allocations {where}", (task, item))
        row: tuple[int, int, int | None] | None = found.fetchone()
        return row

    def tell_pilot(self, task: int, item: str, trials: int, right: int) -> None:
        told = (task, item, trials, right)
        self._connection.execute("INSERT OR IGNORE INTO allocations VALUES (?, ?, ?, ?, NULL)", told)
        self._written()

    def unallocated(self, task: int) -> list[tuple[str, int, int]]:
        """Item, trials and right of current items whose pilot is done and who have no rollouts yet, in their order."""
        return self._connection.execute(
            "SELECT items.item, trials, right FROM items JOIN tasks ON tasks.id = items.task JOIN allocations "
            f"ON allocations.task = items.task AND allocations.item = items.item WHERE items.task = ? AND {CURRENT} "
            "AND rollouts IS NULL ORDER BY items.item",
            (task,),
        ).fetchall()

    def allocate(self, task: int, rollouts: Sequence[tuple[str, int]]) -> None:
        """Rollouts by item, all or none."""
        self._connection.executemany(
            "UPDATE allocations SET rollouts = ? WHERE task = ? AND item = ?",
            [(count, task, item) for item, count in rollouts],
        )
        self._written()

    def samples(self, outcome: Outcome | None = None) -> Iterator[tuple[str, Sample]]:
        """Task and sample of each current item that is concluded, by task, item and number."""
        for task, row in self._joined(SAMPLE, outcome):
            yield task, sample_of(row)

    def rows(self, outcome: Outcome | None = None) -> Iterator[tuple[str, Item, Sample, tuple[str, ...]]]:
        """Task, item, sample and the names of the teachers that made it, by task, item and number."""
        for task, (data, *row) in self._joined(f"items.data, {SAMPLE}", outcome):
            yield task, item_of(unpack_json(data)), sample_of(row), self._teachers(row[6])

    def items(self) -> Iterator[tuple[str, Item, Outcome, str]]:
        """Task, item, outcome and reason of each current item, by task and item."""
        for task, row in sorted(self.tasks().items()):
            for data, outcome, reason, concluded in self._connection.execute(
                f"SELECT data, outcome, reason, {CONCLUDED} FROM items JOIN tasks ON tasks.id = items.task "
                f"WHERE items.task = ? AND {CURRENT} ORDER BY items.item",
                (row,),
            ):
                told = (Outcome(outcome), reason) if concluded else (Outcome.PENDING, "")
                yield task, item_of(unpack_json(data)), *told

    def _joined(self, columns: str, outcome: Outcome | None) -> Iterator[tuple[str, Any]]:
        """A task at a time, so that the index gives the order and nothing is sorted."""
        where = "" if outcome is None else f"AND samples.outcome = '{outcome.value}'"
        for task, row in sorted(self.tasks().items()):
            found = self._connection.execute(
                f"SELECT {columns} FROM samples JOIN tasks ON tasks.id = samples.task JOIN items ON items.task = "
                f"samples.task AND items.item = samples.item WHERE samples.task = ? AND {CURRENT} AND {CONCLUDED} "
                f"{where} ORDER BY samples.item, samples.number",
                (row,),
            )
            yield from ((task, values) for values in found)

    def _teachers(self, keys: bytes) -> tuple[str, ...]:
        """Names of who answered the requests of these keys, each once."""
        names = (
            self._connection.execute(
                "SELECT name FROM requests JOIN teachers ON teachers.id = teacher WHERE key = ?", (bytes.fromhex(key),)
            ).fetchone()
            for key in unpack_keys(keys)
        )
        return tuple(dict.fromkeys(name for (name,) in filter(None, names)))
