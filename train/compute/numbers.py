"""Numbers as people write them in a budget: 1.3B parameters, 15T tokens, 5.76e23 FLOPs."""

from __future__ import annotations

import math
import re

SUFFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18, "z": 1e21, "y": 1e24}
_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+(?:_[0-9]+)*)"  # a comma parts thousands and nothing else
_WRITTEN = re.compile(rf"({_DIGITS}(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*([kmbgtpezy]?)", re.IGNORECASE)
_SCALES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


class BudgetError(ValueError):
    """A budget that cannot be answered, told in one line: what is wrong; what would be right."""


def parse_number(text: str) -> float:
    """'1.3B' -> 1.3e9; suffixes k M B/G T P E Z Y (powers of 1,000), or 5.76e23. Raises BudgetError else."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise BudgetError(f"{text!r}: is not a number from 0 on; write it as 1.3B, 15T, 250_000 or 5.76e23")
    value = float(found[1].replace("_", "").replace(",", "")) * SUFFIXES[found[2].lower()]
    if not math.isfinite(value):
        raise BudgetError(f"{text!r}: is more than a float64 holds (1.8e308)")
    return value


def short(value: float | None) -> str:
    """A count to three digits with its suffix (1.3B); beyond 1,000T in powers of ten; '-' for None."""
    if value is None:
        return "-"
    if value >= 999.5e12:
        return f"{value:.3g}"
    for scale, suffix in _SCALES:
        if value >= 0.9995 * scale:
            return f"{value / scale:.3g}{suffix}" if value < 999.5 * scale else f"{value / scale:.0f}{suffix}"
    return f"{value:.3g}"


def power(value: float | None) -> str:
    """FLOPs as a power of ten with three digits; '-' for None."""
    return "-" if value is None else f"{value:.2e}".replace("e+", "e")


def duration(hours: float) -> str:
    """Hours of wall clock as the unit that reads best."""
    if hours < 1 / 60:
        return f"{hours * 3600:.3g} s"
    if hours < 1:
        return f"{hours * 60:.3g} min"
    if hours < 48:
        return f"{hours:.3g} h"
    return f"{hours / 24:.3g} days" if hours < 24 * 730 else f"{hours / 8766:.3g} years"
