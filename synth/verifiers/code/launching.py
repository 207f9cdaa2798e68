"""A sandbox's processes: bwrap started, and ended with all that runs in it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from synth.verifiers.code import bubblewrap
from synth.verifiers.code.bubblewrap import Place, SandboxError
from synth.verifiers.code.settings import Limits

START_SECONDS: Final = 20.0
"""For bwrap to make its namespaces: some 15 ms on an idle core."""

END_SECONDS: Final = 10.0
"""For the kernel to end every process of a sandbox: some milliseconds on an idle core."""

_COMPLAINT_CHARS: Final = 300


@dataclass(frozen=True, kw_only=True)
class Launched:
    """bwrap's process; the first process of the sandbox by its number and by a descriptor that stays its own; and the
    pipe on which bwrap tells of it."""

    bwrap: subprocess.Popen[bytes]
    first_process: int
    descriptor: int
    status: int

    def exit_code(self) -> int | None:
        """Of the program, once bwrap has ended; None where it was never executed."""
        report = b""
        while part := _read_within(self.status, time.monotonic() + START_SECONDS):
            report += part
        for line in report.splitlines():
            with contextlib.suppress(ValueError):
                told = json.loads(line)
                if isinstance(told, dict) and "exit-code" in told:
                    return int(told["exit-code"])
        return None

    def end(self) -> None:
        """Kill all that is in it, and wait until it is gone: the kernel lets the first process of a process namespace
        end after every other one of it (pid_namespaces(7))."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)
        gone = _readable(self.descriptor, END_SECONDS)
        _end_bwrap(self.bwrap, END_SECONDS if gone else 0.0)
        os.close(self.descriptor)
        os.close(self.status)
        if not gone:
            raise SandboxError("not_ended", f"process {self.first_process} is still there")


def launch(inner: Sequence[str], *, limits: Limits, place: Place, files: Mapping[str, bytes]) -> Launched:
    """Start a command in a sandbox. files: content by path inside. Raises SandboxError."""
    status, status_end = os.pipe()
    gate_end, gate = os.pipe()
    passed = [status_end, gate_end]
    process: subprocess.Popen[bytes] | None = None
    try:
        try:
            bound = [(_memory_file(content, passed), path, 0o555) for path, content in files.items()]
            filtered = bubblewrap.system_call_filter()
            calls = None if filtered is None else _memory_file(filtered, passed)
            command = bubblewrap.command(
                inner, limits=limits, place=place, files=bound, status=status_end, gate=gate_end, calls=calls
            )
            process = subprocess.Popen(
                command, pass_fds=passed, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                bufsize=0, env={}, cwd="/", **bubblewrap.identity(),
            )  # fmt: skip
        finally:
            for descriptor in passed:
                os.close(descriptor)
        first = _first_process(status, process)
        descriptor = os.pidfd_open(first)  # bwrap waits at the gate, so the number is still its own
        os.write(gate, b".")
        return Launched(bwrap=process, first_process=first, descriptor=descriptor, status=status)
    except BaseException as error:
        os.close(status)
        if process is not None:
            _end_bwrap(process, 0.0)
        if isinstance(error, OSError | subprocess.SubprocessError):
            raise SandboxError("sandbox_failed", type(error).__name__) from None
        raise
    finally:
        os.close(gate)


def _first_process(status: int, process: subprocess.Popen[bytes]) -> int:
    """From the first line of bwrap's report."""
    deadline = time.monotonic() + START_SECONDS
    report = b""
    while b"\n" not in report and (part := _read_within(status, deadline)):
        report += part
    try:
        return int(json.loads(report.partition(b"\n")[0])["child-pid"])
    except (ValueError, KeyError, TypeError):
        raise SandboxError("sandbox_failed", complaint(process) or "bwrap did not start") from None


def complaint(process: subprocess.Popen[bytes]) -> str:
    """What bwrap has written to stderr: of a sandbox in which no program ran yet."""
    assert process.stderr is not None
    if not _readable(process.stderr.fileno(), 1.0):
        return ""
    text = (os.read(process.stderr.fileno(), 4096) or b"").decode("utf-8", "replace")
    return " ".join(text.split())[:_COMPLAINT_CHARS]


def _end_bwrap(process: subprocess.Popen[bytes], seconds: float) -> None:
    """It ends once it has reaped its child. Else both die: --die-with-parent."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _memory_file(content: bytes, opened: list[int]) -> int:
    """A file without a name, to be read from its start."""
    descriptor = os.memfd_create("file", os.MFD_CLOEXEC)
    opened.append(descriptor)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _readable(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(seconds, 0) * 1000))


def _read_within(descriptor: int, deadline: float) -> bytes:
    """Some bytes; none at the end or past the deadline."""
    return os.read(descriptor, 4096) if _readable(descriptor, deadline - time.monotonic()) else b""
