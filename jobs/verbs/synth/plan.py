"""`gristmill synth plan SETTINGS`: items, requests, tokens, cost and hours to expect; nothing is asked."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence

from jobs import settings_file, synth_job
from jobs.steps import SYNTH, load_target

PLACES = {"output": "path"}


def run(settings: str, *, sets: Sequence[str] = (), json: bool = False) -> int:
    """Print a line a task; measured where the output holds a run of it, assumed elsewhere."""
    made, places = settings_file.load(settings, load_target(SYNTH), PLACES, sets)
    found = synth_job.plan(made, places["output"])
    print(json_format.dumps(found.plain(), indent=1) if json else "\n".join(found.lines()))
    return 0
