"""`gristmill synth export OUT DESTINATION`: the selected samples as a dataset with its card."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jobs import settings_file, synth_job
from jobs.errors import UserError, nearest
from jobs.verbs import paper
from jobs.verbs.synth import told

FORMATS = ("sft", "prompt_completion", "dpo", "rlvr", "documents", "labels", "steps")


def run(
    out: str,
    destination: str,
    *,
    to: str = "sft",
    model: str | None = None,
    settings: str | None = None,
    sets: Sequence[str] = (),
    json: bool = False,
) -> int:
    """Select, prove and write; print what was written and what was not."""
    from synth.exports import Export

    if to not in FORMATS:
        raise UserError(f"--to {to}: {nearest(to, FORMATS, what='formats')}")
    asked: dict[str, Any] = {"to": to} if model is None else {"to": to, "model": model}
    made = replace(settings_file.optional(settings, Export, sets), **asked)
    account, selection = synth_job.export(told.folder_of(out), destination, made)
    if json:
        print(json_format.dumps(account.to_json(), indent=1))
        return 0
    counts = [*account.left_out.items(), *account.blocked.items(), *account.refused.items()]
    rows = [("written", account.written), *sorted(counts, key=lambda pair: (-pair[1], pair[0]))]
    print("\n".join(paper.table(rows, ("rows", "count"))))
    for one in selection.comparison if selection else []:
        print(f"filter {one['filter']}: {one['last']} samples only it rejects, {one['alone']} it would alone")
    for line in selection.balanced.residuals if selection and selection.balanced else ():
        print(f"balance: {line}")
    print(f"{destination}: {account.trained_tokens} tokens with a loss; its card: README.md", file=sys.stderr)
    return 0
