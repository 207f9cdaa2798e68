"""Sizes as people write them: 64MiB, 1.5GB, 4096."""

from __future__ import annotations

import re
from typing import Any

UNITS = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
    "TIB": 1 << 40,
}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)")


def parse_size(value: Any) -> Any:
    """Bytes of "64MiB" or "64MB"; anything that is not text passes, for the type check that follows.

    Raises ValueError for text that is no size; "64M" too, since it means two things.
    """
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None or match[2].upper() not in UNITS:
        raise ValueError(f"{value!r} is no size; write 64MiB (2^20), 64MB (10^6) or a number of bytes")
    return int(float(match[1]) * UNITS[match[2].upper()])


def show_size(count: int) -> str:
    """`count` bytes for people, in powers of 1024: "64.0 MiB"."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
