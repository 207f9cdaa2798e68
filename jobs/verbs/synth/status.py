"""`gristmill synth status OUT`: the account of a run, from its store alone."""

from __future__ import annotations

import json as json_format

from jobs import synth_job
from jobs.verbs.synth import told


def run(out: str, *, json: bool = False) -> int:
    """Print it. Exit code 3 where items are pending or failed."""
    account = synth_job.status(told.folder_of(out))
    print(json_format.dumps(account.plain(), indent=1) if json else "\n".join(told.lines(account)))
    return told.exit_code(account)
