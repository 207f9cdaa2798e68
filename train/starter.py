"""A program that another one started ends with it, even where that is killed: nobody trains on behind its back.

The starter (jobs.children) holds the other end of stdin, never writes, and says so in GRISTMILL_STARTER. torchrun hands
stdin on to each of its processes.
"""

from __future__ import annotations

import os
import sys
import threading

HOLDS_STDIN = "GRISTMILL_STARTER"


def end_with_starter() -> None:
    """From now on, end this process at once when stdin ends; nothing where the starter does not hold it.

    As after a kill, what was being written never looks finished, and the next run goes on from the last checkpoint.
    """
    if os.environ.get(HOLDS_STDIN):
        threading.Thread(target=_wait, args=(sys.stdin.fileno(),), daemon=True).start()


def _wait(stdin: int) -> None:
    while os.read(stdin, 1 << 10):
        pass
    os._exit(1)
