"""Requests to replies: from the store where they are there, from the teacher where not, each asked once at a time."""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from synth.errors import SynthError
from synth.replies import Failure, Reply, TeacherError
from synth.requests import Request
from synth.running.meter import Meter
from synth.store import Store
from synth.teachers.teacher import Teacher

COMMIT_SECONDS: Final = 0.01
"""A request is in flight until its reply is stored for good, and replies are committed together this often: a hundredth
of what a reply of some hundred tokens takes."""

ROOT: Final = Path(__file__).resolve().parents[2]
Answer = Reply | Failure


class StoppedError(Exception):
    """Nothing further is asked; the item that wanted it is pending."""


class UnaskableError(Exception):
    """A flow's request that is no JSON, and so has no key."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Wanted:
    request: Request
    key: str
    task: int
    item: str
    answer: asyncio.Future[Answer | None]


class Commits:
    """Commits of the store, shared by all who wait for one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._next: asyncio.Future[None] | None = None

    async def made(self) -> None:
        """Returns once what is written by now is there for good."""
        if self._next is None:
            loop = asyncio.get_running_loop()
            self._next = loop.create_future()
            loop.call_later(COMMIT_SECONDS, self._commit, self._next)
        await asyncio.shield(self._next)

    def _commit(self, waiting: asyncio.Future[None]) -> None:
        self._next = None
        try:
            self._store.commit()
        except Exception as error:
            if not waiting.done():
                waiting.set_exception(error)
            return
        if not waiting.done():
            waiting.set_result(None)


class _Queue:
    """Requests that wait for a teacher, handed out in the order that `order` gives those that wait together: what it
    puts side by side shares a prefix. Those that came meanwhile go behind them, so that none waits for ever."""

    def __init__(self, order: Callable[[Request], Any] | None) -> None:
        self._order = order
        self._ready: deque[_Wanted] = deque()
        self._came: list[_Wanted] = []
        self._count = asyncio.Semaphore(0)

    def put(self, wanted: _Wanted) -> None:
        self._came.append(wanted)
        self._count.release()

    async def get(self) -> _Wanted:
        await self._count.acquire()
        if not self._ready:
            order = self._order
            if order is not None:
                self._came.sort(key=lambda wanted: order(wanted.request))
            self._ready.extend(self._came)
            self._came.clear()
        return self._ready.popleft()


class Asker:
    """Answers effects of requests. `start` before the first, `close` behind the last.

    teachers: by name; each is opened when a request first needs it. order: of requests that wait together.
    ask: False answers from the store alone.
    """

    def __init__(
        self, store: Store, run: int, teachers: Mapping[str, Teacher], meter: Meter, *,
        order: Callable[[Request], Any] | None = None, patience: int | None = None, ask: bool = True,
    ) -> None:  # fmt: skip
        self._store, self._run, self._teachers, self._meter = store, run, teachers, meter
        self._order, self._patience, self._ask = order, patience, ask
        self._open: dict[str, asyncio.Future[Answer | None]] = {}
        self._queues: dict[str, _Queue] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._failed_in_a_row: dict[str, int] = {}
        self._entered: list[Teacher] = []
        self.commits = Commits(store)
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Gets the exception that no further request can be asked after."""

    async def answers(self, requests: Sequence[Request], task: int, item: str) -> list[Answer]:
        """Of each request, in order. Raises StoppedError where one is not to be asked any more, UnaskableError where
        it cannot be, SynthError where it names a teacher that there is not."""
        waiting = [self._answer(request, task, item) for request in requests]
        answers = [one if isinstance(one, Reply | Failure) else await asyncio.shield(one) for one in waiting]
        if any(answer is None for answer in answers):
            raise StoppedError
        return [answer for answer in answers if answer is not None]

    def _answer(self, request: Request, task: int, item: str) -> Answer | asyncio.Future[Answer | None]:
        teacher = self._teachers.get(request.teacher)
        if teacher is None:
            known = ", ".join(sorted(self._teachers)) or "none"
            raise SynthError(f"teachers: a task asks {request.teacher!r}; the recipe has {known}")
        try:
            key = request.key(teacher.identity)
        except Exception as error:
            raise UnaskableError(class_and_place(error)) from None
        if (already := self._open.get(key)) is not None:
            return already
        if (found := self._store.answers.find(key, self._run if self._ask else None)) is not None:
            return found
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        if not self._ask or self._meter.stopped:
            answer.set_result(None)
            return answer
        self._open[key] = answer
        wanted = _Wanted(request=request, key=key, task=task, item=item, answer=answer)
        self._queue(request.teacher, teacher).put(wanted)
        return answer

    def _queue(self, name: str, teacher: Teacher) -> _Queue:
        if name not in self._queues:
            self._queues[name] = _Queue(self._order)
            opening = asyncio.ensure_future(self._enter(name, teacher))
            self._tasks += [asyncio.create_task(self._work(name, teacher, opening)) for _ in range(teacher.capacity)]
        return self._queues[name]

    async def _enter(self, name: str, teacher: Teacher) -> None:
        self._entered.append(teacher)
        await teacher.open()
        self._meter.opened(name)

    async def _work(self, name: str, teacher: Teacher, opening: asyncio.Future[None]) -> None:
        """One of as many as the teacher bears requests at once."""
        try:
            await asyncio.shield(opening)
            while True:
                wanted = await self._queues[name].get()
                answer = await self._asked(wanted, name, teacher) if self._meter.may_send() else None
                del self._open[wanted.key]
                wanted.answer.set_result(answer)
        except Exception as error:
            self._meter.stop("error")
            if not self.broken.done():
                self.broken.set_exception(error)

    async def _asked(self, wanted: _Wanted, name: str, teacher: Teacher) -> Answer:
        """Ask, and return once the answer is stored for good. What a teacher raises is a failure of its request."""
        store, run, counts = self._store.answers, self._run, self._meter.counts
        row = store.ask(wanted.key, wanted.request, teacher.identity, task=wanted.task, item=wanted.item, run=run)
        counts["sent"] += 1
        answer: Answer
        try:
            answer = await teacher.generate(wanted.request)
            store.reply(row, answer, run)
            self._meter.replied(name, answer)
            self._failed_in_a_row[name] = 0
        except SynthError:
            raise
        except TeacherError as error:
            answer = error.failure
        except Exception as error:
            answer = Failure(key=wanted.key, stage="teacher", error=class_and_place(error))
        if isinstance(answer, Failure):
            store.fail(row, answer, run)
            counts["failed"] += 1
            if not answer.final:
                self._failed(name, teacher)
        await self.commits.made()
        return answer

    def _failed(self, name: str, teacher: Teacher) -> None:
        """A teacher that has not replied for long is gone, and what is left is better asked another day."""
        self._failed_in_a_row[name] = self._failed_in_a_row.get(name, 0) + 1
        if self._failed_in_a_row[name] >= (self._patience or max(64, 2 * teacher.capacity)):
            self._meter.stop(f"teacher.{name}")

    async def close(self) -> None:
        """Give up what is in flight, and close the teachers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for answer in self._open.values():
            if not answer.done():
                answer.cancel()
        if not self.broken.cancel() and not self.broken.cancelled():
            self.broken.exception()
        for teacher in self._entered:
            await teacher.close()


def class_and_place(error: BaseException) -> str:
    """An exception's class and the last line of ours that it passed; never its message, which may hold a text."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(ROOT)] or frames
    if not ours:
        return type(error).__name__
    path = Path(ours[-1].filename)
    place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name
    return f"{type(error).__name__} at {place}:{ours[-1].lineno}"
