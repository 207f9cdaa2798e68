"""run, verify and status: what programs and notebooks call."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

from synth.errors import SynthError
from synth.requests import Request
from synth.running.accounts import Account, ConservationError, account_of
from synth.running.anywhere import anywhere
from synth.running.asking import Asker
from synth.running.checking import Checker, Verify
from synth.running.driver import PASSES, Driver
from synth.running.meter import Meter
from synth.running.progress import Progress
from synth.running.settings import Synth
from synth.running.works import works_of
from synth.store import Store
from synth.teachers.teacher import Teacher
from synth.teachers.vllm_prefixes import prefix_key

CAPACITY_OF_NONE: Final = 64
"""Where a run has no teachers at all."""


def run(
    settings: Synth, out: str, *, say: Callable[[str], None] | None = None,
    progress: Callable[[Progress], None] | None = None, teachers: Mapping[str, Teacher] | None = None,
    check: Verify | None = None, version: Callable[[str], str] | None = None,
    order: Callable[[Request], Any] | None = None,
) -> Account:  # fmt: skip
    """Run, or go on with what was run into the folder `out`: only what is missing is asked.

    say: told lines for people; progress: told how far it is, every `progress_seconds`. teachers, check, version: in
    place of those of the settings and of synth.verifiers. order: a key to sort requests that wait together by; None
    puts prompts with a common prefix side by side. Works in a notebook and in a running event loop, too.

    Raises SynthError for what the user can mend, ConservationError where rows do not add up. Ctrl-C ends it with all
    that was replied stored.
    """
    return anywhere(_Run(settings, out, say, progress, check=check, version=version, teachers=teachers, order=order).go)


def verify(
    settings: Synth, out: str, *, say: Callable[[str], None] | None = None, check: Verify | None = None,
    version: Callable[[str], str] | None = None,
) -> Account:  # fmt: skip
    """Give all verdicts anew and conclude all items from the replies that are there; no teacher is asked or needed.

    Items that lack a reply stay as they are.
    """
    return anywhere(_Run(settings, out, say, None, check=check, version=version, anew=True).go)


def status(out: str) -> Account:
    """The account of a folder, from its store alone; also while a run writes to it, and of one that was killed."""
    with Store.open(out, read_only=True) as store:
        store.connection.execute("BEGIN")  # one moment for all queries
        account = account_of(store)
    account.check()
    return account


class _Run:
    """One run, its parts put together and taken apart again whatever happens."""

    def __init__(
        self, settings: Synth, out: str, say: Callable[[str], None] | None,
        progress: Callable[[Progress], None] | None, *, check: Verify | None, version: Callable[[str], str] | None,
        teachers: Mapping[str, Teacher] | None = None, order: Callable[[Request], Any] | None = None,
        anew: bool = False,
    ) -> None:  # fmt: skip
        self._settings, self._out, self._progress = settings, out, progress
        self._say = say or (lambda line: None)
        self._check, self._version = check, version
        self._teachers, self._order, self._anew = teachers, order or prefix_key, anew

    async def go(self) -> Account:
        """Raises SynthError also where the disk under the store gives out: all that was committed is there."""
        try:
            return await self._go()
        except sqlite3.OperationalError as error:
            raise SynthError(f"{self._out}: {error}; check the room and the rights there, and run again") from None

    async def _go(self) -> Account:
        settings, works = self._settings, works_of(self._settings)
        teachers = self._opened_teachers()
        capacity = sum(teacher.capacity for teacher in teachers.values()) or CAPACITY_OF_NONE
        async with AsyncExitStack() as stack:
            store = stack.enter_context(Store.open(self._out))
            meter = Meter(settings.budget, settings.teachers, _used(store))
            run = store.runs.begin(settings.plain())
            check, version = self._verifiers(stack)
            checker = Checker(store, run, check, version, anew=self._anew)
            asker = Asker(
                store,
                run,
                teachers,
                meter,
                order=self._order,
                patience=settings.stop_after_failures,
                ask=not self._anew,
            )
            driver = Driver(
                store, run, works, asker=asker, checker=checker, meter=meter, anew=self._anew,
                open_items=settings.open_items or max(64, 2 * capacity),
            )  # fmt: skip
            telling = asyncio.ensure_future(self._tell_now_and_then(store, run, driver, meter))
            ended = "interrupted"
            try:
                await driver.go()
                ended = meter.stopped or "done"
            except Exception:
                ended = "error"
                raise
            finally:
                telling.cancel()
                await asyncio.gather(telling, return_exceptions=True)
                await checker.close()
                await asker.close()
                self._tell(store, run, driver, meter, ended)
            account = account_of(store)
            _conserved(store, run, driver, meter)
        account.check()
        for alarm in account.alarms:
            self._say(alarm)
        return account

    def _opened_teachers(self) -> Mapping[str, Teacher]:
        if self._teachers is not None:
            return self._teachers
        from synth.teachers import open_teacher

        return {name: open_teacher(told) for name, told in self._settings.teachers.items()}

    def _verifiers(self, stack: AsyncExitStack) -> tuple[Verify, Callable[[str], str]]:
        if self._check is not None and self._version is not None:
            return self._check, self._version
        from synth.verifiers import Workers
        from synth.verifiers import version as version_of

        told = self._settings.checking
        workers = stack.enter_context(
            Workers(
                processes=told.processes, limit_seconds=told.limit_seconds, limits_seconds=told.limits_by_kind,
                memory_bytes=told.memory_mebibytes << 20,
            )
        )  # fmt: skip
        return self._check or workers.check, self._version or version_of

    async def _tell_now_and_then(self, store: Store, run: int, driver: Driver, meter: Meter) -> None:
        while True:
            await asyncio.sleep(self._settings.progress_seconds)
            self._tell(store, run, driver, meter, "running")

    def _tell(self, store: Store, run: int, driver: Driver, meter: Meter, ended: str) -> None:
        counts, made = meter.counts, driver.counts
        store.runs.tell(run, seconds=meter.seconds, cost=meter.cost, counts={**counts, **made}, ended=ended)
        told = Progress(
            seconds=meter.seconds, items=sum(made[name] for name in ("accepted", "rejected", "failed")),
            skipped=made["skipped"], accepted=made["samples_accepted"],
            samples=sum(made[f"samples_{name}"] for name in ("accepted", "rejected", "failed")), sent=counts["sent"],
            replied=counts["replied"], failed=counts["failed"],
            tokens_per_second=counts["completion_tokens"] / max(meter.seconds, 1e-9),
            truncated_share=counts["truncated"] / max(1, counts["replied"]), cost=meter.cost, stopped=meter.stopped,
        )  # fmt: skip
        self._say(told.line())
        if self._progress is not None:
            self._progress(told)


def _used(store: Store) -> dict[str, float]:
    """By all earlier runs."""
    runs = store.runs.all()
    counts = [run["counts"] for run in runs]
    return {
        "seconds": sum(run["seconds"] for run in runs), "cost": sum(run["cost"] for run in runs),
        "requests": sum(one.get("sent", 0) for one in counts),
        "tokens": sum(one.get("prompt_tokens", 0) + one.get("completion_tokens", 0) for one in counts),
    }  # fmt: skip


def _conserved(store: Store, run: int, driver: Driver, meter: Meter) -> None:
    """What the run counted while it ran is what the store holds of it. Raises ConservationError where not."""

    def stored(query: str, *values: int) -> int:
        return int(store.connection.execute(query, values).fetchone()[0])

    at, made, counts = run * PASSES + 1, driver.counts, meter.counts
    concluded = made["accepted"] + made["rejected"] + made["failed"]
    refused = made["refused"]
    samples = sum(made[f"samples_{name}"] for name in ("accepted", "rejected", "failed"))
    by_run = "SELECT count(*) FROM items WHERE by = ?"
    pairs = {
        "rows read": (made["rows"], refused + made["skipped"] + made["pending"] + concluded),
        "items seen": (made["rows"] - refused, stored("SELECT count(*) FROM items WHERE seen = ?", at)),
        "rows refused": (refused, stored("SELECT count(*) FROM refused_rows WHERE run = ?", at)),
        "items concluded": (concluded, stored(by_run, at)),
        "samples made": (
            samples,
            stored(
                "SELECT count(*) FROM samples JOIN items ON items.task = samples.task AND items.item = samples.item "
                "WHERE by = ?", at,
            ),
        ),
        "requests sent": (counts["sent"], counts["replied"] + counts["failed"]),
        "replies": (counts["replied"], stored("SELECT count(*) FROM replies WHERE run = ?", run)),
        "failures": (counts["failed"], stored("SELECT count(*) FROM failures WHERE run = ?", run)),
    }  # fmt: skip
    for what, (counted, there) in pairs.items():
        if counted != there:
            raise ConservationError(f"{what}: {counted} were counted, {there} are stored; keep the folder, it is a bug")
