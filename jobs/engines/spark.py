"""The Spark engine: tasks by mapInArrow, whole-corpus steps by DataFrame shuffles, with the local engine's kernels.

Documents never pass through the driver: a task reads its shard from storage and writes its shard there, as it does
under the local engine, and what a shuffle makes is written by the executors. Runs on local[N] by itself, and on any
cluster when started by spark-submit (the master is then the submitter's).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.engines.isolate import Task, run_isolated, warm
from jobs.engines.phases import DONE, Each, map_phase
from jobs.errors import UserError
from shards.schema import conform
from shards.step import Kernel, ShardTask
from shards.store import exists, filesystem, is_local, join, remove, tables, write_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAX_TASKS = 10_000  # Spark schedules about a thousand tasks a second; more shards than this share tasks
DRIVER_OVERHEAD = 512 << 20
LOGGING = Path(__file__).with_name("log4j2.properties").resolve()


class SparkEngine:
    """Runs tasks on Spark. workers: N of local[N] where no master is given; memory_bytes: for sorts, a worker."""

    name = "spark"

    def __init__(self, *, workers: int, memory_bytes: int) -> None:
        self.workers = workers
        self.session = _session(workers, memory_bytes)

    def each(self, task: Task, numbers: Sequence[int], tick: Callable[[], None] = lambda: None) -> dict[int, str]:
        """Run task(number) for each number, in any order; {number: what went wrong} of those that failed."""
        if not numbers:
            return {}
        frame = self.session.range(0, len(numbers), 1, min(len(numbers), MAX_TASKS))
        job = frame.mapInArrow(_Numbered(task, tuple(numbers)), "number bigint, error string")
        failures: dict[int, str] = {}
        broken: list[BaseException] = []

        def work() -> None:
            try:
                failures.update({row.number: row.error for row in job.collect()})  # failed shards only, never documents
            except BaseException as error:
                broken.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(0.2)
            tick()
        if broken:
            raise broken[0]
        return failures

    def shuffle(self) -> SparkShuffle:
        return SparkShuffle(self.session, self.each)

    def close(self) -> None:
        self.session.stop()


class _Numbered:
    """The function of mapInArrow: run the task for each number of a partition, in a process of its own."""

    def __init__(self, task: Task, numbers: tuple[int, ...]) -> None:
        self.task = task
        self.numbers = numbers

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import jobs.engines.preload  # noqa: F401 - once a Python worker, which Spark reuses, not once a shard

        warm(self.task)
        for batch in batches:
            told = [(self.numbers[at], run_isolated(self.task, self.numbers[at])) for at in batch.column(0).to_pylist()]
            failed = [(number, error) for number, error in told if error is not None]
            yield pa.RecordBatch.from_arrays(
                [pa.array([n for n, _ in failed], pa.int64()), pa.array([e for _, e in failed], pa.string())],
                names=["number", "error"],
            )


class SparkShuffle:
    """`shards.step.Shuffle` on Spark SQL. Memory is Spark's; it spills by itself."""

    def __init__(self, session: SparkSession, each: Each) -> None:
        self.session = session
        self.each = each

    def map(self, task: ShardTask, shards: Sequence[str], out: str) -> str:
        return map_phase(self.each, task, shards, out)

    def query(self, sql: str, out: str, **named: str) -> str:
        if not exists(join(out, DONE)):
            self._write(self._frame(sql, named), out)
        return out

    def stream(self, sql: str, kernel: Kernel, out: str, *, key: str, order: Sequence[str], **named: str) -> str:
        if not exists(join(out, DONE)):
            from pyspark.sql.pandas.types import from_arrow_schema

            frame = self._frame(sql, named).repartition(key).sortWithinPartitions(key, *order)
            schema = from_arrow_schema(kernel.schema)
            self._write(frame.mapInArrow(_Streamed(kernel), schema), out)
        return out

    def scalar(self, sql: str, **named: str) -> int:
        return int(self._frame(sql, named).collect()[0][0])

    def _frame(self, sql: str, named: dict[str, str]) -> DataFrame:
        for name, folder in named.items():
            self.session.read.parquet(*[literal(url(path)) for path in tables(folder)]).createOrReplaceTempView(name)
        return self.session.sql(sql)

    def _write(self, frame: DataFrame, out: str) -> None:
        remove(out)
        frame.write.option("compression", "zstd").mode("overwrite").parquet(url(out))
        write_bytes(join(out, DONE), b"")


class _Streamed:
    """A kernel as the function of mapInArrow: its batches with the types that Spark knows (no large strings)."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([pa.field(field.name, _plain(field.type)) for field in self.kernel.schema])
        made = False
        for batch in self.kernel(batches):
            made = True
            yield conform(batch, schema)
        if not made:
            yield pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.list_(kind.value_type) if pa.types.is_large_list(kind) else kind


def url(path: str) -> str:
    """A path as Spark wants it: absolute and with its scheme."""
    return "file://" + os.path.abspath(filesystem(path)[1]) if is_local(path) else path


def literal(path: str) -> str:
    """A path as Spark's readers want it, which take it for a Hadoop pattern: what would be a wildcard is escaped."""
    return "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in path)


def _session(workers: int, memory_bytes: int) -> SparkSession:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UserError("engine 'spark': pyspark is not installed; pip install 'gristmill[spark]'") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit sets it, and has the master
    if not submitted:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    heap = (memory_bytes * workers + DRIVER_OVERHEAD) >> 20
    builder = SparkSession.builder.appName("gristmill")
    settings = {
        "spark.driver.memory": f"{heap}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": str(max(2 * workers, 2)),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
        "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file://{LOGGING}",
    }
    if not submitted:
        builder = builder.master(f"local[{workers}]")
        settings["spark.driver.bindAddress"] = "127.0.0.1"
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(
            f"engine 'spark': it does not start ({words}); is Java 17 there? see: gristmill doctor"
        ) from None
    session.sparkContext.setLogLevel("ERROR")
    return session
