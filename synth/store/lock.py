"""One writer a folder: a lock that the kernel lets go of when its process dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

from synth.errors import SynthError


class FolderLock:
    """Held from its making to `release`. Raises SynthError, naming the process, where another holds it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 200, 0).decode("utf-8", "replace").strip() or "another process"
            os.close(self._file)
            raise SynthError(
                f"{path.parent}: {holder} writes here; wait for it, or give this run a folder of its own"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._file)
