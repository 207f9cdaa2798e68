"""What every worker needs, imported once in the process that workers are forked from."""

import duckdb  # noqa: F401
import numba  # noqa: F401
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
from loguru import logger

logger.disable("datatrove")  # its progress lines are not ours, and would print beside our own

import dedup
import filters
import text
import train

# Here, before any worker is forked: kernels are read from the cache once a run, and never compiled twice at a time.
for room in (text, filters, dedup, train):
    room.compile()
