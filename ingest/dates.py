"""Dates as text, and as numbers of Arrow's."""

from __future__ import annotations

from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import numpy as np
import pyarrow as pa

DATE = pa.timestamp("us", tz="UTC")
DAYS = (-719_162, 2_932_896)  # 0001-01-01 and 9999-12-31, counted from 1970-01-01: the dates that Python has
DAY_US = 86_400_000_000
UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def as_date(value: Any) -> datetime | None:
    """A date as UTC: ISO 8601 or an HTTP date; without a zone it is taken as UTC, without a time as midnight.

    What is no date is unknown: None.
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    parsed = value if isinstance(value, datetime) else _parsed(value) if isinstance(value, str) else None
    if parsed is None:
        return None
    try:
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (OverflowError, ValueError):
        return None


def _parsed(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        pass
    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def instants(column: pa.Array) -> pa.Array:
    """A column of timestamps or dates as DATE: without a zone taken as UTC, finer units rounded down, days as their
    midnight; null outside of the years 1 to 9999."""
    kind = column.type
    valid = np.asarray(column.is_valid())
    ticks = column.view(pa.int32() if pa.types.is_date32(kind) else pa.int64()).fill_null(0)
    numbers = np.asarray(ticks).astype(np.int64)
    tick_ns = DAY_US * 1000 if pa.types.is_date32(kind) else UNIT_NS[getattr(kind, "unit", "ms")]
    a_day = DAY_US * 1000 // tick_ns
    # Bounds in ticks, kept to what 64 bits hold: nanoseconds reach only from 1677 to 2262.
    low, high = max(DAYS[0] * a_day, -(1 << 63)), min((DAYS[1] + 1) * a_day - 1, (1 << 63) - 1)
    valid &= (numbers >= low) & (numbers <= high)
    numbers = np.where(valid, numbers, 0)
    micros = numbers // (1000 // tick_ns) if tick_ns < 1000 else numbers * (tick_ns // 1000)
    return pa.array(micros, mask=~valid).cast(DATE)
