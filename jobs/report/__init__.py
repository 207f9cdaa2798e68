"""The report of a run: `write(out)` makes OUT/report.json and OUT/report.html."""

from __future__ import annotations


def write(out: str) -> str:
    """Write the report of an output and return the page's path. Raises UserError where no run has finished a step."""
    from jobs.report.collect import collect
    from jobs.report.render import render
    from shards.store import join, write_bytes, write_json

    report = collect(out)
    write_json(join(out, "report.json"), report)
    path = join(out, "report.html")
    write_bytes(path, render(report).encode())
    return path
