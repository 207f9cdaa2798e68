"""`gristmill synth run SETTINGS`: tasks against teachers, resumable, every row accounted for."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence

from jobs import settings_file, synth_job
from jobs.errors import UserError
from jobs.report.synth import write
from jobs.steps import SYNTH, load_target
from jobs.verbs.synth import told

PLACES = {"output": "path"}


def run(settings: str, *, sets: Sequence[str] = (), json: bool = False) -> int:
    """Run by a settings file: output, and the settings of `gristmill explain synth`. Exit code 3: rows are left."""
    made, places = settings_file.load(settings, load_target(SYNTH), PLACES, sets)
    out = places["output"]
    if "://" in out:
        raise UserError(f"output: {out}: a run's store lies in a local folder; export from there")
    account = synth_job.run(made, out)
    print(json_format.dumps(account.plain(), indent=1) if json else "\n".join(told.lines(account)))
    print(f"the report: {write(out)}", file=sys.stderr)
    return told.exit_code(account)
