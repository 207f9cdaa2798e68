"""Questions to a Python program in a sandbox, and what it claims in reply."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, Self

from synth.verifiers.code.bubblewrap import SandboxError, interpreter
from synth.verifiers.code.gold import Gold
from synth.verifiers.code.launching import START_SECONDS
from synth.verifiers.code.processes import LimitError, Sandbox
from synth.verifiers.code.settings import Settings

_INSIDE: Final = "synth.verifiers.code.inside"


class FailedError(Exception):
    """The program fails its tests; `reason` is the verdict's."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Clock:
    """The program's time: each case's own, and that of all together. What starting sandboxes takes is none of it."""

    def __init__(self, case_seconds: float, total_seconds: float) -> None:
        self._case = case_seconds
        self._left = total_seconds

    @contextmanager
    def case(self) -> Iterator[float]:
        """The deadline of what is done within."""
        began = time.monotonic()
        try:
            yield began + min(self._case, self._left)
        finally:
            self._left -= time.monotonic() - began


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A program that is tested."""

    program: str
    gold: Gold
    settings: Settings
    clock: Clock


def python_command(settings: Settings, *arguments: str) -> list[str]:
    """Python with no environment of anybody's, and with what is installed only where it is asked for."""
    flags = ["-s", "-B"] if settings.packages else ["-s", "-S", "-B"]
    return [interpreter(settings.interpreter).path, *flags, *arguments]


@cache
def _start_of(name: str) -> str:
    """A program that makes the modules of `inside` from their text, so that no folder of ours is shown inside."""
    texts = {
        f"{_INSIDE}.{one}": resources.files(_INSIDE).joinpath(f"{one}.py").read_text(encoding="utf-8")
        for one in ("values", name)
    }
    return (
        "import sys, types\n"
        f"for name, text in {texts!r}.items():\n"
        "    module = sys.modules[name] = types.ModuleType(name)\n"
        "    exec(compile(text, name, 'exec'), module.__dict__)\n"
        "del name, text\n"
        "module.main()\n"
    )


def ran_out_of_memory(reply: Mapping[str, Any]) -> bool:
    """Whether what a program raised is that it could get no more."""
    names = reply.get("raised")
    return isinstance(names, list) and "MemoryError" in names


class Session:
    """A Python process in a sandbox that answers line by line. A context manager.

    module: of `inside`; driver answers calls into a program, harness runs tests.
    """

    def __init__(self, settings: Settings, module: str = "driver") -> None:
        place = interpreter(settings.interpreter).place
        self.sandbox = Sandbox(python_command(settings, "-c", _start_of(module)), limits=settings.limits, place=place)
        try:
            if self.sandbox.line(time.monotonic() + START_SECONDS) != b'"ready"':
                raise SandboxError("sandbox_failed", "its interpreter did not start")
        except LimitError as limit:
            self.sandbox.__exit__()
            raise SandboxError("sandbox_failed", f"its interpreter did not start: {limit.reason}") from None
        except BaseException:
            self.sandbox.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.sandbox.__exit__()

    def tell(self, request: Mapping[str, Any]) -> None:
        self.sandbox.send(json.dumps(request).encode() + b"\n")

    def hear(self, deadline: float) -> dict[str, Any]:
        """The next line. Raises FailedError where it is none of ours or the process ended; LimitError."""
        line = self.sandbox.line(deadline)
        if line is None:
            raise FailedError("exited")
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            raise FailedError("protocol") from None
        if not isinstance(told, dict):
            raise FailedError("protocol")
        return told

    def ask(self, request: Mapping[str, Any], deadline: float) -> dict[str, Any]:
        """The reply to one request of the driver's. Raises as `hear`."""
        number = secrets.token_hex(16)
        self.tell({**request, "number": number})
        reply = self.hear(deadline)
        if reply.pop("number", None) != number:
            raise FailedError("protocol")
        return reply

    def load(self, source: str, deadline: float, *, keeps: bool = False) -> None:
        """Give it the program. keeps: its own objects may be held by number. Raises FailedError where it does not
        load."""
        reply = self.ask({"load": source, "keeps": keeps}, deadline)
        if "value" not in reply:
            raise FailedError("memory_limit" if ran_out_of_memory(reply) else "does_not_load")
