"""Several servers of one model: who takes the next request, how many each bears, and who is ill."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

TOLERATED_SHARE: Final = 0.2
"""Of a window's requests that may fail before its server is thought overloaded. Servers and networks that fail at
random lose a few in a hundred; one that is asked for more than it bears refuses most of what is over it."""

ILL_AFTER: Final = 8
"""Failures in a row after which a server's health is asked for before it gets another request."""

CHECK_SECONDS: Final = (0.2, 15.0)
"""First and longest pause between two looks at the health of a server that is ill."""


class OutageError(Exception):
    """No server was healthy for so long as settings allow."""


WINDOWS_TO_CAP: Final = 64
"""Windows of successes in which a limit grows by its cap: slow enough to stay near what a server bears, and fast enough
to be back soon when it bears more again."""


class Limit:
    """Requests that a server bears at once: a little more with each success, half as many once more than a fifth of a
    window, which is as many requests as are borne, is refused (AIMD, Chiu and Jain 1989). It starts at its cap: vLLM
    queues what is too much. generation: of halvings; each request is sent in one."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.generation = 0
        self._borne = float(cap)
        self._answered = self._refused = 0

    @property
    def value(self) -> int:
        return int(self._borne)

    def count(self, generation: int, refused: bool) -> None:
        """An answer to a request sent in that generation; refusals of before the last halving say nothing new."""
        if not refused:
            self._borne = min(float(self.cap), self._borne + max(1.0, self.cap / WINDOWS_TO_CAP) / self._borne)
        elif generation == self.generation:
            self._refused += 1
        self._answered += 1
        if self._refused > TOLERATED_SHARE * self._borne:
            self._borne, self.generation = max(1.0, self._borne / 2), self.generation + 1
            self._answered = self._refused = 0
        elif self._answered >= self._borne:
            self._answered = self._refused = 0


@dataclass(kw_only=True, eq=False)
class Replica:
    """A server: requests in flight there, what it bears, failures since its last success."""

    url: str
    limit: Limit
    healthy: bool = True
    in_flight: int = 0
    failures: int = 0

    @property
    def load(self) -> float:
        return self.in_flight / self.limit.value


@dataclass(kw_only=True, eq=False)
class _Waiting:
    turn: asyncio.Future[Replica]
    avoid: Replica | None


@dataclass(kw_only=True, eq=False)
class Replicas:
    """The servers of one teacher, in one event loop. check: whether the server at a URL is healthy now.

    Requests wait in the order in which they came. outage_seconds: how long they do when no server is healthy.
    """

    replicas: Sequence[Replica]
    max_in_flight: int
    outage_seconds: float
    check: Callable[[str], Awaitable[bool]]
    _in_flight: int = 0
    _waiting: deque[_Waiting] = field(default_factory=deque)
    _checks: dict[Replica, asyncio.Task[None]] = field(default_factory=dict)
    _down_since: float | None = None

    async def take(self, avoid: Replica | None = None) -> Replica:
        """A server with room, the least loaded; another than `avoid` where one has room. Raises OutageError."""
        if not self._waiting and (replica := self._free(avoid)) is not None:
            self._occupy(replica)
            return replica
        if self._down_since is not None and asyncio.get_running_loop().time() - self._down_since > self.outage_seconds:
            raise OutageError
        waiting = _Waiting(turn=asyncio.get_running_loop().create_future(), avoid=avoid)
        self._waiting.append(waiting)
        try:
            return await waiting.turn
        except asyncio.CancelledError:
            if waiting.turn.done() and not waiting.turn.cancelled() and waiting.turn.exception() is None:
                self._leave(waiting.turn.result())
            raise

    def release(self, replica: Replica, generation: int, refused: bool | None, failed: bool) -> None:
        """Give a server back. refused: the answer says that it has too much to do; None says nothing about it.
        failed: it did not answer as a healthy one does."""
        if refused is not None:
            replica.limit.count(generation, refused)
        if failed:
            replica.failures += 1
        elif refused is False:
            replica.failures = 0
        if replica.failures >= ILL_AFTER:
            self.ill(replica)
        self._leave(replica)

    def ill(self, replica: Replica) -> None:
        """Send nothing more there until its health has been seen."""
        if replica in self._checks:
            return
        replica.healthy = False
        if not any(other.healthy for other in self.replicas):
            self._down_since = asyncio.get_running_loop().time()
        self._checks[replica] = asyncio.create_task(self._heal(replica))

    async def close(self) -> None:
        """Ends the looks at health and the waiting."""
        checks = list(self._checks.values())
        for task in checks:
            task.cancel()
        await asyncio.gather(*checks, return_exceptions=True)
        self._give_up()

    def _free(self, avoid: Replica | None) -> Replica | None:
        if self._in_flight >= self.max_in_flight:
            return None
        free = [one for one in self.replicas if one.healthy and one.in_flight < one.limit.value]
        return min(free, key=lambda one: (one is avoid, one.load), default=None)

    def _occupy(self, replica: Replica) -> None:
        replica.in_flight += 1
        self._in_flight += 1

    def _leave(self, replica: Replica) -> None:
        replica.in_flight -= 1
        self._in_flight -= 1
        self._hand_on()

    def _hand_on(self) -> None:
        while self._waiting:
            first = self._waiting[0]
            if first.turn.done():
                self._waiting.popleft()
                continue
            replica = self._free(first.avoid)
            if replica is None:
                return
            self._waiting.popleft()
            self._occupy(replica)
            first.turn.set_result(replica)

    async def _heal(self, replica: Replica) -> None:
        loop, pause = asyncio.get_running_loop(), CHECK_SECONDS[0]
        while not await self.check(replica.url):
            if self._down_since is not None and loop.time() - self._down_since > self.outage_seconds:
                self._give_up()
            await asyncio.sleep(min(pause, self.outage_seconds) or CHECK_SECONDS[0])
            pause = min(2 * pause, CHECK_SECONDS[1])
        replica.healthy, replica.failures, self._down_since = True, 0, None
        del self._checks[replica]
        self._hand_on()

    def _give_up(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            if not one.turn.done():
                one.turn.set_exception(OutageError())
