"""Runs over processes: each goes from run to run, a process that dies costs one run, and none outlives its parent."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from train.proxies.planning import ProxyRun
from train.proxies.settings import Proxies, ProxyError


@dataclass(frozen=True)
class Swarm:
    """What every process is told."""

    settings: Proxies
    tokens: tuple[str, ...]
    out: str
    device: str


@dataclass(frozen=True)
class Ended:
    """A run that is over. error: None where it succeeded. died: its process ended without a word."""

    run: ProxyRun
    error: str | None
    result: dict[str, Any] | None = None
    died: bool = False


def in_this_process(swarm: Swarm, runs: Sequence[ProxyRun], ended: Callable[[Ended], None]) -> None:
    trainer = _trainer(swarm, 0)
    for run in runs:
        ended(_attempt(trainer, run))


def in_processes(swarm: Swarm, runs: Sequence[ProxyRun], workers: int, ended: Callable[[Ended], None]) -> None:
    """Train all runs; `ended` is told of each, in whatever order they end.

    Raises ProxyError where a process cannot even begin. Processes are gone when this returns or raises.
    """
    waiting = deque(runs)
    held = [_Worker(swarm, number) for number in range(min(workers, len(runs)))]
    try:
        for worker in held:
            worker.give(waiting)
        while busy := [worker for worker in held if worker.run is not None]:
            ready = wait([worker.pipe for worker in busy])
            for worker in busy:
                if worker.pipe in ready:
                    ended(worker.take())
                    if waiting and worker.gone:
                        worker.start()
                    worker.give(waiting)
    finally:
        for worker in held:
            worker.stop()


class _Worker:
    """A process and the run it is busy with."""

    def __init__(self, swarm: Swarm, number: int) -> None:
        self.swarm, self.number = swarm, number
        self.run: ProxyRun | None = None
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.gone = False
        self.pipe: Connection
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=_serve, args=(self.swarm, self.number, theirs), name=f"proxy-{self.number}", daemon=True
        )
        self.process.start()
        theirs.close()

    def give(self, waiting: deque[ProxyRun]) -> None:
        if waiting and not self.gone:
            self.run = waiting.popleft()
            with suppress(OSError):  # it is gone, as `take` will find
                self.pipe.send(self.run)

    def take(self) -> Ended:
        assert self.run is not None
        run, self.run = self.run, None
        try:
            told = self.pipe.recv()
        except (EOFError, OSError):
            self.gone = True
            self.process.join()
            code = self.process.exitcode or 0
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            return Ended(run, f"its process ended with {how}, perhaps out of memory", died=True)
        if isinstance(told, str):
            raise ProxyError(told)
        assert isinstance(told, Ended)
        return told

    def stop(self) -> None:
        self.pipe.close()
        if self.run is not None:
            self.process.terminate()
        self.process.join()


def _serve(swarm: Swarm, number: int, pipe: Connection) -> None:
    """A process's life: runs come in, ends go out, until the pipe closes."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        trainer = _trainer(swarm, number)
    except (ValueError, RuntimeError, OSError) as error:
        pipe.send(str(error).splitlines()[0] if str(error) else type(error).__name__)
        return
    while True:
        try:
            run = pipe.recv()
        except EOFError:
            return
        pipe.send(_attempt(trainer, run))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _trainer(swarm: Swarm, number: int) -> Any:
    import torch

    from train.proxies.training import ProxyTrainer

    if swarm.settings.threads is not None:
        torch.set_num_threads(swarm.settings.threads)
    on_gpu = torch.cuda.is_available() if swarm.device == "auto" else swarm.device == "cuda"
    device = torch.device("cuda", number % torch.cuda.device_count()) if on_gpu else torch.device("cpu")
    return ProxyTrainer(swarm.settings, swarm.tokens, swarm.out, device)


def _attempt(trainer: Any, run: ProxyRun) -> Ended:
    from train.proxies.training import told_of

    try:
        return Ended(run, None, trainer.train(run))
    except Exception as error:  # one run's failure is a row of the table; the others go on
        return Ended(run, told_of(error))
