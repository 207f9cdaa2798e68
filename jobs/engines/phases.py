"""Phases of a whole-corpus step: each leaves a folder of Parquet and a marker; one that is there is not done again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.engines.isolate import Task
from shards.step import ShardTask
from shards.store import ParquetWriter, exists, join, write_bytes

DONE = "_done"

Each = Callable[[Any, Sequence[int]], dict[int, str]]


def inline(task: Task, numbers: Sequence[int]) -> dict[int, str]:
    """Run the tasks here, one after the other."""
    for number in numbers:
        task(number)
    return {}


class PhaseError(RuntimeError):
    """Shards of a phase failed; a line a shard."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(f"{len(lines)} shards failed")
        self.lines = lines


def map_phase(each: Each, task: ShardTask, shards: Sequence[str], out: str) -> str:
    """A kernel over each shard that has no result yet. Raises PhaseError when shards failed."""
    if not exists(join(out, DONE)):
        phase = MapTask(task, tuple(shards), out)
        phase.finish(each(phase, [n for n in range(len(shards)) if not exists(phase.part(n))]))
    return out


@dataclass(frozen=True)
class MapTask:
    """A kernel over each shard: shard n becomes out/part-n.parquet."""

    task: ShardTask
    shards: tuple[str, ...]
    out: str

    def part(self, number: int) -> str:
        return join(self.out, f"part-{number:05d}.parquet")

    def __call__(self, number: int) -> None:
        with ParquetWriter(self.part(number), self.task.schema, with_digest=False) as writer:
            for batch in self.task(number, self.shards[number]):
                writer.write(batch)

    def finish(self, failures: dict[int, str]) -> None:
        """Mark the phase as done, or raise PhaseError with the words of the shards that failed."""
        missing = [n for n in range(len(self.shards)) if not exists(self.part(n))]
        if missing:
            raise PhaseError([f"{self.shards[n]}: {failures.get(n, 'it left no result')}" for n in missing])
        if not self.shards:
            with ParquetWriter(self.part(0), self.task.schema, with_digest=False):
                pass
        write_bytes(join(self.out, DONE), b"")
