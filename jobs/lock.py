"""Two runs on one output exclude each other."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.errors import UserError
from shards.store import filesystem, is_local, join, read_json, remove, write_json

LOCK = ".gristmill/lock"


@contextmanager
def locked(out: str) -> Iterator[None]:
    """Hold the output while running. A local lock ends with its process; one on an object store is a file.

    Raises UserError when another run holds it.
    """
    url = join(out, LOCK)
    if not is_local(out):
        held = read_json(url)
        if held is not None:
            raise UserError(
                f"{out}: a run on {held['host']} (process {held['process']}) holds it; if it is dead: remove {url}"
            )
        write_json(url, {"host": socket.gethostname(), "process": os.getpid()})
        try:
            yield
        finally:
            remove(url)
        return
    _, path = filesystem(url)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{out}: another run is writing there; wait for it, or choose another output") from None
        yield
    finally:
        os.close(handle)
