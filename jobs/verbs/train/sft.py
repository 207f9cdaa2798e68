"""`gristmill train sft SETTINGS`: fine-tuning on conversations."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence

from jobs import settings_file, training
from jobs.fingerprint import plain
from jobs.steps import load_target

PLACES = {"output": "path", "model": "path", "data": "paths"}


def run(settings: str, *, processes: int = 1, sets: Sequence[str] = (), json: bool = False) -> int:
    """Fine-tune by a settings file: output, model (a Hugging Face folder), data (files of rows), and settings."""
    made, places = settings_file.load(settings, load_target("train:Sft"), PLACES, sets)
    told = {"settings": plain(made), "out": places["output"], "model": places["model"], "data": places["data"]}
    trained = training.child("train.sft", told, processes=processes)
    if json:
        print(json_format.dumps(trained, indent=1))
    else:
        print(f"{places['output']}: {training.summary(trained)}{_held_out(trained)}", file=sys.stderr)
    return 0


def _held_out(trained: dict[str, float | None]) -> str:
    before, after = trained.get("held_out_before"), trained.get("held_out_after")
    return "" if before is None or after is None else f"; held-out loss {before:.4f} before, {after:.4f} after"
