"""`--plot FILE.svg`: a place to draw is checked before the work, and a drawing that cannot be written is told."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from jobs.errors import UserError
from shards.store import filesystem, is_local


def check(path: str | None) -> None:
    """Raise UserError where no SVG can be written; None asks for none."""
    if path is None:
        return
    if not path.lower().endswith(".svg"):
        raise UserError(f"--plot {path}: is no name of an SVG; write FILE.svg")
    if is_local(path) and os.path.isdir(filesystem(path)[1]):
        raise UserError(f"--plot {path}: is a folder; name a file in it, as {path.rstrip('/')}/plot.svg")


def draw(drawn: Callable[[str], object], path: str) -> None:
    """Draw, and say where. Raises UserError (exit code 1) where the file cannot be written."""
    try:
        drawn(path)
    except OSError as error:
        told = (error.strerror or type(error).__name__).lower()
        raise UserError(f"--plot {path}: cannot be written: {told}; name another place", exit_code=1) from None
    print(f"plot: {path}", file=sys.stderr)
