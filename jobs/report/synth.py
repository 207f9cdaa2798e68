"""The page of a run of synthesis: accounts, difficulty, lengths, rejects and why, what it cost, some samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jobs.errors import UserError
from jobs.report.database import Row
from shards.store import join, write_bytes, write_json

PAGE, NUMBERS = "synth.html", "synth.json"


def write(folder: str) -> str:
    """Write FOLDER/synth.html and synth.json; return where the page lies. Raises UserError where nothing was run."""
    from jobs.report.render import render_synthesis
    from synth.errors import SynthError
    from synth.store import Store
    from synth.telling import told

    try:
        with Store.open(folder, read_only=True) as store:
            found = told(store)
    except SynthError as error:
        raise UserError(str(error)) from None
    write_json(join(folder, NUMBERS), found)
    write_bytes(join(folder, PAGE), render_synthesis(shown(found), Path(folder).name).encode())
    return join(folder, PAGE)


def shown(found: Mapping[str, Any]) -> Row:
    """What the page draws, from what the run tells."""
    account = found["account"]
    return {
        **found,
        "tasks": [_task(task, found) for task in account["samples"]],
        "teaching": account["teaching"],
        "alarms": account["alarms"],
        "requests": account["requests"],
        "curves": [
            {"name": task, "points": [(one["k"], one["pass_at_k"]) for one in passes]}
            for task, passes in found["passes"].items()
            if len(passes) > 1
        ],
    }


def _task(task: str, found: Mapping[str, Any]) -> Row:
    items, samples = found["account"]["items"][task], found["account"]["samples"][task]
    lost = sum(samples["rejected"].values()) + sum(samples["failed"].values())
    return {
        "task": task,
        "items": items,
        "samples": samples,
        "share": samples["accepted"] / samples["total"] if samples["total"] else None,
        "lost": lost,
        "reasons": list(_reasons(samples, found["ends"].get(task, {}))),
        "difficulty": list(_difficulty(found["difficulty"].get(task))),
        "tokens": [{**one, "label": str(one["tokens"])} for one in found["tokens"].get(task, [])],
        "passes": found["passes"].get(task, []),
    }


def _reasons(samples: Mapping[str, Any], ends: Mapping[str, int]) -> Iterator[Row]:
    """Why samples are not in the data, the most frequent first; selection included."""
    total = samples["total"] or 1
    for reason, count in sorted(ends.items(), key=lambda pair: (-pair[1], pair[0])):
        yield {"reason": reason, "count": count, "share": count / total}


def _difficulty(bins: list[int] | None) -> Iterator[Row]:
    for at, count in enumerate(bins or []):
        yield {"label": f"{at * 10}-{at * 10 + 10}%", "items": count}
