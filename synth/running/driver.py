"""The driver: items of all tasks through their flows, a bounded number at once, each concluded in the store."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from synth.errors import SynthError
from synth.flows import Desk
from synth.items import Item, Outcome
from synth.requests import digest
from synth.running.asking import Asker, StoppedError, class_and_place
from synth.running.checking import Checker
from synth.running.conversing import Concluded, converse
from synth.running.meter import Meter
from synth.running.rows import Unreadable, read_items
from synth.running.works import Work
from synth.store import Store
from synth.store.items import Known
from synth.store.packing import item_plain
from synth.verdicts import Outcome as Says

PASSES: Final = 2
"""Of a run, at most: a pilot and in earnest. What the `seen` and `by` of items count is passes."""

BREATH_ITEMS: Final = 32
"""Items that are skipped before replies in flight are looked after again."""


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """An item that is to be worked on. concluded: it was already, under the same settings, and may get better."""

    work: Work
    task: int
    item: Item
    pilot: bool
    concluded: bool


class Driver:
    """One run over the items of all works.

    counts: of this run's last pass: rows, and of these refused, skipped, concluded by outcome, pending; samples by
    outcome. anew: conclude also what is concluded.
    """

    def __init__(
        self, store: Store, run: int, works: tuple[Work, ...], *, asker: Asker, checker: Checker, meter: Meter,
        open_items: int, anew: bool = False,
    ) -> None:  # fmt: skip
        self._store, self._run, self._works = store, run, works
        self._asker, self._checker, self._meter = asker, checker, meter
        self._open_items, self._anew = open_items, anew
        self._prints = {work.name: work.fingerprint() for work in works}
        self._tasks = {work.name: store.items.task(work.name, work.kind, self._prints[work.name]) for work in works}
        self._current: dict[str, bool] = {}
        self._place = ""
        self.counts: Counter[str] = Counter()

    async def go(self) -> None:
        """Pilots of the tasks that allocate, their allocations, and then all tasks in order."""
        piloting = tuple(work for work in self._works if work.allocating is not None)
        if piloting:
            await self._pass(piloting, pilot=True)
            for work in piloting:
                self._allocate(work)
        await self._pass(self._works, pilot=False)

    async def _pass(self, works: tuple[Work, ...], *, pilot: bool) -> None:
        entries = self._entries(works, pilot)
        workers = [asyncio.ensure_future(self._work_on(entries)) for _ in range(self._open_items)]
        try:
            done: asyncio.Future[Any] = asyncio.gather(*workers)
            done.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            broken: asyncio.Future[Any] = self._asker.broken
            await asyncio.wait([done, broken], return_when=asyncio.FIRST_COMPLETED)
            (broken if broken.done() else done).result()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work_on(self, entries: Iterator[_Entry | None]) -> None:
        for entry in entries:
            if entry is None:
                await asyncio.sleep(0)
            else:
                await self._conclude(entry)

    async def _conclude(self, entry: _Entry) -> None:
        """One item through its flow. Of a pilot only its counts are stored: the conclusion comes in earnest."""
        work, item = entry.work, entry.item
        try:
            desk = Desk(seed=_seed(work, item), rollouts=self._rollouts(entry))
            concluded = await self._converse(entry, desk)
        except StoppedError:
            self.counts["skipped" if entry.concluded else "pending"] += not entry.pilot
            return
        if entry.pilot:
            # What failed, but another run may get, is no trial: that run makes the pilot anew.
            if not concluded.again:
                trials = [one for one in concluded.samples if one.outcome is not Outcome.FAILED]
                right = sum(one.verdict == Says.RIGHT or one.outcome is Outcome.ACCEPTED for one in trials)
                self._store.items.tell_pilot(entry.task, item.id, len(trials), right)
            return
        try:
            self._store_conclusion(entry, concluded)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            told = f"flow: samples that are no JSON ({type(error).__name__})"
            concluded = replace(concluded, outcome=Outcome.FAILED, reason=told, samples=[])
            self._store_conclusion(entry, concluded)
        self.counts[concluded.outcome.value] += 1
        self.counts.update(f"samples_{one.outcome.value}" for one in concluded.samples)

    def _store_conclusion(self, entry: _Entry, concluded: Concluded) -> None:
        self._store.items.conclude(
            entry.task, entry.item.id, concluded.samples, outcome=concluded.outcome, reason=concluded.reason,
            concluded=self._prints[entry.work.name], verifiers=concluded.verifiers_text, again=concluded.again,
            by=self._at(entry.pilot),
        )  # fmt: skip

    async def _converse(self, entry: _Entry, desk: Desk) -> Concluded:
        try:
            flow = entry.work.task.flow(entry.item, desk)
        except Exception as error:
            return Concluded(outcome=Outcome.FAILED, reason=f"flow: {class_and_place(error)}")
        return await converse(flow, entry.item, entry.task, self._asker, self._checker)

    def _rollouts(self, entry: _Entry) -> int | None:
        """What an allocation gave the item. One whose pilot failed has the pilot's; where the pilots of all were
        stopped nothing is allocated, and nothing concluded."""
        allocating = entry.work.allocating
        if allocating is None:
            return None
        pilot = self._store.items.pilot(entry.task, entry.item.id)
        if not entry.pilot and pilot is not None and pilot[2] is not None:
            return pilot[2]
        if not entry.pilot and (pilot is not None or self._meter.stopped):
            raise StoppedError
        return allocating.pilot_rollouts

    def _allocate(self, work: Work) -> None:
        """Rollouts for the items that have none yet, stored before any is used. A pilot that was stopped allocates
        nothing: what it lacks changes what all others get."""
        allocating, task = work.allocating, self._tasks[work.name]
        if allocating is None or self._meter.stopped:
            return
        pilots = self._store.items.unallocated(task)
        if not pilots:
            return
        given = allocating.allocate([(trials, right) for _, trials, right in pilots], work.seed)
        if len(given) != len(pilots) or min(given) < 1:
            raise SynthError(f"tasks: {work.name}: its allocation does not give each item a rollout; mend the task")
        self._store.items.allocate(
            task, [(item, int(count)) for (item, _, _), count in zip(pilots, given, strict=True)]
        )
        self._store.commit()

    def _entries(self, works: tuple[Work, ...], pilot: bool) -> Iterator[_Entry | None]:
        """Items of all works that are to be concluded, each registered as seen; now and then None, to breathe."""
        skipped = 0
        for work in works:
            for item, known in self._items(work, pilot):
                concluded = known is not None and known.concluded == self._prints[work.name]
                if self._is_done(work, item, known, pilot):
                    self.counts["skipped"] += not pilot
                    skipped += 1
                    if skipped % BREATH_ITEMS == 0:
                        yield None
                    continue
                yield _Entry(work=work, task=self._tasks[work.name], item=item, pilot=pilot, concluded=concluded)
            if not pilot:
                self._store.items.read_to_end(self._tasks[work.name], self._at(pilot))

    def _at(self, pilot: bool) -> int:
        return self._run * PASSES + (0 if pilot else 1)

    def _items(self, work: Work, pilot: bool) -> Iterator[tuple[Item, Known | None]]:
        """Items of one work, and what was known of each before it was seen now."""
        store, task, at = self._store.items, self._tasks[work.name], self._at(pilot)
        for item in self._made(work, pilot):
            self.counts["rows"] += not pilot
            try:
                print_of_item = bytes.fromhex(digest(item_plain(item)))
                known = store.find(task, item.id)
            except (TypeError, ValueError, RecursionError):
                self._refuse(work, "unusable", pilot)
                continue
            if known is not None and known.seen == at:
                self._refuse(work, "duplicate_id", pilot)
                continue
            store.see(task, item, print_of_item, known, at)
            yield item, known if known is not None and known.fingerprint == print_of_item else None

    def _made(self, work: Work, pilot: bool) -> Iterator[Item]:
        """What a task makes of its rows. That it raises is no row's fault, and ends the run."""
        try:
            yield from work.task.items(self._readable(work, pilot))
        except SynthError:
            raise
        except Exception as error:
            raise SynthError(
                f"tasks: {work.name}: its items end with {class_and_place(error)}; mend the task"
            ) from None

    def _readable(self, work: Work, pilot: bool) -> Iterator[Item]:
        for self._place, item in read_items(work.rows) if work.rows is not None else ():
            if isinstance(item, Unreadable):
                self.counts["rows"] += not pilot
                self._refuse(work, "unreadable", pilot)
            else:
                yield item

    def _refuse(self, work: Work, rule: str, pilot: bool) -> None:
        """A row that becomes no item; told in earnest alone, or it would be told twice."""
        if not pilot:
            self.counts["refused"] += 1
            self._store.items.refuse(self._tasks[work.name], self._place, f"row.{rule}", self._at(pilot))

    def _is_done(self, work: Work, item: Item, known: Known | None, pilot: bool) -> bool:
        if self._anew or known is None:
            return False
        if pilot and self._store.items.pilot(self._tasks[work.name], item.id) is not None:
            return True
        concluded = known.concluded == self._prints[work.name]
        return concluded and not known.again and self._verified_as_now(known.verifiers)

    def _verified_as_now(self, verifiers: str) -> bool:
        """Whether verdicts of these versions are still what verifiers would give."""
        if verifiers not in self._current:
            told: dict[str, str] = json.loads(verifiers)
            try:
                self._current[verifiers] = all(self._checker.version(kind) == told[kind] for kind in told)
            except SynthError:
                self._current[verifiers] = False
        return self._current[verifiers]


def _seed(work: Work, item: Item) -> int:
    """Of the run and the item, whatever order items come in."""
    return int(digest([work.seed, work.name, item.id])[:8], 16)
