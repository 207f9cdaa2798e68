"""What the processes of a sandbox use together, as the host's /proc tells it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Usage:
    """processes: with the sandbox's own first one. memory_bytes: resident, pages that several share counted for each.
    cpu_seconds: of those alive, and of their children that ended."""

    processes: int = 0
    memory_bytes: int = 0
    cpu_seconds: float = 0.0


def descendants(process: int, most: int = 10_000) -> list[int]:
    """A process and all below it; the first process of a sandbox takes in those whose parent ended."""
    found, at = [process], 0
    while at < len(found) < most:
        folder = f"/proc/{found[at]}/task"
        at += 1
        try:
            for thread in os.listdir(folder):
                with open(f"{folder}/{thread}/children", "rb") as file:
                    found += map(int, file.read().split())
        except OSError:  # it ended in between
            continue
    return found


def usage(process: int) -> Usage:
    """Of a sandbox, by its first process."""
    processes = descendants(process)
    memory, ticks = 0, 0
    for one in processes:
        try:
            with open(f"/proc/{one}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
        memory += int(fields[21]) * _PAGE_BYTES
    return Usage(processes=len(processes), memory_bytes=memory, cpu_seconds=ticks / _TICKS_A_SECOND)


def waited_seconds(process: int) -> float:
    """For which the threads of a sandbox were ready and had no core (the second figure of schedstat, proc(5)); 0 where
    the kernel does not count it."""
    total = 0
    for one in descendants(process):
        try:
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/schedstat", "rb") as file:
                    total += int(file.read().split()[1])
        except (OSError, IndexError):
            continue
    return total * 1e-9


def proportional_bytes(process: int) -> int:
    """Memory with each shared page counted once: slower to read, so only where the plain sum is above a limit."""
    total = 0
    for one in descendants(process):
        try:
            with open(f"/proc/{one}/smaps_rollup", "rb") as file:
                total += next(int(line.split()[1]) for line in file if line.startswith(b"Pss:")) * 1024
        except (OSError, StopIteration):
            continue
    return total
