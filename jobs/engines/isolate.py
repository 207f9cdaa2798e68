"""One task in a process of its own: what kills it, or eats the memory, costs that task only and never hangs the run."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import sys
from pathlib import Path
from typing import Any, Protocol

PR_SET_PDEATHSIG = 1
MAX_ERROR_BYTES = 1000  # with its frame below PIPE_BUF, so that messages of many workers never mix


class Task(Protocol):
    """Work that is numbered. Its results are files; what goes wrong is what it raises."""

    def __call__(self, number: int) -> None: ...


def warm(task: Task) -> None:
    """Let a task load what its shards share (models, lists, indexes) in the process that its children are forked from.

    What goes wrong here goes wrong again in the shards, which tell it.
    """
    load = getattr(task, "warm", None)
    if load is not None:
        with contextlib.suppress(Exception):
            load()


def run_isolated(task: Task, number: int) -> str | None:
    """Run task(number) in a forked child and wait; what went wrong, in one line, or None."""
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(task, number, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        error = told.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        hint = "; was the memory used up? fewer workers, or a smaller memory_bytes" if name == "SIGKILL" else ""
        return f"the worker was killed by {name}{hint}"
    return error or (f"the worker ended with exit code {os.WEXITSTATUS(status)}" if status else None)


def _in_child(task: Task, number: int, writing: int) -> None:
    status = 1
    try:
        die_with_parent()
        try:
            task(number)
        except BaseException as error:
            os.write(writing, describe(error).encode(errors="backslashreplace")[:MAX_ERROR_BYTES])
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def describe(error: BaseException) -> str:
    """One line about an exception: its class, its words, and where it was raised; never a document's text."""
    if isinstance(error, OSError) and error.strerror:
        mend = "; free some space, then run again: it resumes" if error.errno == errno.ENOSPC else ""
        return f"{error.strerror}: {error.filename}{mend}" if error.filename else f"{error.strerror}{mend}"
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
