"""The parent's side of the child process: jobs in, answers out in order, a dead child replaced.

One child a process, started when first needed and reused. The next pages are on their way while one is parsed, so
the child does not wait for its parent.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from ingest.worker_frames import READ, READY, Answer, Inbox, Job, Orders, pack, send

AHEAD = 4  # pages sent before their turn
PIPE_BYTES = 1 << 20
GIVE_UP_S = 5.0


class Sandbox:
    """A child process under `orders`. Use `sandbox(orders)`, which keeps one for each process."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.owner = os.getpid()
        self.child: subprocess.Popen[bytes] | None = None
        self.inbox = Inbox()
        self.outgoing: deque[memoryview] = deque()

    def run(self, jobs: Sequence[Job]) -> Iterator[Answer]:
        """An answer a job, in order. A page that ends the child is answered ("error", ("resource", why))."""
        answered = 0
        tried: set[int] = set()
        while answered < len(jobs):
            self._start()
            died = False
            for answer in self._answers(jobs, answered):
                yield answer
                answered += 1
                if answer[0] == "error" and answer[1][0] == "resource":
                    break  # the child ends itself: begin anew with the next page
            else:
                died = answered < len(jobs)
            if answered < len(jobs) or died:
                why, certain = self._bury()
                # The page in hand is to blame; but a signal from outside is not its doing, so it has a second try.
                if died and (certain or answered in tried):
                    yield "error", ("resource", why)
                    answered += 1
                elif died:
                    tried.add(answered)
            elif answer[0] == "error" and answer[1][0] == "resource":
                self._bury()

    def _answers(self, jobs: Sequence[Job], first: int) -> Iterator[Answer]:
        """Answers until all are there or the child is gone."""
        assert self.child is not None
        sent = received = first
        inlet, outlet = self._ends()
        while received < len(jobs):
            while sent < len(jobs) and sent < received + AHEAD:
                self.outgoing.append(memoryview(pack(jobs[sent])))
                sent += 1
            readable, writable, _ = select.select([outlet], [inlet] if self.outgoing else [], [])
            if writable and not self._write(inlet):
                self.outgoing.clear()
            if readable:
                data = os.read(outlet, READ)
                if not data:
                    return
                self.inbox.buffer += data
                while (answer := self.inbox.frame()) is not Inbox.EMPTY:
                    received += 1
                    yield answer

    def _write(self, inlet: int) -> bool:
        """Send what the pipe takes; False when nobody reads any more."""
        try:
            while self.outgoing:
                view = self.outgoing[0]
                written = os.write(inlet, view)
                if written < len(view):
                    self.outgoing[0] = view[written:]
                    return True
                self.outgoing.popleft()
        except BlockingIOError:
            pass
        except BrokenPipeError:
            return False
        return True

    def _ends(self) -> tuple[int, int]:
        assert self.child is not None
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        return self.child.stdin.fileno(), self.child.stdout.fileno()

    def _start(self) -> None:
        if self.child is not None:
            return
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
        with tempfile.TemporaryFile() as errors:
            self.child = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", "-m", "ingest.extract_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                bufsize=0,
            )
            inlet, outlet = self._ends()
            for end in (inlet, outlet):
                with contextlib.suppress(OSError, AttributeError):
                    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            self.inbox = Inbox()
            self.outgoing.clear()
            self._greet(inlet, outlet, errors)
        os.set_blocking(inlet, False)

    def _greet(self, inlet: int, outlet: int, errors: BinaryIO) -> None:
        """Send the orders and wait until the child is ready. Raises RuntimeError where it cannot start."""
        with contextlib.suppress(BrokenPipeError):
            send(inlet, self.orders)
        while (answer := self.inbox.frame()) is Inbox.EMPTY and (data := os.read(outlet, READ)):
            self.inbox.buffer += data
        if answer != READY:
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip().splitlines() or ["no message"]
            why, _ = self._bury()
            raise RuntimeError(f"extract: the child process cannot start ({why}): {said[-1][:300]}")

    def _bury(self) -> tuple[str, bool]:
        """Reap the child. Returns why it ended, and whether that was surely the page's doing."""
        child, self.child = self.child, None
        if child is None:
            return "the child process is gone", False
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                stream.close()
        try:
            code = child.wait(GIVE_UP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            code = child.wait()
        if code == -signal.SIGPROF:
            return f"above cpu_limit_s {self.orders.cpu_limit_s:g}", True
        name = signal.Signals(-code).name if code < 0 else f"exit {code}"
        return f"the child process ended: {name}", False

    def close(self) -> None:
        """End the child and reap it."""
        if self.child is not None and self.owner == os.getpid():
            self._bury()


_SANDBOXES: dict[Orders, Sandbox] = {}


def sandbox(orders: Orders) -> Sandbox:
    """This process's child under these orders: made on first use, never shared with a forked process."""
    known = _SANDBOXES.get(orders)
    if known is None or known.owner != os.getpid():
        known = _SANDBOXES[orders] = Sandbox(orders)
        _end_with_process()
    return known


def close_all() -> None:
    """End this process's children."""
    for known in list(_SANDBOXES.values()):
        known.close()


_REGISTERED: set[int] = set()


def _end_with_process() -> None:
    if os.getpid() in _REGISTERED:
        return
    _REGISTERED.add(os.getpid())
    atexit.register(close_all)
    # Pool workers leave by os._exit and run only multiprocessing's own finalizers.
    for name in ("multiprocessing.util", "multiprocess.util"):
        module: Any = sys.modules.get(name)
        if module is not None:
            module.Finalize(None, close_all, exitpriority=10)
