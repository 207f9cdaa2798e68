"""The account of a store: what came in is what went out, what it cost, and what ought to alarm."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from synth.running.teaching import Teaching, alarms_of, teaching_of
from synth.store import Store
from synth.store.items import CONCLUDED, CURRENT

FAILURES_TOLD: Final = 5


class ConservationError(RuntimeError):
    """Rows or requests that came in and that went out do not add up: a fault of this program, never of a recipe."""


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """Of items or samples: accepted, rejected and failed by reason, pending. total: counted apart from them."""

    total: int = 0
    accepted: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    pending: int = 0

    def check(self, what: str) -> None:
        """Raises ConservationError where the parts are not the whole."""
        parts = self.accepted + sum(self.rejected.values()) + sum(self.failed.values()) + self.pending
        if parts != self.total:
            raise ConservationError(f"{what}: {self.total} came in, {parts} went out")


@dataclass(frozen=True, kw_only=True)
class Requests:
    """sent: all that a teacher was asked for at least once. pending: sent, and neither replied to nor failed, as their
    run was killed; the next run asks again. not_sent is counted by nobody: flows decide what they ask."""

    sent: int = 0
    replied: int = 0
    failed: int = 0
    pending: int = 0

    def check(self) -> None:
        if self.replied + self.failed + self.pending != self.sent:
            raise ConservationError(
                f"requests: {self.sent} were sent, {self.replied} replied, {self.failed} failed, {self.pending} pending"
            )


@dataclass(frozen=True, kw_only=True)
class Account:
    """Of all runs into a folder. items, samples: a ledger a task. ended: of the last run: done, interrupted, error,
    budget.<which> or teacher.<name>; running where it still runs or was killed. seconds, cost: of all runs together,
    hours of teachers included. alarms: one line each, for people."""

    items: Mapping[str, Ledger]
    samples: Mapping[str, Ledger]
    requests: Requests
    teaching: tuple[Teaching, ...]
    ended: str
    seconds: float
    cost: float
    alarms: tuple[str, ...]

    def check(self) -> None:
        """Raises ConservationError where anything does not add up."""
        for task, ledger in self.items.items():
            ledger.check(f"items of {task}")
        for task, ledger in self.samples.items():
            ledger.check(f"samples of {task}")
        self.requests.check()

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        told = {name: getattr(self, name) for name in ("ended", "seconds", "cost")}
        return told | {
            "items": {task: asdict(ledger) for task, ledger in self.items.items()},
            "samples": {task: asdict(ledger) for task, ledger in self.samples.items()},
            "requests": asdict(self.requests), "teaching": [one.plain() for one in self.teaching],
            "alarms": list(self.alarms),
        }  # fmt: skip


def account_of(store: Store) -> Account:
    """From the store alone, so that it can be told of a run that was killed. Not checked yet: `Account.check`."""
    connection = store.connection
    tasks = store.items.tasks()
    runs = store.runs.all()
    teaching = teaching_of(store)
    return Account(
        items={task: _items(connection, row) for task, row in sorted(tasks.items())},
        samples={task: _samples(connection, row) for task, row in sorted(tasks.items())},
        requests=_requests(connection), teaching=teaching, ended=runs[-1]["ended"] if runs else "nothing was run",
        seconds=sum(run["seconds"] for run in runs), cost=sum(run["cost"] for run in runs),
        alarms=(*_failures(connection), *alarms_of(teaching)),
    )  # fmt: skip


def _items(connection: sqlite3.Connection, task: int) -> Ledger:
    of_task = f"FROM items JOIN tasks ON tasks.id = items.task WHERE items.task = ? AND {CURRENT}"
    [total] = connection.execute(f"SELECT count(*) {of_task}", (task,)).fetchone()
    refused = _refused(connection, task)
    grouped = connection.execute(
        f"SELECT CASE WHEN {CONCLUDED} THEN outcome ELSE 'pending' END AS became, reason, count(*) {of_task} "
        "GROUP BY 1, CASE WHEN became = 'pending' THEN '' ELSE reason END",
        (task,),
    )
    return _ledger(grouped, total + sum(refused.values()), refused)


def _refused(connection: sqlite3.Connection, task: int) -> dict[str, int]:
    """Rows that became no item, as the last run that read all of them told."""
    [read_by] = connection.execute("SELECT read_by FROM tasks WHERE id = ?", (task,)).fetchone()
    [last] = connection.execute("SELECT max(run) FROM refused_rows WHERE task = ?", (task,)).fetchone()
    counted = "SELECT reason, count(*) FROM refused_rows WHERE task = ? AND run = ? GROUP BY reason ORDER BY reason"
    return dict(connection.execute(counted, (task, read_by or last)))


def _samples(connection: sqlite3.Connection, task: int) -> Ledger:
    of_task = (
        "FROM samples JOIN tasks ON tasks.id = samples.task JOIN items ON items.task = samples.task AND items.item = "
        f"samples.item WHERE samples.task = ? AND {CURRENT} AND {CONCLUDED}"
    )
    [total] = connection.execute(f"SELECT count(*) {of_task}", (task,)).fetchone()
    grouped = connection.execute(f"SELECT samples.outcome, samples.reason, count(*) {of_task} GROUP BY 1, 2", (task,))
    return _ledger(grouped, total, {})


def _failures(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Why requests have no reply, the most frequent first; those that were replied to since are not told."""
    rows = connection.execute(
        "SELECT stage, error, count(DISTINCT request) FROM failures WHERE request NOT IN (SELECT request FROM replies) "
        "GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT ?",
        (FAILURES_TOLD,),
    )
    return tuple(f"requests without a reply: {count} x {stage}: {error}" for stage, error, count in rows)


def _ledger(grouped: sqlite3.Cursor, total: int, refused: Mapping[str, int]) -> Ledger:
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("accepted", "rejected", "failed", "pending")}
    counts["rejected"].update(refused)
    for outcome, reason, count in grouped:
        counts[outcome][reason] += count
    return Ledger(
        total=total, accepted=counts["accepted"].total(), rejected=dict(sorted(counts["rejected"].items())),
        failed=dict(sorted(counts["failed"].items())), pending=counts["pending"].total(),
    )  # fmt: skip


def _requests(connection: sqlite3.Connection) -> Requests:
    def one(query: str) -> int:
        return int(connection.execute(query).fetchone()[0])

    unanswered = "FROM requests WHERE id NOT IN (SELECT request FROM replies)"
    failed = "(SELECT request FROM failures)"
    return Requests(
        sent=one("SELECT count(*) FROM requests"), replied=one("SELECT count(*) FROM replies"),
        failed=one(f"SELECT count(*) {unanswered} AND id IN {failed}"),
        pending=one(f"SELECT count(*) {unanswered} AND id NOT IN {failed}"),
    )  # fmt: skip
