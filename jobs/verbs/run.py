"""`gristmill run`: do what a recipe says, then write the report and say where it lies."""

from __future__ import annotations

import json as json_format
import sys

from jobs import recipe as recipes
from jobs import report
from jobs.errors import UserError
from jobs.running import Result
from jobs.running import run as run_recipe
from shards.manifest import read_manifest
from shards.store import join


def run(
    recipe: str,
    *,
    engine: str = "local",
    workers: int | None = None,
    limit: int | None = None,
    sets: list[str] | None = None,
    json: bool = False,
) -> int:
    """Run the recipe file; the exit code is the result's."""
    if engine == "slurm":
        raise UserError("engine 'slurm': is not built yet; use local or spark")
    result = run_recipe(recipes.load(recipe, sets or []), engine=engine, workers=workers, limit=limit)
    page = report.write(result.output) if result.steps else None
    if json:
        print(json_format.dumps(told(result, page), indent=1))
    else:
        print(closing(result, page), file=sys.stderr)
    return result.exit_code


def told(result: Result, page: str | None) -> dict[str, object]:
    """The result as stable JSON keys."""
    return {
        "output": result.output,
        "exit_code": result.exit_code,
        "records": result.records,
        "quarantined": result.quarantined,
        "failures": result.failures,
        "report": page,
        "steps": result.steps,
    }


def closing(result: Result, page: str | None) -> str:
    """What came out of what went in, and where to look next."""
    lines = []
    holding = [step for step in result.steps if step["data"]]
    if holding and not result.failures:
        last = read_manifest(join(result.output, holding[-1]["folder"]))
        kept, share = last["rows"]["kept"], last["rows"]["kept"] / max(result.records, 1)
        lines.append(
            f"kept {kept:,} of {result.records:,} records ({share:.1%}), {last['bytes']['out'] / 1e6:,.1f} MB of text"
        )
    if page:
        lines.append(f"report: {page}")
    if holding and not result.failures:
        lines.append(f"what was dropped: gristmill look {result.output} --dropped {_dropper(result)}")
    return "\n".join(lines)


def _dropper(result: Result) -> str:
    """The step that dropped most documents; `read` drops records that are none."""
    dropped: dict[str, int] = {
        step["step"]: read_manifest(join(result.output, step["folder"]))["rows"]["dropped"]
        for step in result.steps
        if step["kind"] != "read"
    }
    return max(dropped, key=dropped.__getitem__)
