"""Sort, group and join for whole-corpus steps on one machine: DuckDB over Parquet, spilling to disk past its memory.

See `jobs.engines.phases` for what a phase leaves behind.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.engines.phases import DONE, Each, inline, map_phase
from shards.step import Kernel, ShardTask
from shards.store import ParquetWriter, exists, filesystem, is_local, join, remove, tables, write_bytes
from shards.views import parquet, quote

if TYPE_CHECKING:
    import duckdb

STREAM_ROWS = 8192


class DuckdbShuffle:
    """`shards.step.Shuffle` on DuckDB. memory_bytes bounds DuckDB; kernels hold a batch."""

    def __init__(self, *, workers: int = 1, memory_bytes: int = 1 << 30, each: Each = inline) -> None:
        self.workers = workers
        self.memory_bytes = memory_bytes
        self.each = each

    def map(self, task: ShardTask, shards: Sequence[str], out: str) -> str:
        return map_phase(self.each, task, shards, out)

    def query(self, sql: str, out: str, **tables: str) -> str:
        if not exists(join(out, DONE)):
            remove(out)
            with told_by_the_system(out), self._connect(out, tables) as connection:
                if is_local(out):
                    os.makedirs(filesystem(out)[1], exist_ok=True)
                target = quote(join(out, "part-00000.parquet"))
                connection.execute(f"COPY ({sql}) TO {target} (FORMAT parquet, COMPRESSION zstd)")
            write_bytes(join(out, DONE), b"")
        return out

    def stream(self, sql: str, kernel: Kernel, out: str, *, key: str, order: Sequence[str], **tables: str) -> str:
        if not exists(join(out, DONE)):
            remove(out)
            with told_by_the_system(out), self._connect(out, tables) as connection:
                ordered = f"SELECT * FROM ({sql}) ORDER BY {', '.join([key, *order])}"
                reader = connection.sql(ordered).to_arrow_reader(STREAM_ROWS)
                with ParquetWriter(join(out, "part-00000.parquet"), kernel.schema, with_digest=False) as writer:
                    for batch in kernel(iter(reader)):
                        writer.write(batch)
            write_bytes(join(out, DONE), b"")
        return out

    def scalar(self, sql: str, **tables: str) -> int:
        with told_by_the_system(next(iter(tables.values()), "")), self._connect("", tables) as connection:
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
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {parquet(tables(folder))}")
        return connection


@contextmanager
def told_by_the_system(place: str) -> Iterator[None]:
    """Turn what DuckDB says of files, disk and memory into the OSError that it stands for, about `place`.

    Other errors of DuckDB are mistakes of ours and pass as they are. Arrow hands on those of a stream as its own.
    """
    import duckdb

    try:
        yield
    except (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.InvalidInputException, pa.ArrowException) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        if "No space left" in str(error) or "max_temp_directory_size" in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place) from error
        if isinstance(error, pa.ArrowException) and not any(word in said for word in ("IO Error", "Out of Memory")):
            raise
        number = errno.ENOMEM if "Out of Memory" in said else errno.EIO
        raise OSError(number, said, place) from error
