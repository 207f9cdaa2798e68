"""The local engine: datatrove's LocalPipelineExecutor drives the tasks; workers share nothing.

The executor runs in a clean process (one thread, libraries loaded once) and forks its workers, which fork a child a
task: start-up costs milliseconds, memory returns to the system after each shard, and a killed task is one failed shard.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from jobs.engines.duckdb_shuffle import DuckdbShuffle
from jobs.engines.isolate import Task, die_with_parent, run_isolated, warm

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
        told, telling = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_drive, args=(task, list(numbers), self.workers, telling))
        process.start()
        telling.close()
        try:
            while process.is_alive():
                process.join(0.2)
                _drain(told, failures)
                tick()
        except BaseException:
            process.kill()
            process.join()
            raise
        _drain(told, failures)
        told.close()
        if process.exitcode:
            raise RuntimeError(f"the local executor ended with exit code {process.exitcode}")
        return failures

    def shuffle(self) -> DuckdbShuffle:
        return DuckdbShuffle(workers=self.workers, memory_bytes=self.memory_bytes * self.workers, each=self.each)

    def close(self) -> None:
        """Nothing to stop: processes end with their tasks."""


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


def _drive(task: Task, numbers: list[int], workers: int, telling: Connection) -> None:
    global _TELLING  # noqa: PLW0603 - see above
    _TELLING = telling
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
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
