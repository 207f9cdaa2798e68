"""Progress of a group: one live line on a terminal, a plain line every 30 s elsewhere. Words go to stderr."""

from __future__ import annotations

import sys
import time
from typing import Any

PLAIN_EVERY_S = 30.0
LIVE_EVERY_S = 0.5


class Progress:
    """Tells how many of a group's shards are done, how fast, and when it will end. quiet: says nothing."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.live = sys.stderr.isatty() and not quiet
        self._bar: Any = None
        self._task: Any = None
        self._label = ""
        self._total = self._done = self._first = 0
        self._started = self._told = 0.0

    def begin(self, label: str, total: int, done: int) -> None:
        self._label, self._total, self._done, self._first = label, total, done, done
        self._started = self._told = time.monotonic()
        if self.live:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("shards"),
                TimeRemainingColumn(), console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._bar.start()
            self._task = self._bar.add_task(label, total=total, completed=done)

    def update(self, done: int) -> None:
        self._done = done
        if self._bar is not None:
            self._bar.update(self._task, completed=done)
        elif not self.quiet and time.monotonic() - self._told >= PLAIN_EVERY_S:
            self._told = time.monotonic()
            self.say(f"{self._label}  {done}/{self._total} shards{self._left()}")

    def due(self) -> bool:
        """Whether it is time to count again (counting lists a folder)."""
        now = time.monotonic()
        wait = LIVE_EVERY_S if self.live else PLAIN_EVERY_S
        return not self.quiet and now - self._told >= wait and (not self.live or self._tick(now))

    def _tick(self, now: float) -> bool:
        self._told = now
        return True

    def _left(self) -> str:
        made = self._done - self._first
        if made <= 0:
            return ""
        seconds = (time.monotonic() - self._started) / made * (self._total - self._done)
        return f"  about {seconds / 60:.0f} min left" if seconds > 90 else f"  about {seconds:.0f} s left"

    def end(self, line: str) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        self.say(line)

    def say(self, line: str) -> None:
        if not self.quiet:
            print(line, file=sys.stderr, flush=True)
