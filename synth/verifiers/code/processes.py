"""One sandbox, spoken to within limits: what it writes is read without end nowhere, and nothing of it is left."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Self

from synth.verifiers.code import launching, watching
from synth.verifiers.code.bubblewrap import Place, SandboxError
from synth.verifiers.code.settings import Limits

WATCH_SECONDS: Final = 0.02
"""Between two looks at memory and processes. A program that takes memory as fast as the kernel gives it, some 2 GB/s
on this project's machines, is some 40 MB above its limit by then; each of its processes also has RLIMIT_AS."""

_READ_BYTES: Final = 1 << 16


_CPU_SIGNALS: Final = (128 + signal.SIGXCPU, 128 + signal.SIGKILL)


class LimitError(Exception):
    """The program went beyond a limit; `reason` is the verdict's. deprived: it waited for a core at least half of the
    time, and had one for less than half: that it took too long is then not its own fault."""

    def __init__(self, reason: str, *, deprived: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.deprived = deprived


class Sandbox:
    """A command that runs. A context manager: at its end nothing of it is left, whatever it did, or SandboxError.

    inner: the command inside. files: content by path inside.
    """

    def __init__(
        self, inner: Sequence[str], *, limits: Limits, place: Place, files: Mapping[str, bytes] | None = None
    ) -> None:
        self.limits = limits
        self._cpu_seconds = 0.0
        self._launched = launching.launch(inner, limits=limits, place=place, files=files or {})
        try:
            self._open()
        except BaseException:
            self._launched.end()
            raise

    def _open(self) -> None:
        process = self._launched.bwrap
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._in, self._out, self._err = process.stdin, process.stdout, process.stderr
        for stream in (self._in, self._out, self._err):
            os.set_blocking(stream.fileno(), False)
        self._ended = os.pidfd_open(process.pid)
        self._input = self._in.fileno()  # it may be closed before the others
        self._poll = select.poll()
        for descriptor in (self._out.fileno(), self._err.fileno(), self._ended):
            self._poll.register(descriptor, select.POLLIN)
        self._to_send = memoryview(b"")
        self._last_input = False
        self._received = bytearray()
        self._complaints = 0
        self._exited = False
        self._began = time.monotonic()
        self._next_look = time.monotonic() + WATCH_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._ended)
        self._launched.end()

    def send(self, data: bytes, *, last: bool = False) -> None:
        """Written while something is waited for, so that neither side waits for ever on the other's full pipe."""
        self._to_send = memoryview(bytes(self._to_send) + data)
        self._last_input = last
        if self._to_send or last:
            self._poll.register(self._input, select.POLLOUT)

    def line(self, deadline: float) -> bytes | None:
        """The next line of stdout; None where it ended before there was one. Raises LimitError."""
        self._wait(lambda: b"\n" in self._received or self._exited, deadline)
        text, end, rest = self._received.partition(b"\n")
        if not end:
            self._exit_code()
            return None
        self._received = rest
        return bytes(text)

    def finish(self, deadline: float) -> tuple[bytes, int]:
        """All of stdout and the exit code (128 + n for a signal n), once its command has ended; processes that it left
        behind are not waited for. Raises LimitError; SandboxError where the command was never executed."""
        self._wait(lambda: self._exited, deadline)
        return bytes(self._received), self._exit_code()

    def _exit_code(self) -> int:
        """Raises LimitError where it was the CPU limit's: who ignores its signal is killed a second later."""
        code = self._launched.exit_code()
        if code is None:
            raise SandboxError("sandbox_failed", launching.complaint(self._launched.bwrap))
        if code == _CPU_SIGNALS[0] or (code == _CPU_SIGNALS[1] and self._cpu_seconds > self.limits.cpu_seconds):
            raise LimitError("cpu_limit")
        return code

    def _deprived(self) -> bool:
        half = (time.monotonic() - self._began) / 2
        return self._cpu_seconds < half <= watching.waited_seconds(self._launched.first_process)

    def _wait(self, done: Callable[[], bool], deadline: float) -> None:
        while not done():
            now = time.monotonic()
            if now >= deadline:
                self._look()
                raise LimitError("timeout", deprived=self._deprived())
            if now >= self._next_look:
                self._look()
                self._next_look = time.monotonic() + WATCH_SECONDS
            for descriptor, _ in self._poll.poll(min(deadline - now, WATCH_SECONDS) * 1000):
                if descriptor == self._ended:
                    self._take_the_rest()
                elif descriptor == self._input:
                    self._write()
                else:
                    self._read(descriptor)

    def _take_the_rest(self) -> None:
        """Its command has ended: what it wrote is in the pipes."""
        self._exited = True
        while self._read(self._out.fileno()):
            pass

    def _read(self, descriptor: int) -> bool:
        """Some of one pipe, and whether there was any."""
        try:
            part = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        if not part:
            if not self._exited:
                self._poll.unregister(descriptor)
            return False
        if descriptor == self._out.fileno():
            self._received += part
        else:
            self._complaints += len(part)
        if max(len(self._received), self._complaints) > self.limits.output_kibibytes * 1024:
            raise LimitError("output_limit")
        return True

    def _write(self) -> None:
        try:
            written = os.write(self._input, self._to_send[:_READ_BYTES])
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not want to read, and need not
            written = len(self._to_send)
        self._to_send = self._to_send[written:]
        if not self._to_send:
            self._poll.unregister(self._input)
            if self._last_input:
                self._in.close()

    def _look(self) -> None:
        first = self._launched.first_process
        used = watching.usage(first)
        self._cpu_seconds = max(self._cpu_seconds, used.cpu_seconds)
        most = self.limits.memory_mebibytes << 20
        if used.processes > self.limits.processes + 2:  # the sandbox's own first process, and one being made
            raise LimitError("process_limit")
        if used.memory_bytes > most and watching.proportional_bytes(first) > most:
            raise LimitError("memory_limit")
