"""The one small interface behind which every teacher stands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from synth.replies import Reply
from synth.requests import Identity, Request


class Teacher(Protocol):
    """A model that answers.

    identity: part of every request's key; known before the teacher is opened. capacity: requests in flight that are
    worth having; `generate` may be called by that many tasks at once, and by more, which then wait.
    """

    @property
    def identity(self) -> Identity: ...

    @property
    def capacity(self) -> int: ...

    async def open(self) -> None:
        """Start or reach the model. Raises SynthError where that is the user's to mend (no server, another model)."""

    async def close(self) -> None:
        """Let go of all that `open` took; allowed twice, and after an `open` that failed."""

    async def generate(self, request: Request) -> Reply:
        """The reply, or TeacherError once retries are used up. Cancelling it gives the request up."""


@asynccontextmanager
async def opened(teacher: Teacher) -> AsyncIterator[Teacher]:
    """The teacher, opened for the block and closed behind it, whatever happens."""
    try:
        await teacher.open()
        yield teacher
    finally:
        await teacher.close()
