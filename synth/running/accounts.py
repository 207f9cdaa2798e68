"""The account of a store: what came in is what went out, what it cost, and what ought to alarm."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from synth.store import Store
from synth.store.items import CONCLUDED, CURRENT

TRUNCATION_ALARM: Final = 0.02
"""Share of replies that were cut; what is cut is the hard part (reference: small limits silently collapse scores)."""

LAST_KEY: Final = "substr(samples.keys, -16)"


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
class Teaching:
    """Of a task, a teacher and a temperature (to a tenth). seconds: of requests, summed; cost: by the prices of tokens.
    accepted: samples whose last request was such. length_bias: mean tokens of their replies over the mean of all."""

    task: str
    teacher: str
    temperature: float
    replies: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    seconds: float
    cost: float
    truncated: int
    samples: int
    accepted: int
    accepted_tokens: int

    @property
    def truncated_share(self) -> float:
        return self.truncated / self.replies if self.replies else 0.0

    @property
    def length_bias(self) -> float | None:
        """Below 1: the longer replies are what is lost."""
        if not self.accepted or not self.completion_tokens:
            return None
        return (self.accepted_tokens / self.accepted) / (self.completion_tokens / self.replies)

    def per_accepted(self) -> dict[str, float | None]:
        """tokens, cost and seconds of an accepted sample; None while there is none."""
        spent = {
            "tokens": float(self.prompt_tokens + self.completion_tokens), "cost": self.cost, "seconds": self.seconds,
        }  # fmt: skip
        return {name: amount / self.accepted if self.accepted else None for name, amount in spent.items()}

    def plain(self) -> dict[str, Any]:
        return asdict(self) | {
            "truncated_share": self.truncated_share, "length_bias": self.length_bias,
            "per_accepted": self.per_accepted(),
        }  # fmt: skip


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
    teaching = _teaching(connection, _prices(store.runs.settings().get("teachers", {})))
    return Account(
        items={task: _items(connection, row) for task, row in sorted(tasks.items())},
        samples={task: _samples(connection, row) for task, row in sorted(tasks.items())},
        requests=_requests(connection), teaching=teaching, ended=runs[-1]["ended"] if runs else "nothing was run",
        seconds=sum(run["seconds"] for run in runs), cost=sum(run["cost"] for run in runs), alarms=_alarms(teaching),
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


def _prices(teachers: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Of a million tokens of prompts and of replies, by teacher, as the last run's settings say."""
    return {name: (one.get("price_prompt", 0.0), one.get("price_completion", 0.0)) for name, one in teachers.items()}


def _teaching(connection: sqlite3.Connection, prices: Mapping[str, tuple[float, float]]) -> tuple[Teaching, ...]:
    made = {
        tuple(row[:3]): row[3:]
        for row in connection.execute(
            "SELECT tasks.name, teachers.name, round(replies.temperature, 1), count(*), "
            "sum(samples.outcome = 'accepted'), "
            "sum(CASE WHEN samples.outcome = 'accepted' THEN completion_tokens ELSE 0 END) "
            "FROM samples JOIN items ON items.task = samples.task AND items.item = samples.item JOIN tasks ON "
            f"tasks.id = samples.task JOIN requests ON requests.key = {LAST_KEY} JOIN replies ON replies.request = "
            f"requests.id JOIN teachers ON teachers.id = requests.teacher WHERE {CURRENT} AND {CONCLUDED} "
            "GROUP BY 1, 2, 3"
        )
    }
    told = []
    for task, teacher, temperature, *sums in connection.execute(
        "SELECT tasks.name, teachers.name, round(replies.temperature, 1), count(*), sum(prompt_tokens), "
        "sum(completion_tokens), sum(cached_tokens), sum(seconds), sum(finish_reason = 'length') FROM replies "
        "JOIN requests ON requests.id = request JOIN tasks ON tasks.id = requests.task "
        "JOIN teachers ON teachers.id = requests.teacher GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    ):
        replies, prompt, completion, cached, seconds, truncated = sums
        per_prompt, per_completion = prices.get(teacher, (0.0, 0.0))
        samples, accepted, accepted_tokens = made.get((task, teacher, temperature), (0, 0, 0))
        told.append(
            Teaching(
                task=task, teacher=teacher, temperature=temperature, replies=replies, prompt_tokens=prompt,
                completion_tokens=completion, cached_tokens=cached, seconds=seconds, truncated=truncated,
                cost=(prompt * per_prompt + completion * per_completion) / 1e6, samples=samples, accepted=accepted,
                accepted_tokens=accepted_tokens,
            )
        )  # fmt: skip
    return tuple(told)


def _alarms(teaching: tuple[Teaching, ...]) -> tuple[str, ...]:
    """Of each task and teacher whose replies are cut too often, over all temperatures."""
    truncated: Counter[tuple[str, str]] = Counter()
    replies: Counter[tuple[str, str]] = Counter()
    for one in teaching:
        truncated[one.task, one.teacher] += one.truncated
        replies[one.task, one.teacher] += one.replies
    return tuple(
        f"{task}: {truncated[task, teacher] / count:.1%} of {teacher}'s replies are cut at max_tokens, over "
        f"{TRUNCATION_ALARM:.0%}: what is cut is the hard part; raise max_tokens or choose another finish policy"
        for (task, teacher), count in sorted(replies.items())
        if truncated[task, teacher] > TRUNCATION_ALARM * count
    )
