"""One task in a process of its own: what kills it, or eats the memory, costs that task only and never hangs the run."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import Any, Protocol

PR_SET_PDEATHSIG = 1


class Task(Protocol):
    """Work that is numbered. Its results are files; `failed` leaves word of what went wrong with one number."""

    def __call__(self, number: int) -> None: ...
    def failed(self, number: int, error: str) -> None: ...


def run_isolated(task: Task, number: int) -> None:
    """Run task(number) in a forked child and wait. Whatever goes wrong there is handed to task.failed."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _in_child(task, number)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        hint = "; was the memory used up? fewer workers, or a smaller memory_bytes" if name == "SIGKILL" else ""
        task.failed(number, f"the worker was killed by {name}{hint}")


def _in_child(task: Task, number: int) -> None:
    status = 1
    try:
        die_with_parent()
        try:
            task(number)
        except BaseException as error:
            task.failed(number, describe(error))
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def describe(error: BaseException) -> str:
    """One line about an exception: its class, its words, and where it was raised; never a document's text."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
    place = ""
    trace = error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        place = f" (at {file.parent.name}/{file.name}:{trace.tb_lineno})"
        trace = trace.tb_next
    words = str(error).splitlines()[0][:300] if str(error) else ""
    return f"{type(error).__name__}: {words}{place}"


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends, so that a killed run leaves nobody writing."""
    if sys.platform == "linux":
        parent = os.getppid()
        libc: Any = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
