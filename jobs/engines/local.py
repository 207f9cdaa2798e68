"""The local engine: datatrove's LocalPipelineExecutor drives the tasks; workers share nothing.

The executor runs in a clean process (one thread, libraries loaded once) and forks its workers, which fork a child a
task: start-up costs milliseconds, memory returns to the system after each shard, and a killed task is one failed shard.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import Any

from jobs.engines.duckdb_shuffle import DuckdbShuffle
from jobs.engines.isolate import Task, run_isolated, warm
from jobs.errors import UserError

PRELOAD = "jobs.engines.preload"


class LocalEngine:
    """Runs tasks on this machine's cores. workers: processes; memory_bytes: the share of sorts and joins."""

    name = "local"

    def __init__(self, *, workers: int, memory_bytes: int) -> None:
        self.workers = workers
        self.memory_bytes = memory_bytes
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([PRELOAD])

    def each(self, task: Task, numbers: Sequence[int], tick: Callable[[], None] = lambda: None) -> dict[int, str]:
        """Run task(number) for each number, in any order; {number: what went wrong} of those that failed."""
        if not numbers:
            return {}
        failures: dict[int, str] = {}
        _start_forkserver()
        told, telling = self._context.Pipe(duplex=False)
        living, alive = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_drive, args=(task, list(numbers), self.workers, telling, living))
        try:
            process.start()
            telling.close()
            living.close()
            while process.is_alive():
                process.join(0.2)
                _drain(told, failures)
                tick()
            _drain(told, failures)
        finally:
            alive.close()  # whatever still runs ends now: see _end_with_driver
            told.close()
        if process.exitcode:
            raise UserError(f"{_ended(process.exitcode)}; run again: it resumes", exit_code=1)
        return failures

    def shuffle(self) -> DuckdbShuffle:
        return DuckdbShuffle(workers=self.workers, memory_bytes=self.memory_bytes * self.workers, each=self.each)

    def close(self) -> None:
        """Nothing to stop: processes end with their tasks."""


def _start_forkserver() -> None:
    """Start the process that workers are forked from, deaf to Ctrl-C: the driver hears it, and ends the rest."""
    if threading.current_thread() is not threading.main_thread():
        forkserver.ensure_running()
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, before)


def _ended(exit_code: int) -> str:
    if exit_code < 0:
        hint = "; was the memory used up? fewer workers, or a smaller memory_bytes" if exit_code == -9 else ""
        return f"the process of the workers was ended by {signal.Signals(-exit_code).name}{hint}"
    return f"the process of the workers ended with exit code {exit_code}"


def _drain(told: Connection, failures: dict[int, str]) -> None:
    while told.poll():
        try:
            number, error = told.recv()
        except EOFError:
            return
        failures[number] = error


class _Rank:
    """One datatrove pipeline step that runs the rank-th task."""

    def __init__(self, task: Task, numbers: list[int]) -> None:
        self.task = task
        self.numbers = numbers

    def __call__(self, data: Any, rank: int, world_size: int) -> None:
        error = run_isolated(self.task, self.numbers[rank])
        if error is not None:
            assert _TELLING is not None
            _TELLING.send((self.numbers[rank], error))


_TELLING: Connection | None = None  # inherited by the forked workers; datatrove pickles its pipeline, not this


def _end_with_driver(living: Connection) -> None:
    """Wait for the driver to end, by whatever way, and end this process group at once: nobody goes on writing."""
    with contextlib.suppress(EOFError, OSError):
        living.recv_bytes()
    os.killpg(0, signal.SIGKILL)


def _drive(task: Task, numbers: list[int], workers: int, telling: Connection, living: Connection) -> None:
    global _TELLING  # noqa: PLW0603 - see above
    _TELLING = telling
    os.setsid()  # a group of its own: datatrove's manager, the workers, and their children
    threading.Thread(target=_end_with_driver, args=(living,), daemon=True).start()
    os.environ.setdefault("TQDM_DISABLE", "1")
    from datatrove.executor.local import LocalPipelineExecutor

    warm(task)
    with tempfile.TemporaryDirectory(prefix="gristmill-") as logs:
        LocalPipelineExecutor(
            pipeline=[_Rank(task, numbers)],
            tasks=len(numbers),
            workers=min(workers, len(numbers)),
            logging_dir=logs,
            skip_completed=False,
            start_method="fork",
        ).run()
