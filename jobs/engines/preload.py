"""What every worker needs, imported once in the process that workers are forked from."""

import contextlib

import duckdb  # noqa: F401
import numba  # noqa: F401
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
from loguru import logger

logger.disable("datatrove")  # its progress lines are not ours, and would print beside our own

with contextlib.suppress(ImportError):
    import text

    text.compile()
