"""`gristmill train audit RUN`: prove what a training run saw."""

from __future__ import annotations

import json as json_format
import re
from collections.abc import Sequence
from typing import Literal

from jobs.errors import UserError
from shards.store import exists, join, read_json


def run(
    run: str,
    *,
    shards: Sequence[str] | None = None,
    steps: str | None = None,
    document: str | None = None,
    verify: Literal["all", "sample", "none"] = "all",
    json: bool = False,
) -> int:
    """Print the audit of a folder that pretraining wrote to, or of the output of a recipe that trains; exit code 1
    where something is lost, repeated or other than planned. shards: the folders of its tokens, if they moved."""
    from train.feed.auditing import audit_run

    found = audit_run(_folder(run), tokens=shards or None, steps=_range(steps), document=document, verify=verify)
    print(json_format.dumps(found.to_json(), indent=1) if json else "\n".join(found.lines()))
    return 0 if found.ok else 1


def _folder(run: str) -> str:
    """Where the training is: in the folder itself, or in the train step of a run."""
    told = None if exists(join(run, "plan.json")) else read_json(join(run, "run.json"))
    steps = (told or {}).get("steps", ())
    return next((join(run, step["folder"]) for step in steps if step.get("kind") == "train"), run)


def _range(steps: str | None) -> range | None:
    """Steps A to B-1 of "A:B"."""
    if steps is None:
        return None
    match = re.fullmatch(r"([0-9]+):([0-9]+)", steps)
    if match is None or int(match[1]) >= int(match[2]):
        raise UserError(f"--steps {steps}: is no range; write A:B for steps A to B-1, as 0:100")
    return range(int(match[1]), int(match[2]))
