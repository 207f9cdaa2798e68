"""A run of synthesis: by itself, or as a recipe's `synth:` section on the documents that the run kept."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from jobs.errors import UserError

if TYPE_CHECKING:
    from synth.exports import Account as Exported
    from synth.exports import Export
    from synth.running import Account, Plan
    from synth.selection import Selected

Say = Callable[[str], None]


def run(settings: Any, out: str, *, say: Say | None = None) -> Account:
    """Run, or go on. Raises UserError in a line."""
    from synth.whole import run as run_tasks

    account: Account = _told(lambda: run_tasks(settings, out, say=say or _line))
    return account


def plan(settings: Any, out: str) -> Plan:
    from synth.running import plan as expect

    _told(settings.files)
    found: Plan = _told(lambda: expect(settings, out))
    return found


def verify(settings: Any, out: str) -> Account:
    from synth.whole import verify as verify_anew

    account: Account = _told(lambda: verify_anew(settings, out, say=_line))
    return account


def status(out: str) -> Account:
    from synth.running import status as account_of

    account: Account = _told(lambda: account_of(out))
    return account


def export(out: str, destination: str, made: Export) -> tuple[Exported, Selected | None]:
    """With the selection that the run's settings have, and its account's figures on the card."""

    def write() -> tuple[Exported, Selected | None]:
        from synth.errors import SynthError
        from synth.made import export as write_dataset
        from synth.store import Store
        from synth.telling import facts_of, selection_of, told

        with Store.open(out, read_only=True) as store:
            known = store.runs.settings().get("teachers", {})
            if unknown := sorted(set(made.terms) - set(known)):
                told_names = ", ".join(sorted(known))
                raise SynthError(f"terms.{unknown[0]}: no teacher of the run is called so; there are {told_names}")
            facts = {"name": os.path.basename(os.path.abspath(out)), **facts_of(told(store))}
            return write_dataset(store, destination, made, selection_of(store.runs.settings()), facts)

    written: tuple[Exported, Selected | None] = _told(write)
    return written


def on_documents(settings: Any, documents: str) -> Any:
    """The settings of a recipe's section, whose tasks work on the run's documents where no rows are named."""
    from synth.running import Rows

    return settings if settings.rows is not None else dataclasses.replace(settings, rows=Rows(files=(documents,)))


def section(settings: Any, folder: str, *, say: Say) -> dict[str, Any]:
    """Run as a step of a recipe; what its manifest tells. Raises UserError where rows are left."""
    account = run(settings, folder, say=lambda line: say(f"synth  {line}"))
    left = {task: ledger.pending for task, ledger in account.items.items() if ledger.pending}
    if left:
        told = ", ".join(f"{count} of {task}" for task, count in left.items())
        raise UserError(f"synth: items are pending ({told}): ended by {account.ended}; run again to go on", exit_code=1)
    from jobs.report.synth import write

    write(folder)
    return {"store": stored(folder), "account": account.plain()}


def stored(folder: str) -> dict[str, int]:
    """What the store holds, by name: another run into it, or a loss, changes it."""
    account = status(folder)
    return {
        "requests": account.requests.sent,
        "replies": account.requests.replied,
        "samples": sum(ledger.total for ledger in account.samples.values()),
    }


def is_result(folder: str, told: Mapping[str, Any]) -> bool:
    """Whether a step's manifest tells of what its folder holds."""
    try:
        return stored(folder) == (told.get("made") or {}).get("store")
    except UserError:
        return False


def summary(told: Mapping[str, Any]) -> str:
    """Accepted samples by task."""
    samples = told["account"]["samples"]
    return ", ".join(f"{task} {one['accepted']} of {one['total']} samples accepted" for task, one in samples.items())


def _told(work: Callable[[], Any]) -> Any:
    from synth.errors import SynthError

    try:
        return work()
    except SynthError as error:
        raise UserError(str(error)) from None


def _line(line: str) -> None:
    print(f"synth: {line}", file=sys.stderr, flush=True)
