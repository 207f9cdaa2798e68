"""An account of synthesis for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from jobs.verbs import paper
from shards.store import exists, join, read_json

if TYPE_CHECKING:
    from synth.running import Account
    from synth.running.accounts import Ledger

PARTIAL = 3
HEAD = ("task", "items", "accepted", "rejected", "failed", "pending", "samples accepted", "of")
COSTS = ("task", "teacher", "temperature", "replies", "cut", "tokens an accepted", "cost an accepted")


def lines(account: Account) -> Iterator[str]:
    """A table a task, why samples were rejected or failed, what an accepted one took."""
    rows: list[tuple[Any, ...]] = []
    for task, items in account.items.items():
        samples = account.samples[task]
        parts = (sum(items.rejected.values()), sum(items.failed.values()), items.pending)
        rows.append((task, items.total, items.accepted, *parts, samples.accepted, samples.total))
    yield from paper.table(rows, HEAD)
    for what, ledgers in (("items", account.items), ("samples", account.samples)):
        reasons = list(_reasons(ledgers))
        if reasons:
            yield ""
            yield from paper.table(reasons, ("task", f"{what} not accepted", "count"))
    costs = [
        (one.task, one.teacher, one.temperature, one.replies, f"{one.truncated_share:.1%}",
         *(_rounded(one.per_accepted()[key]) for key in ("tokens", "cost")))
        for one in account.teaching
    ]  # fmt: skip
    if costs:
        yield ""
        yield from paper.table(costs, COSTS)
    yield ""
    sent = account.requests
    asked = f"{sent.sent} requests sent: {sent.replied} replied, {sent.failed} failed, {sent.pending} pending"
    yield f"{asked}; {account.seconds:.0f} s, cost {account.cost:.2f}; ended: {account.ended}"
    yield from account.alarms


def _reasons(ledgers: Mapping[str, Ledger]) -> Iterator[tuple[str, str, int]]:
    for task, ledger in ledgers.items():
        for what, counts in (("rejected", ledger.rejected), ("failed", ledger.failed)):
            for reason, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
                yield task, reason or what, count


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def exit_code(account: Account) -> int:
    """0 where every item is concluded, 3 where some are pending or failed."""
    left = any(ledger.pending or sum(ledger.failed.values()) for ledger in account.items.values())
    return PARTIAL if left else 0


def folder_of(out: str) -> str:
    """The folder of a run's synth step, or `out` itself."""
    steps = (read_json(join(out, "run.json")) or {}).get("steps", []) if exists(join(out, "run.json")) else []
    return next((join(out, step["folder"]) for step in steps if step.get("kind") == "synth"), out)
