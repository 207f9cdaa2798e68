"""Run a plan: group after group, each left complete or resumable; nothing that is done is done again."""

from __future__ import annotations

import datetime
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from jobs import plan as planning
from jobs import training
from jobs.engines.isolate import Task
from jobs.engines.phases import PhaseError
from jobs.errors import UserError
from jobs.fingerprint import versions
from jobs.group import COUNTED, GroupFailed, GroupRun
from jobs.lock import locked
from jobs.plan import INPUTS, GroupPlan, Plan
from jobs.progress import Progress
from jobs.recipe import Recipe
from jobs.task import UNITS
from shards.manifest import FORMAT, read_manifest
from shards.step import Shuffle
from shards.store import filesystem, join, read_json, remove, write_json

DONE, FAILED, PARTIAL = 0, 1, 3


class Engine(Protocol):
    """Where tasks and shuffles run: `jobs.engines.local`, `jobs.engines.spark`."""

    name: str
    workers: int

    def each(self, task: Task, numbers: Sequence[int], tick: Any = ...) -> dict[int, str]: ...
    def shuffle(self) -> Shuffle: ...
    def close(self) -> None: ...


@dataclass(kw_only=True)
class Result:
    """How a run ended. exit_code: 0 done, 3 partial; steps: run.json's list; failures: a line a failed shard."""

    output: str
    exit_code: int = DONE
    steps: list[dict[str, Any]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    quarantined: int = 0
    records: int = 0


def run(
    recipe: Recipe,
    *,
    engine: str = "local",
    workers: int | None = None,
    limit: int | None = None,
    quiet: bool = False,
) -> Result:
    """Do what the recipe says into its output, from where an earlier run left it.

    Raises UserError (and its kin) for what the user can mend; failed shards and too many quarantined records are
    told by the result's exit code.
    """
    workers = workers or os.cpu_count() or 1
    progress = Progress(quiet=quiet)
    with _usable(recipe.output), locked(recipe.output):
        plan = planning.make(recipe, limit=limit)
        _remember_inputs(plan)
        _remove_strangers(plan)
        started = datetime.datetime.now(datetime.UTC)
        chosen = _engine(engine, workers, recipe.memory_bytes)
        try:
            result = _run_groups(plan, chosen, progress, started)
        finally:
            chosen.close()
    return _judge(result, recipe, progress)


class _usable:
    """Turn the system's refusals (no permission, disk full) into one line that names the place."""

    def __init__(self, out: str) -> None:
        self.out = out

    def __enter__(self) -> None:
        if "://" not in self.out:
            try:
                os.makedirs(self.out, exist_ok=True)
            except OSError as error:
                raise UserError(f"{self.out}: cannot be written ({error.strerror}); choose another output") from None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, OSError) and error.errno is not None and not isinstance(error, BrokenPipeError):
            mend = "free some space, then run again: it resumes" if error.errno == 28 else "mend it, then run again"
            raise UserError(f"{error.filename or self.out}: {error.strerror}; {mend}", exit_code=FAILED) from error


def _engine(name: str, workers: int, memory_bytes: int) -> Engine:
    if name == "local":
        from jobs.engines.local import LocalEngine

        return LocalEngine(workers=workers, memory_bytes=memory_bytes)
    if name == "spark":
        from jobs.engines.spark import SparkEngine

        spark: Engine = SparkEngine(workers=workers, memory_bytes=memory_bytes)
        return spark
    raise UserError(f"engine {name!r}: is not known; engines: local, spark")


def _run_groups(plan: Plan, engine: Engine, progress: Progress, started: datetime.datetime) -> Result:
    result = Result(output=plan.recipe.output)
    shards: list[str] = []
    for group in plan.groups:
        work = GroupRun(plan=plan, group=group, shards=shards, engine=engine, progress=progress)
        if group.done:
            shards = work.outputs() if group.holds_rows else shards
        else:
            try:
                shards = work.run()
            except (GroupFailed, PhaseError) as failed:
                result.failures += failed.lines
                result.exit_code = PARTIAL
        if result.failures:
            break
        result.steps += [_told(plan, group, step) for step in group.steps]
        if not group.done:
            _write_run(plan, result, engine, started)
    if (read_json(join(plan.recipe.output, "run.json")) or {}).get("steps") != result.steps and result.steps:
        _write_run(plan, result, engine, started)
    if not result.failures:
        _keep_last(plan)
    return result


