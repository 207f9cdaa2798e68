"""What a run will take, before anything is spent: from what a store has measured, or from stated assumptions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass as settings_class

from synth.running.accounts import Account, account_of
from synth.running.rows import Unreadable, read_items
from synth.running.settings import STRICT, Positive, Synth
from synth.running.works import Work, works_of
from synth.store import Store
from synth.store.store import FILE


@settings_class(frozen=True, kw_only=True, config=STRICT)
class Assumptions:
    """What is taken for a task of which nothing was run yet.

    requests: an item. prompt_tokens, completion_tokens: a request. tokens_per_second: of replies, over all in flight;
    several thousand for a small model on one GPU, some tens on a CPU.
    """

    requests: Positive = 4.0
    prompt_tokens: Annotated[float, Field(ge=0)] = 200.0
    completion_tokens: Positive = 1000.0
    tokens_per_second: Positive = 2000.0


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Of one task, all its items together, those that are concluded already included.

    source: measured, where the store has concluded items of it, or assumed. accepted: samples, None where nothing is
    measured..
    """

    task: str
    items: int
    refused_rows: int
    concluded: int
    source: str
    requests: float
    prompt_tokens: float
    completion_tokens: float
    accepted: float | None
    cost: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """hours: of what is left, at measured or assumed tokens a second; cost: of all, hours of rented machines for what
    is left included."""

    tasks: tuple[Expected, ...]
    tokens_per_second: float
    hours: float
    cost: float

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    def lines(self) -> list[str]:
        """For people."""
        told = [
            f"{one.task}: {one.items} items ({one.concluded} concluded), {one.requests:.0f} requests, "
            f"{(one.prompt_tokens + one.completion_tokens) / 1e6:.2f} M tokens, cost {one.cost:.2f} ({one.source})"
            for one in self.tasks
        ]
        return [*told, f"together: {self.hours:.2f} h at {self.tokens_per_second:.0f} tokens/s, cost {self.cost:.2f}"]


def plan(settings: Synth, out: str | None = None, *, assumptions: Assumptions | None = None) -> Plan:
    """Read all rows, ask nobody, and say what to expect.

    out: a folder whose store has a pilot of the same tasks: what an item took there is taken for the others. A budget
    or `rows.limit` makes such a pilot. Raises SynthError as a run would.
    """
    assumed = assumptions or Assumptions()
    account, rates = _measured(out)
    tasks = tuple(_expected(work, settings, account, assumed) for work in works_of(settings))
    speed = rates or assumed.tokens_per_second
    left = sum(one.completion_tokens * (1 - one.concluded / max(1, one.items)) for one in tasks)
    hours = left / speed / 3600
    rent = hours * sum(teacher.price_hour for teacher in settings.teachers.values())
    return Plan(tasks=tasks, tokens_per_second=speed, hours=hours, cost=sum(one.cost for one in tasks) + rent)


def _measured(out: str | None) -> tuple[Account | None, float]:
    """The account of a store, and the tokens of replies a second that its runs had."""
    if out is None or not (Path(out) / FILE).exists():
        return None, 0.0
    with Store.open(out, read_only=True) as store:
        runs = store.runs.all()
        tokens = sum(run["counts"].get("completion_tokens", 0) for run in runs)
        seconds = sum(run["seconds"] for run in runs if run["counts"].get("completion_tokens"))
        return account_of(store), tokens / seconds if seconds else 0.0


def _expected(work: Work, settings: Synth, account: Account | None, assumed: Assumptions) -> Expected:
    items, refused = _count(work)
    ledger = account.items.get(work.name) if account else None
    concluded = ledger.accepted + sum(ledger.rejected.values()) + sum(ledger.failed.values()) if ledger else 0
    concluded -= sum(
        count for reason, count in (ledger.rejected if ledger else {}).items() if reason.startswith("row.")
    )
    taught = [one for one in account.teaching if one.task == work.name] if account else []
    if not (concluded and taught):
        requests = items * assumed.requests
        prompt, completion = requests * assumed.prompt_tokens, requests * assumed.completion_tokens
        dearest = [teacher.cost(round(prompt), round(completion)) for teacher in settings.teachers.values()]
        return Expected(
            task=work.name, items=items, refused_rows=refused, concluded=0, source="assumed", requests=requests,
            prompt_tokens=prompt, completion_tokens=completion, accepted=None, cost=max(dearest, default=0.0),
        )  # fmt: skip
    factor = items / concluded
    return Expected(
        task=work.name, items=items, refused_rows=refused, concluded=min(concluded, items), source="measured",
        requests=factor * sum(one.replies for one in taught),
        prompt_tokens=factor * sum(one.prompt_tokens for one in taught),
        completion_tokens=factor * sum(one.completion_tokens for one in taught),
        accepted=factor * sum(one.accepted for one in taught), cost=factor * sum(one.cost for one in taught),
    )  # fmt: skip


def _count(work: Work) -> tuple[int, int]:
    """Items, and rows that are none."""
    refused = 0

    def readable() -> Any:
        nonlocal refused
        for _, item in read_items(work.rows) if work.rows is not None else ():
            if isinstance(item, Unreadable):
                refused += 1
            else:
                yield item

    return sum(1 for _ in work.task.items(readable())), refused
