"""`gristmill plan`: what would run and why, in which order, and what it would cost. No work."""

from __future__ import annotations

import json as json_format
import os
import shutil
from collections.abc import Iterator

from jobs import plan as planning
from jobs import recipe as recipes
from jobs.plan import GroupPlan, Plan
from jobs.sizes import show_size
from shards.store import filesystem, is_local, join, read_json


def run(recipe: str, sets: list[str] | None = None, limit: int | None = None, json: bool = False) -> int:
    """Print the plan of a recipe file."""
    plan = planning.make(recipes.load(recipe, sets or []), limit=limit)
    print(json_format.dumps(told(plan), indent=1) if json else "\n".join(lines(plan)))
    return 0


def told(plan: Plan) -> dict[str, object]:
    """The plan as stable JSON keys."""
    return {
        "recipe": plan.recipe.path,
        "output": plan.recipe.output,
        "inputs": {"files": len(plan.inputs), "bytes": sum(file.bytes for file in plan.inputs)},
        "shards": len(plan.units),
        "memory_bytes_per_worker": plan.recipe.memory_bytes,
        "groups": [
            {
                "number": group.number,
                "scope": group.scope,
                "done": group.done,
                "reason": group.reason,
                "steps": [
                    {"step": step.name, "folder": step.folder, "fingerprint": step.fingerprint} for step in group.steps
                ],
            }
            for group in plan.groups
        ],
    }


def lines(plan: Plan) -> Iterator[str]:
    """The plan for people: a line a step, fused steps together."""
    size = sum(file.bytes for file in plan.inputs)
    yield f"{plan.recipe.path} -> {plan.recipe.output}"
    yield f"{len(plan.inputs)} input files, {show_size(size)}, read as {len(plan.units)} shards"
    number = 0
    for group in plan.groups:
        for step in group.steps:
            where = "  |" if len(group.steps) > 1 else "   "
            yield f"{where} {number:>2}  {step.name:<18} {f'to do: {group.reason}' if group.reason else 'done'}"
            number += 1
    if not plan.to_do:
        yield "nothing to do"
        return
    yield estimate(plan)


def estimate(plan: Plan) -> str:
    """Time from what earlier runs of the same output measured, memory from settings, disk from the inputs."""
    known = [
        account["seconds"]
        for group in plan.to_do
        if (account := _account(plan, group)) is not None and account.get("seconds")
    ]
    workers = os.cpu_count() or 1
    time = f"about {sum(known) / workers:.0f} s on {workers} workers by the last run's measure; " if known else ""
    memory, place = show_size(plan.recipe.memory_bytes), plan.recipe.output
    free = f", {show_size(shutil.disk_usage(_place(place)).free)} free" if is_local(place) else ""
    return f"{time}up to {memory} a worker for sorts and joins; the output goes to {place}{free}"


def _account(plan: Plan, group: GroupPlan) -> dict[str, float] | None:
    found: dict[str, float] | None = read_json(join(plan.recipe.output, group.folder, "manifest.json"))
    return found


def _place(output: str) -> str:
    """The nearest folder above the output that exists."""
    path = os.path.abspath(filesystem(output)[1])
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path
