"""What the `extract` step and its child process say to each other: 8 bytes of length, then a pickle."""

from __future__ import annotations

import os
import pickle
import select
from dataclasses import dataclass
from datetime import datetime
from typing import Any

HEADER = 8
READ = 1 << 20
READY = "ready"  # the child's first frame


@dataclass(frozen=True, kw_only=True)
class Orders:
    """What a child works under: the first frame it gets."""

    engine: str
    favor: str
    cpu_limit_s: float
    memory_limit_bytes: int


@dataclass(frozen=True, kw_only=True)
class Job:
    """A page, decoded (UTF-8). captured: when it was fetched."""

    page: bytes
    url: str | None
    captured: datetime | None


# ("text", Extracted) | ("none", None) | ("error", (error class, message))
Answer = tuple[str, Any]


def pack(value: Any) -> bytes:
    """One frame."""
    data = pickle.dumps(value, protocol=5)
    return len(data).to_bytes(HEADER, "little") + data


class Inbox:
    """Frames out of bytes, however they come."""

    def __init__(self) -> None:
        self.buffer = bytearray()

    def frame(self) -> Any:
        """The next whole frame's object, or `Inbox.EMPTY`."""
        if len(self.buffer) < HEADER:
            return self.EMPTY
        size = HEADER + int.from_bytes(self.buffer[:HEADER], "little")
        if len(self.buffer) < size:
            return self.EMPTY
        value = pickle.loads(bytes(self.buffer[HEADER:size]))
        del self.buffer[:size]
        return value

    EMPTY = object()


def next_frame(inbox: Inbox, descriptor: int, parent: int, check_s: float) -> Any:
    """Wait for the next frame; None when the other end is closed or the parent is gone.

    A sibling forked from the parent may hold the pipe's other end open, so its closing alone does not tell.
    """
    while (value := inbox.frame()) is Inbox.EMPTY:
        if not select.select([descriptor], [], [], check_s)[0]:
            if os.getppid() != parent:
                return None
            continue
        data = os.read(descriptor, READ)
        if not data:
            return None
        inbox.buffer += data
    return value


def send(descriptor: int, value: Any) -> None:
    """Write one frame, waiting as long as it takes."""
    view = memoryview(pack(value))
    while view:
        view = view[os.write(descriptor, view) :]
