"""`gristmill mix run SETTINGS`: a mixture from token shards that are there already."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence

from jobs import mixing_job, settings_file
from jobs.report.mixing import write
from jobs.steps import MIX, load_target
from shards.store import join, read_json

PLACES = {"output": "path", "shards": "paths"}


def run(settings: str, *, sets: Sequence[str] = (), json: bool = False) -> int:
    """Find a mixture by a settings file: output, shards (output folders of runs, or of their tokens steps), and the
    settings of `gristmill explain mix`."""
    made, places = settings_file.load(settings, load_target(MIX), PLACES, sets)
    out = places["output"]
    told = mixing_job.run(made, places["shards"], out)
    if json:
        print(json_format.dumps(read_json(join(out, mixing_job.MIXTURE)), indent=1))
    print(f"{join(out, mixing_job.MIXTURE)}: {mixing_job.summary(told)}", file=sys.stderr)
    print(f"the report: {write(out)}", file=sys.stderr)
    return 0
