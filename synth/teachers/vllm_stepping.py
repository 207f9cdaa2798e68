"""A thread that owns vLLM's engine: requests join while it runs, and each is given back when it ends."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final

from synth.replies import Failure, Reply
from synth.requests import Request
from synth.teachers.vllm_requests import Prompts, RefusedError, add, reply_of, sampling_params

ADMITTED_A_STEP: Final = 64
"""Requests that join between two steps at most: rendering a hundred long prompts must not hold the others back."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """One request on its way. done: called in the engine's thread, once, with what came of it."""

    key: str
    request: Request
    seed: int
    done: Callable[[Reply | Failure], None]


@dataclass(frozen=True)
class _Abort:
    number: str


class Stepping:
    """make: builds the engine and its prompts, in the thread. flush: called after all `done` of a step.

    Nothing else may touch the engine. Its own processes do the model's work, so what happens here (rendering,
    detokenising, replies) is done while they compute.
    """

    def __init__(self, make: Callable[[], tuple[Any, Prompts]], flush: Callable[[], None]) -> None:
        self._make, self._flush = make, flush
        self._queue: SimpleQueue[tuple[str, Work] | _Abort | None] = SimpleQueue()
        self._running: dict[str, tuple[Work, float]] = {}
        self._numbers = itertools.count()
        self._engine: Any = None
        self._prompts: Prompts | None = None
        self.failure: BaseException | None = None
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._run, name="vllm-engine", daemon=True)

    @property
    def engine(self) -> Any:
        return self._engine

    @property
    def prompts(self) -> Prompts:
        assert self._prompts is not None
        return self._prompts

    def submit(self, work: Work) -> str:
        """Returns a number, to abort it by."""
        number = str(next(self._numbers))
        self._queue.put((number, work))
        return number

    def abort(self, number: str) -> None:
        """Give a request up; its `done` may still be called if it has just ended."""
        self._queue.put(_Abort(number))

    def stop(self) -> None:
        """The thread ends after its step; what runs is aborted."""
        self._queue.put(None)

    def _run(self) -> None:
        try:
            self._engine, self._prompts = self._make()
        except BaseException as error:
            self.failure = error
            self.ready.set()
            return
        self.ready.set()
        try:
            while self._admit():
                if self._engine.has_unfinished_requests():
                    self._step()
                self._flush()
        except Exception as error:
            self.failure = error
            self._fail_all(type(error).__name__)

    def _admit(self) -> bool:
        """Take what waits; where nothing runs, wait for it. False once it is to stop."""
        idle = not self._engine.has_unfinished_requests()
        for _ in range(ADMITTED_A_STEP):
            try:
                told = self._queue.get(block=idle)
            except Empty:
                break
            idle = False
            if told is None:
                self._engine.abort_request(list(self._running))
                return False
            if isinstance(told, _Abort):
                if self._running.pop(told.number, None) is not None:
                    self._engine.abort_request([told.number])
            else:
                self._add(*told)
        return True

    def _add(self, number: str, work: Work) -> None:
        start = time.perf_counter()
        try:
            rendered = self.prompts.render(work.request)
            params = sampling_params(work.request, work.seed)
            self._running[number] = work, start
            add(self._engine, number, rendered, params)
        except RefusedError as error:
            self._running.pop(number, None)
            work.done(Failure(key=work.key, stage=error.stage, error=error.error, final=error.stage == "prompt"))

    def _step(self) -> None:
        for output in self._engine.step():
            if not output.finished or (found := self._running.pop(output.request_id, None)) is None:
                continue
            work, start = found
            seconds = time.perf_counter() - start
            work.done(reply_of(output, key=work.key, request=work.request, seed=work.seed, seconds=seconds))

    def _fail_all(self, error: str) -> None:
        for work, _ in self._running.values():
            work.done(Failure(key=work.key, stage="wait", error=f"the engine died ({error})"))
        self._running.clear()
        self._flush()
