"""`gristmill synth verify SETTINGS`: verdicts anew from stored replies; no teacher is asked."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence

from jobs import settings_file, synth_job
from jobs.report.synth import write
from jobs.steps import SYNTH, load_target
from jobs.verbs.synth import told

PLACES = {"output": "path"}


def run(settings: str, *, sets: Sequence[str] = (), json: bool = False) -> int:
    """Verify and conclude again. Exit code 3 where items are pending or failed."""
    made, places = settings_file.load(settings, load_target(SYNTH), PLACES, sets)
    account = synth_job.verify(made, places["output"])
    print(f"the report: {write(places['output'])}", file=sys.stderr)
    print(json_format.dumps(account.plain(), indent=1) if json else "\n".join(told.lines(account)))
    return told.exit_code(account)
