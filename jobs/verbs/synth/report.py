"""`gristmill synth report OUT`: one page of what was made."""

from __future__ import annotations

from jobs.report.synth import write
from jobs.verbs.synth import told


def run(out: str) -> int:
    """Write OUT/synth.html, and print where it lies."""
    print(write(told.folder_of(out)))
    return 0
