"""All numbers of the report as one plain dict: report.json. The page shows these and no others."""

from __future__ import annotations

from typing import Any

from jobs.report import content, examples, funnel
from jobs.report.database import opened
from jobs.report.mixing import mixing
from jobs.report.signals import signals
from jobs.report.training import training

FORMAT = "gristmill-report-1"


def collect(out: str) -> dict[str, Any]:
    """Ask an output for everything the report tells. Memory is DuckDB's limit, whatever the corpus.

    Raises UserError where no run has finished a step.
    """
    with opened(out) as found:
        tokens = funnel.tokens(found)
        return {
            "format": FORMAT,
            "name": found.run.get("name"),
            "output": out,
            "verdict": funnel.verdict(found, tokens),
            "tokens": tokens,
            "steps": funnel.steps(found, tokens["bytes_a_token"] if tokens else None),
            "drops": content.drops(found),
            "signals": signals(found),
            "languages": content.languages(found),
            "domains": content.domains(found),
            "sites": content.sites(found),
            "site_total": content.site_total(found),
            "dates": content.dates(found),
            "mixture": mixing(found),
            "training": training(found),
            "duplicates": examples.duplicates(found),
            "contamination": content.contamination(found),
            "redactions": content.redactions(found),
            "quarantine": content.quarantine(found),
            "kept_samples": examples.kept(found),
            "dropped_samples": examples.dropped(found),
            "settings": funnel.settings(found),
            "lineage": funnel.lineage(found),
            "balance": funnel.balance(found),
        }
