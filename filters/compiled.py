"""Compile time is paid once, at set-up or by the driver, and never by each worker of each run."""

from __future__ import annotations

import text
from filters import language, redaction, url
from filters.signals import measure


def compile() -> None:
    """Run every kernel of this room once: builds it, or loads it from numba's cache beside the package."""
    text.compile()
    measure(["Two lines, of some words.\nTwo lines, of some words. \u4e2d\u6587 [1]", ""])
    language.compile()
    url.compile()
    redaction.compile()