def _told(plan: Plan, group: GroupPlan, step: planning.StepPlan) -> dict[str, Any]:
    account = read_manifest(join(plan.recipe.output, step.folder))
    return {
        "step": step.name, "kind": step.kind, "folder": step.folder, "group": group.number,
        "data": step is group.steps[-1] and group.holds_rows, "fingerprint": step.fingerprint,
        **{key: account.get(key) for key in ("digest", "dropped_digest", "signals_digest")},
    }  # fmt: skip


def _write_run(plan: Plan, result: Result, engine: Engine, started: datetime.datetime) -> None:
    recipe = plan.recipe
    finished = datetime.datetime.now(datetime.UTC)
    write_json(
        join(recipe.output, "run.json"),
        {
            "format": FORMAT, "name": recipe.name, "seed": recipe.seed, "recipe": recipe.document,
            "recipe_path": recipe.path, "engine": engine.name, "workers": engine.workers, "limit": plan.limit,
            "command": shlex.join(["gristmill", *sys.argv[1:]]), "started": started.isoformat(timespec="seconds"),
            "finished": finished.isoformat(timespec="seconds"),
            "seconds": round((finished - started).total_seconds(), 1),
            "versions": versions(COUNTED), "steps": result.steps,
        },
    )  # fmt: skip


def _remember_inputs(plan: Plan) -> None:
    known = {file.path: [file.stamp, file.digest] for file in plan.inputs if file.stamp}
    if read_json(join(plan.recipe.output, INPUTS)) != known:
        write_json(join(plan.recipe.output, INPUTS), known)


def _remove_strangers(plan: Plan) -> None:
    """Remove folders of steps that the recipe has no more: nothing stale may be taken for a result.

    Only folders that a run made, as their manifest or their record of an unfinished group tells: never a user's own.
    """
    files, path = filesystem(plan.recipe.output)
    wanted = {step.folder for group in plan.groups for step in group.steps}
    found = files.ls(path, detail=False) if files.exists(path) else []
    for name in (entry.rstrip("/").rsplit("/", 1)[-1] for entry in found):
        folder = join(plan.recipe.output, name)
        if not re.fullmatch(r"[0-9]{2}-.+", name) or name in wanted:
            continue
        if training.is_trained(plan.recipe.output, name):
            training.put_aside(plan.recipe.output, name)
        elif is_ours(folder):
            remove(folder)


def is_ours(folder: str) -> bool:
    """Whether a run made this step folder."""
    account = read_json(join(folder, "manifest.json")) or {}
    return account.get("format") == FORMAT or "fingerprint" in (read_json(join(folder, UNITS, "group.json")) or {})


def _keep_last(plan: Plan) -> None:
    """With keep: last, remove the data of all groups but the last that has data."""
    if plan.recipe.keep != "last":
        return
    holding = [group for group in plan.groups if group.holds_rows]
    for group in holding[:-1]:
        remove(join(plan.recipe.output, group.folder, "data"))


def _judge(result: Result, recipe: Recipe, progress: Progress) -> Result:
    """Set the exit code by what was quarantined, and say how it ended."""
    accounts = [read_manifest(join(recipe.output, step["folder"])) for step in result.steps]
    result.quarantined = sum(account["rows"]["quarantined"] for account in accounts)
    result.records = accounts[0]["rows"]["in"] if accounts else 0
    if result.failures:
        for line in result.failures[:10]:
            progress.say(line)
        progress.say(
            f"{recipe.output}: {len(result.failures)} shards failed, so later steps did not start; run again to resume"
        )
    elif result.quarantined:
        damaged, files = accounts[0]["damaged_ranges"], len(accounts[0]["inputs"])
        too_many = result.quarantined > recipe.max_quarantined * result.records
        too_damaged = damaged > recipe.max_quarantined * files
        result.exit_code = PARTIAL if too_many or too_damaged else DONE
        limit = f"{'more' if result.exit_code else 'no more'} than max_quarantined {recipe.max_quarantined} allows"
        extent = f", {damaged} of them byte ranges of unknown extent in {files} files" if damaged else ""
        progress.say(
            f"{result.quarantined} of {result.records} records are quarantined{extent}, {limit}; "
            f'see: gristmill sql {recipe.output} "FROM quarantine"'
        )
    return result
