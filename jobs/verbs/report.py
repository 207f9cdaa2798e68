"""`gristmill report`: write OUT/report.html and OUT/report.json, and print the page's path."""

from __future__ import annotations

from jobs import report as reports


def run(out: str) -> int:
    """Write the report of an output. Raises UserError where no run has finished a step."""
    print(reports.write(out))
    return 0
