"""A coroutine run to its end from wherever it is called: a program, a notebook, a running event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

Made = TypeVar("Made")


def anywhere(work: Callable[[], Coroutine[Any, Any, Made]]) -> Made:
    """Run a coroutine to its end, in this thread or, where an event loop runs here, in one of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    made: list[Made] = []
    raised: list[BaseException] = []
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def noted() -> Made:
        task = asyncio.current_task()
        assert task is not None
        started.append((asyncio.get_running_loop(), task))
        return await work()

    def in_thread() -> None:
        try:
            made.append(asyncio.run(noted()))
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=in_thread, name="synth.running")
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        for loop, task in started:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if raised:
        raise raised[0]
    return made[0]
