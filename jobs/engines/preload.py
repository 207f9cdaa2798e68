"""What every worker needs, loaded once in the process that workers are forked from."""

import datatrove.executor.local
import duckdb
import pyarrow.compute
import pyarrow.parquet
from loguru import logger

import dedup
import filters
import text
import train
from ingest.gates import page_cost

__all__ = ["datatrove", "duckdb", "pyarrow"]

logger.disable("datatrove")  # its progress lines are not ours, and would print beside our own

# Here, before any worker is forked: kernels are read from the cache once a run, and never compiled twice at a time.
for room in (text, filters, dedup, train):
    room.compile()
page_cost(b"<p>")
