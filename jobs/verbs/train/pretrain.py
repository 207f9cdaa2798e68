"""`gristmill train pretrain SETTINGS`: pretraining on token shards that are there already."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence

from jobs import settings_file, training
from jobs.steps import TRAIN, load_target

PLACES = {"output": "path", "shards": "paths"}


def run(settings: str, *, processes: int = 1, sets: Sequence[str] = (), json: bool = False) -> int:
    """Pretrain by a settings file: output, shards (output folders of runs, or of their tokens steps), and the settings
    of `gristmill explain train`."""
    made, places = settings_file.load(settings, load_target(TRAIN), PLACES, sets)
    told = training.pretrain(made, places["shards"], places["output"], processes=processes)
    if json:
        print(json_format.dumps(told, indent=1))
    else:
        print(f"{places['output']}: {training.summary(told)}", file=sys.stderr)
    return 0
