"""Numbers as people write them: 12.3k, 36.1%, 4.2 MB, 1 h 12 min."""

from __future__ import annotations

import math

_STEPS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


def short(value: float | None) -> str:
    """12.3k, 4.56M: three digits that count; whole numbers below 10,000 in full."""
    if value is None:
        return ""
    if abs(value) < 10_000 and float(value).is_integer():
        return f"{int(value):,}"
    for size, letter in _STEPS:
        if abs(value) >= size * 0.9995:
            return _digits(value / size) + letter
    return _digits(value)


def whole(value: float | None) -> str:
    """12,345."""
    return "" if value is None else f"{value:,.0f}"


def plain(value: float | None) -> str:
    """A measured value or a threshold: six digits that count, no exponent for everyday sizes."""
    if value is None:
        return ""
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.1f}"


def percent(part: float, of: float) -> str:
    """The share of a whole; what is there is never shown as 0%, nor what is missing as 100%."""
    if not of:
        return ""
    share = 100 * part / of
    if 0 < share < 0.05:
        return "<0.1%"
    if 99.95 <= share < 100:
        return ">99.9%"
    return f"{share:.0f}%" if share in (0, 100) else f"{share:.1f}%"


def size(count: float | None) -> str:
    """Bytes, in powers of 1000 as disks and papers count them."""
    if count is None:
        return ""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit * 0.9995:
            return f"{_digits(count / unit)} {name}"
    return f"{count:.0f} B"


def duration(seconds: float | None) -> str:
    """4.2 s, 3 min 10 s, 5 h 12 min."""
    if seconds is None:
        return ""
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 99.5:
        return f"{_digits(seconds)} s"
    minutes = round(seconds / 60) if seconds >= 3600 else int(seconds // 60)
    if seconds < 3600:
        return f"{minutes} min {round(seconds - 60 * minutes):02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def _digits(value: float) -> str:
    places = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    told = f"{value:.{places}f}"
    exact = math.isclose(value, float(told)) or float(told).is_integer()
    return told.rstrip("0").rstrip(".") if "." in told and exact else told
