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
from typing import Any

from jobs.engines.duckdb_shuffle import DuckdbShuffle
from jobs.engines.isolate import Task, die_with_parent, run_isolated

PRELOAD = "jobs.engines.preload"


class LocalEngine:
    """Runs tasks on this machine's cores. workers: processes; memory_bytes: the share of sorts and joins."""

    name = "local"

    def __init__(self, *, workers: int, memory_bytes: int) -> None:
        self.workers = workers
        self.memory_bytes = memory_bytes
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([PRELOAD])

    def each(self, task: Task, numbers: Sequence[int], tick: Callable[[], None] = lambda: None) -> None:
        """Run task(number) for each number, in any order; failures are left where the task puts them."""
        if not numbers:
            return
        process = self._context.Process(target=_drive, args=(task, list(numbers), self.workers))
        process.start()
        try:
            while process.is_alive():
                process.join(0.2)
                tick()
        except BaseException:
            process.kill()
            process.join()
            raise
        if process.exitcode:
            raise RuntimeError(f"the local executor ended with exit code {process.exitcode}")

    def shuffle(self) -> DuckdbShuffle:
        return DuckdbShuffle(workers=self.workers, memory_bytes=self.memory_bytes * self.workers, each=self.each)

    def close(self) -> None:
        """Nothing to stop: processes end with their tasks."""


class _Rank:
    """One datatrove pipeline step that runs the rank-th task."""

    def __init__(self, task: Task, numbers: list[int]) -> None:
        self.task = task
        self.numbers = numbers

    def __call__(self, data: Any, rank: int, world_size: int) -> None:
        run_isolated(self.task, self.numbers[rank])


def _drive(task: Task, numbers: list[int], workers: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    os.environ.setdefault("TQDM_DISABLE", "1")
    from datatrove.executor.local import LocalPipelineExecutor

    with tempfile.TemporaryDirectory(prefix="gristmill-") as logs:
        LocalPipelineExecutor(
            pipeline=[_Rank(task, numbers)],
            tasks=len(numbers),
            workers=min(workers, len(numbers)),
            logging_dir=logs,
            skip_completed=False,
            start_method="fork",
        ).run()
