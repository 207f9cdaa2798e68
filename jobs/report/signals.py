"""Histograms of signals from the manifests, with thresholds, and the exact share of rows that each rule fails."""

from __future__ import annotations

from jobs.report.database import Output, Row
from jobs.report.thresholds import of_step


def signals(found: Output) -> list[Row]:
    """A row a signal: buckets (lower edge, rows; eight an octave), its thresholds with failing rows; thresholds
    first."""
    told: list[Row] = []
    for step in found.steps:
        account = found.manifests[step["step"]]
        if not account.get("histograms"):
            continue
        failing = {
            row["rule"]: row["n"]
            for row in found.rows(
                "SELECT rule, count(*) AS n FROM (SELECT unnest(rules) AS rule FROM dropped WHERE step = ?) GROUP BY 1",
                step["step"],
            )
        }
        limits = of_step(found, step)
        place = {limit.signal: number for number, limit in reversed(list(enumerate(limits)))}
        for signal, pairs in sorted(
            account["histograms"].items(), key=lambda item: (place.get(item[0], len(place)), item[0])
        ):
            rows = sum(count for _, count in pairs)
            marks = [
                {
                    "rule": limit.rule,
                    "side": limit.side,
                    "sign": limit.sign,
                    "value": limit.value,
                    "rows": failing.get(limit.rule, 0),
                    "share": failing.get(limit.rule, 0) / rows if rows else None,
                }
                for limit in limits
                if limit.signal == signal
            ]
            told.append(
                {
                    "step": step["step"],
                    "signal": signal,
                    "rows": rows,
                    "buckets": [list(pair) for pair in pairs],
                    "thresholds": marks,
                }
            )
    return told
