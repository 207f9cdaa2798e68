"""A program that stands between a run and a server, so that no server outlives its run, however that ends.

    python vllm_watch.py PARENT STOP_SECONDS COMMAND...
    python vllm_watch.py PARENT STOP_SECONDS --mourn PID:START...

The first starts the command and ends it, with all that it started, when its input is closed, when the process PARENT is
gone, on SIGTERM, and when the command itself ends; it exits with the command's status. The second ends processes that
are there already, each named with its time of start so that no other of its number is meant, in the same cases.
It needs the standard library alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

LOOK_SECONDS: Final = 0.2
PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36


def main(arguments: list[str]) -> int:
    parent, stop_seconds, command = int(arguments[0]), float(arguments[1]), arguments[2:]
    if command[0] == "--mourn":
        return _mourn(parent, stop_seconds, command[1:])
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda got, _: asked.append(got))
    # What the command leaves behind comes to this process, whichever session it made for itself.
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    server = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, start_new_session=True,
        preexec_fn=_end_with_parent,  # noqa: PLW1509 - this process has one thread
    )  # fmt: skip
    while server.poll() is None and not asked and os.getppid() == parent and not _closed():
        pass
    _end(server, stop_seconds)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def _mourn(parent: int, stop_seconds: float, marked: list[str]) -> int:
    while os.getppid() == parent and not _closed():
        pass
    for number in (signal.SIGTERM, signal.SIGKILL):
        for mark in _there(marked):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(mark.split(":")[0]), number)
        deadline = time.monotonic() + stop_seconds
        while _there(marked) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
    return 0


def _there(marked: list[str]) -> list[str]:
    return [mark for mark in marked if started(int(mark.split(":")[0])) == mark.split(":")[1]]


def started(pid: int) -> str:
    """When a process started, in clock ticks since the machine did; "" for one that is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def descendants(pid: int) -> list[int]:
    """All processes that one started, and those that they did."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


def _closed() -> bool:
    """Whether the input was closed; waits a little for it."""
    try:
        ready, _, _ = select.select([0], [], [], LOOK_SECONDS)
        return bool(ready) and not os.read(0, 4096)
    except InterruptedError:
        return False
    except OSError:
        return True


def _end(server: subprocess.Popen[bytes], stop_seconds: float) -> None:
    """Politely first, then by force: the server, then whatever is left of it."""
    if server.poll() is None:
        server.terminate()
        try:
            server.wait(stop_seconds)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
    deadline = time.monotonic() + 10.0
    while (left := _children()) and time.monotonic() < deadline:
        for pid in left:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _children() -> list[int]:
    """Those that were orphaned have this process for parent; their own children follow once they are gone."""
    own = os.getpid()
    return [int(pid) for pid in Path(f"/proc/{own}/task/{own}/children").read_text().split()]


def _end_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
