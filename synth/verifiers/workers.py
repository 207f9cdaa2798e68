"""Many verdicts at once, in processes that are killed when they hang, die or eat memory.

A process is the one thing that can be stopped whatever it is at: threads cannot, and a signal waits for sympy's long
integer operations to end. What a process could not say is Outcome.ERROR with the reason, never a wrong answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from synth.errors import SynthError
from synth.verdicts import Check, Outcome, Verdict
from synth.verifiers import VERIFIERS

START_SECONDS: Final = 60.0
"""For a process to import what it needs: 1.5 s for sympy on an idle core, many times that on a loaded machine."""


@dataclass(kw_only=True)
class _Worker:
    """One process with the socket to it."""

    process: subprocess.Popen[bytes]
    connection: socket.socket
    received: bytearray = field(default_factory=bytearray)

    def ask(self, line: bytes, seconds: float) -> dict[str, Any]:
        """The reply to one line. Raises TimeoutError after so many seconds, EOFError where the process ended."""
        deadline = time.monotonic() + seconds
        try:
            if line:
                self.connection.settimeout(seconds)
                self.connection.sendall(line)
            while b"\n" not in self.received:
                self.connection.settimeout(max(deadline - time.monotonic(), 1e-3))
                part = self.connection.recv(65_536)
                if not part:
                    raise EOFError
                self.received += part
        except (BrokenPipeError, ConnectionResetError):
            raise EOFError from None
        reply, _, rest = bytes(self.received).partition(b"\n")
        self.received = bytearray(rest)
        answer: dict[str, Any] = json.loads(reply)
        return answer

    def kill(self) -> None:
        """With all that it started; returns once it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.connection.close()
        self.process.wait()


class Workers:
    """So many processes that verify checks; a context manager, sync or async.

    processes: at once. limit_seconds: of one check, from when a process takes it; limits_seconds: of a kind, where it
    needs another. memory_bytes: of address space, a process. kinds: loaded before the first check, so that no
    check's time goes into imports; others are loaded when they come.

    A process is started when it is first needed. None is left behind by `close`, nor when this process is killed: the
    kernel ends them with it (PR_SET_PDEATHSIG).
    """

    def __init__(
        self,
        *,
        processes: int = 1,
        limit_seconds: float = 10.0,
        limits_seconds: Mapping[str, float] | None = None,
        memory_bytes: int = 2 << 30,
        kinds: tuple[str, ...] = (),
    ) -> None:
        if processes < 1 or limit_seconds <= 0:
            raise SynthError("workers: processes and limit_seconds must be above 0")
        for kind in kinds:
            _require(kind)
        self.processes = processes
        self.limit_seconds = limit_seconds
        self.limits_seconds = dict(limits_seconds or {})
        self.memory_bytes = memory_bytes
        self.kinds = kinds
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="verifier")
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self._running: dict[int, _Worker] = {}
        self._lock = threading.Lock()
        self._closed = False

    async def check(self, check: Check) -> Verdict:
        """The verdict; Outcome.ERROR with hang, memory or died where the process gave none. Raises SynthError for an
        unknown kind or option. May be called by any number of tasks; they take turns."""
        _require(check.kind)
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._verdict, check)

    def check_all(self, checks: Iterable[Check]) -> list[Verdict]:
        """The verdicts, in order; blocks until all are there."""
        wanted = list(checks)
        for check in wanted:
            _require(check.kind)
        return list(self._threads.map(self._verdict, wanted))

    def close(self) -> None:
        """End every process, at once where it is at a check; allowed twice."""
        with self._lock:
            self._closed = True
            running = list(self._running.values())
        for worker in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.process.pid, signal.SIGKILL)
        self._threads.shutdown(wait=True, cancel_futures=True)
        while True:
            try:
                self._idle.get_nowait().kill()
            except queue.Empty:
                return

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Workers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def _verdict(self, check: Check) -> Verdict:
        """On one of as many threads as there are processes."""
        began = time.perf_counter()
        limit = self.limits_seconds.get(check.kind, self.limit_seconds)
        line = json.dumps([check.kind, check.gold, check.answer, dict(check.options)]).encode() + b"\n"
        try:
            worker = self._take()
        except (EOFError, TimeoutError):
            return Verdict(outcome=Outcome.ERROR, reason="no_process", seconds=time.perf_counter() - began)
        began = time.perf_counter()
        try:
            reply = worker.ask(line, limit)
        except (EOFError, TimeoutError) as ended:
            self._give_up(worker)
            reply = {"outcome": "error", "reason": "died" if isinstance(ended, EOFError) else "hang"}
        except BaseException:
            self._give_up(worker)
            raise
        else:
            if reply.get("leave"):
                self._give_up(worker)
            else:
                self._put_back(worker)
        if "refused" in reply:
            raise SynthError(reply["refused"])
        seconds = time.perf_counter() - began
        return Verdict(
            outcome=Outcome(reply["outcome"]), reason=reply["reason"], score=reply.get("score"), seconds=seconds
        )

    def _take(self) -> _Worker:
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:
            worker = self._start()
        with self._lock:
            self._running[worker.process.pid] = worker
            closed = self._closed
        if closed:
            self._give_up(worker)
            raise EOFError
        return worker

    def _put_back(self, worker: _Worker) -> None:
        with self._lock:
            self._running.pop(worker.process.pid, None)
        self._idle.put(worker)

    def _give_up(self, worker: _Worker) -> None:
        with self._lock:
            self._running.pop(worker.process.pid, None)
        worker.kill()

    def _start(self) -> _Worker:
        """A process that has said that it is ready. On a thread that lives until `close`: the kernel takes the end of
        the thread that started a process for the parent's."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "synth.verifiers.worker", str(theirs.fileno()), str(os.getpid()),
                 str(self.memory_bytes), *self.kinds],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
        worker = _Worker(process=process, connection=ours)
        try:
            worker.ask(b"", START_SECONDS)
        except BaseException:
            worker.kill()
            raise
        return worker


def _require(kind: str) -> None:
    if kind not in VERIFIERS:
        raise SynthError(f"verifier {kind!r}: no such kind; there are {', '.join(sorted(VERIFIERS))}")
