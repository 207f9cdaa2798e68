"""vLLM in this process: requests join its batch while it runs, token ids go in and come out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from synth.errors import SynthError
from synth.replies import Failure, Reply, TeacherError
from synth.requests import Identity, Request, seed_of
from synth.teachers.http_bodies import refusal
from synth.teachers.settings import InProcess, TeacherSettings
from synth.teachers.vllm_environment import SET_UP, engine_arguments
from synth.teachers.vllm_process import WATCH
from synth.teachers.vllm_requests import Prompts
from synth.teachers.vllm_stepping import Stepping, Work
from synth.teachers.vllm_watch import descendants, started

WATCH_SECONDS: Final = 1.0
STOP_SECONDS: Final = 15.0
MOURN_SECONDS: Final = 3.0
AHEAD: Final = 1.25
"""Requests in the engine over what it computes at once: enough that none of its places is ever empty."""


class EngineTeacher:
    """The teacher of `in_process` settings: vLLM's engine, fed and read by a thread of its own.

    The model runs in processes that the engine starts, and ends with them. Prompts are rendered with the model's own
    chat template, or the settings'. Tools are refused: the engine parses no calls; its server does.
    Raises SynthError from open() where there is no vLLM or the engine does not start.
    """

    def __init__(self, settings: TeacherSettings) -> None:
        assert settings.in_process is not None
        self._settings, self._in_process = settings, settings.in_process
        self._identity = settings.identity()
        self._stepping: Stepping | None = None
        self._room = asyncio.Semaphore(settings.max_in_flight)
        self._waiting: dict[str, tuple[str, asyncio.Future[Reply | Failure]]] = {}
        self._told: list[tuple[asyncio.Future[Reply | Failure], Reply | Failure]] = []
        self._watch: asyncio.Task[None] | None = None
        self._mourner: subprocess.Popen[bytes] | None = None
        self.template_digest = ""

    @property
    def identity(self) -> Identity:
        return self._identity

    @property
    def capacity(self) -> int:
        return self._settings.max_in_flight

    @property
    def tokenizer(self) -> Any:
        """The model's, as transformers has it; only once it is open."""
        assert self._stepping is not None
        return self._stepping.engine.get_tokenizer()

    async def open(self) -> None:
        """Load the model: seconds for a small one, minutes for a large one. template_digest is known afterwards."""
        if find_spec("vllm") is None:
            raise SynthError(f"in_process: no vLLM in this environment; {SET_UP} makes one; or take vllm instead")
        loop = asyncio.get_running_loop()
        before = set(descendants(os.getpid()))
        stepping = Stepping(self._make, lambda: self._flush(loop))
        self._stepping = stepping
        stepping.thread.start()
        await loop.run_in_executor(None, stepping.ready.wait)
        if stepping.failure is not None:
            told = str(stepping.failure).strip().splitlines() or [""]
            raise SynthError(f"in_process: vLLM did not start: {type(stepping.failure).__name__}: {told[0][:300]}")
        self._mourner = _mourner(set(descendants(os.getpid())) - before)
        self.template_digest = stepping.prompts.template_digest()
        at_once = stepping.engine.vllm_config.scheduler_config.max_num_seqs
        self._room = asyncio.Semaphore(min(self._settings.max_in_flight, max(1, int(at_once * AHEAD))))
        self._watch = asyncio.create_task(self._watch_engine(stepping))

    async def close(self) -> None:
        """End the engine and its processes; requests in flight are given up."""
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        stepping, self._stepping, self._watch = self._stepping, None, None
        if stepping is not None:
            await asyncio.get_running_loop().run_in_executor(None, _end, stepping)
        if self._mourner is not None and self._mourner.stdin is not None:
            self._mourner.stdin.close()
            await asyncio.get_running_loop().run_in_executor(None, self._mourner.wait)
        self._mourner = None
        self._give_up("closed")

    async def generate(self, request: Request) -> Reply:
        """The engine's reply. There is one attempt: what a request failed at, it would fail at again."""
        settings, key = self._settings, request.key(self._identity)
        reason = refusal(request) or ("tools; take vllm or urls for them" if request.tools else "")
        if reason:
            raise TeacherError(Failure(key=key, stage="refused", error=reason, attempts=0, final=not request.tools))
        async with self._room:
            told = await self._ask(request, key, settings.timeout_of(request.sampling.max_tokens))
        if isinstance(told, Failure):
            raise TeacherError(told)
        return told

    async def _ask(self, request: Request, key: str, timeout_seconds: float) -> Reply | Failure:
        stepping = self._stepping
        if stepping is None or stepping.failure is not None:
            return Failure(key=key, stage="send", error="the engine is not running")
        future: asyncio.Future[Reply | Failure] = asyncio.get_running_loop().create_future()
        done = self._done(future)
        number = stepping.submit(Work(key=key, request=request, seed=seed_of(key), done=done))
        self._waiting[number] = (key, future)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await future
        except TimeoutError:
            stepping.abort(number)
            return Failure(key=key, stage="wait", error=f"no reply within {timeout_seconds:g} s")
        except asyncio.CancelledError:
            stepping.abort(number)
            raise
        finally:
            del self._waiting[number]

    def _done(self, future: asyncio.Future[Reply | Failure]) -> Callable[[Reply | Failure], None]:
        return lambda told: self._told.append((future, told))

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        """In the engine's thread: what a step ended is told to the loop at one go."""
        if self._told:
            told, self._told = self._told, []
            with contextlib.suppress(RuntimeError):  # a loop that is closed waits for nothing
                loop.call_soon_threadsafe(_settle, told)

    async def _watch_engine(self, stepping: Stepping) -> None:
        """An engine whose process was killed says nothing, and its step waits for ever (vLLM 0.32)."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            core = stepping.engine.engine_core
            if stepping.failure is not None or getattr(getattr(core, "resources", None), "engine_dead", False):
                stepping.failure = stepping.failure or RuntimeError("the engine's process ended")
                self._give_up("the engine died")
                return

    def _give_up(self, error: str) -> None:
        for key, future in self._waiting.values():
            if not future.done():
                future.set_result(Failure(key=key, stage="wait", error=error))

    def _make(self) -> tuple[Any, Prompts]:
        settings, in_process = self._settings, self._in_process
        # Before vLLM is imported, which reads them then. Its log would stand between the run's own lines.
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        from vllm import EngineArgs
        from vllm.usage.usage_lib import UsageContext
        from vllm.v1.engine.llm_engine import LLMEngine

        engine = LLMEngine.from_engine_args(
            EngineArgs(**_arguments(settings, in_process)), usage_context=UsageContext.LLM_CLASS
        )
        template = None if settings.chat_template is None else Path(settings.chat_template).read_text(encoding="utf-8")
        return engine, Prompts(engine.renderer, engine.vllm_config.model_config.max_model_len, settings, template)


def _arguments(settings: TeacherSettings, in_process: InProcess) -> dict[str, Any]:
    told: dict[str, Any] = {"model": in_process.path or settings.model, "use_tqdm_on_load": False, "seed": 0}
    if settings.revision and in_process.path is None:
        told["revision"] = settings.revision
    return told | engine_arguments(in_process.device) | in_process.arguments


def _mourner(pids: set[int]) -> subprocess.Popen[bytes]:
    """Ends the engine's processes when this one is gone: they notice nothing of that by themselves (vLLM 0.32)."""
    marked = [f"{pid}:{started(pid)}" for pid in sorted(pids)]
    command = [sys.executable, "-I", str(WATCH), str(os.getpid()), str(MOURN_SECONDS), "--mourn", *marked]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def _settle(told: list[tuple[asyncio.Future[Reply | Failure], Reply | Failure]]) -> None:
    for future, one in told:
        if not future.done():
            future.set_result(one)


def _end(stepping: Stepping) -> None:
    stepping.stop()
    stepping.thread.join(STOP_SECONDS)
    if stepping.engine is not None:
        stepping.engine.engine_core.shutdown(timeout=STOP_SECONDS)
