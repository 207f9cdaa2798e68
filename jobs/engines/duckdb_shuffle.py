"""Sort, group and join for whole-corpus steps on one machine: DuckDB over Parquet, spilling to disk past its memory.

Each phase writes a folder under a temporary name and a marker at the end; a phase that is there is not done again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobs.engines.isolate import Task
from shards.step import Kernel, ShardTask
from shards.store import ParquetWriter, exists, filesystem, is_local, join, remove, tables, write_bytes
from shards.views import quote

if TYPE_CHECKING:
    import duckdb

DONE = "_done"
STREAM_ROWS = 8192


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


class DuckdbShuffle:
    """`shards.step.Shuffle` on DuckDB. memory_bytes bounds DuckDB; kernels hold a batch."""

    def __init__(self, *, workers: int = 1, memory_bytes: int = 1 << 30, each: Each = inline) -> None:
        self.workers = workers
        self.memory_bytes = memory_bytes
        self.each = each

    def map(self, task: ShardTask, shards: Sequence[str], out: str) -> str:
        if not exists(join(out, DONE)):
            phase = MapTask(task, tuple(shards), out)
            phase.finish(self.each(phase, [n for n in range(len(shards)) if not exists(phase.part(n))]))
        return out

    def query(self, sql: str, out: str, **tables: str) -> str:
        if not exists(join(out, DONE)):
            remove(out)
            with self._connect(out, tables) as connection:
                if is_local(out):
                    os.makedirs(filesystem(out)[1], exist_ok=True)
                target = quote(join(out, "part-00000.parquet"))
                connection.execute(f"COPY ({sql}) TO {target} (FORMAT parquet, COMPRESSION zstd)")
            write_bytes(join(out, DONE), b"")
        return out

    def stream(self, sql: str, kernel: Kernel, out: str, *, key: str, order: Sequence[str], **tables: str) -> str:
        if not exists(join(out, DONE)):
            remove(out)
            with self._connect(out, tables) as connection:
                ordered = f"SELECT * FROM ({sql}) ORDER BY {', '.join([key, *order])}"
                reader = connection.sql(ordered).to_arrow_reader(STREAM_ROWS)
                with ParquetWriter(join(out, "part-00000.parquet"), kernel.schema, with_digest=False) as writer:
                    for batch in kernel(iter(reader)):
                        writer.write(batch)
            write_bytes(join(out, DONE), b"")
        return out

    def scalar(self, sql: str, **tables: str) -> int:
        with self._connect("", tables) as connection:
            return int(connection.execute(sql).fetchall()[0][0])

    def _connect(self, out: str, named: dict[str, str]) -> duckdb.DuckDBPyConnection:
        import duckdb

        connection = duckdb.connect()
        connection.execute(f"SET threads = {max(self.workers, 1)}")
        connection.execute(f"SET memory_limit = '{max(self.memory_bytes >> 20, 128)}MiB'")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET enable_progress_bar = false")
        if out and is_local(out):
            connection.execute(f"SET temp_directory = {quote(join(os.path.dirname(filesystem(out)[1]), 'spill'))}")
        for name, folder in named.items():
            if not is_local(folder):
                connection.register_filesystem(filesystem(folder)[0])
            told = ", ".join(quote(path) for path in tables(folder))
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{told}])")
        return connection


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


def empty_table(out: str, schema: pa.Schema) -> str:
    """A finished table of no rows."""
    with ParquetWriter(join(out, "part-00000.parquet"), schema, with_digest=False):
        pass
    write_bytes(join(out, DONE), b"")
    return out
