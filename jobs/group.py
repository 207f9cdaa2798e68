"""One group of a plan: its tasks, its resume, its manifests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs import sections
from jobs.plan import GroupPlan, Plan
from jobs.progress import Progress
from jobs.task import UNITS, ApplyTask, DocumentTask, ShardWork
from shards.manifest import Tally, manifest, read_manifest, total
from shards.store import filesystem, join, names, read_json, remove, sweep, tables, write_json

if TYPE_CHECKING:
    from jobs.running import Engine

WORK = ".work"
COUNTED = (
    "gristmill",
    "datatrove",
    "pyarrow",
    "duckdb",
    "numba",
    "numpy",
    "trafilatura",
    "fastwarc",
    "xxhash",
    "pyspark",
)


class GroupFailed(Exception):
    """Shards of a group failed; a line a shard."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(f"{len(lines)} shards failed")
        self.lines = lines


@dataclass(frozen=True, kw_only=True)
class GroupRun:
    """A group over the shards (or units) that it reads, on an engine."""

    plan: Plan
    group: GroupPlan
    shards: list[str]
    engine: Engine
    progress: Progress

    @property
    def out(self) -> str:
        return self.plan.recipe.output

    def outputs(self) -> list[str]:
        return tables(join(self.out, self.group.folder, "data"))

    def run(self) -> list[str]:
        """Do the group and return its data shards (of tokens: the shards that it read). Raises GroupFailed."""
        started = time.monotonic()
        self._prepare()
        if not self.group.holds_rows:
            sections.run(self, started)
            return self.shards
        task = self._task()
        self._each(task)
        self._account(task, started)
        remove(join(self.out, self.group.folder, WORK))
        return self.outputs()

    def _prepare(self) -> None:
        """Clear what other settings left; keep what an interrupted run of these settings finished."""
        if self.group.scope in ("mix", "train", "synth"):
            sections.prepare(self)
            return
        mark = {"fingerprint": self.group.fingerprint}
        marks = [join(self.out, step.folder, UNITS, "group.json") for step in self.group.steps]
        if any(read_json(url) != mark for url in marks):
            for step in self.group.steps:
                remove(join(self.out, step.folder))
            for url in marks:
                write_json(url, mark)
        for step in self.group.steps:
            remove(join(self.out, step.folder, "manifest.json"))
            sweep(join(self.out, step.folder))

    def _task(self) -> ShardWork:
        common: dict[str, Any] = {
            "out": self.out, "steps": self.group.steps, "keep_dropped": self.plan.recipe.keep_dropped,
        }  # fmt: skip
        if self.group.scope == "ingest":
            return DocumentTask(shards=len(self.plan.units), units=self.plan.units, limit=self.plan.limit, **common)
        inputs = tuple(self.shards)
        if self.group.scope == "document":
            return DocumentTask(shards=len(inputs), inputs=inputs, **common)
        work = join(self.out, self.group.folder, WORK)
        self.progress.say(f"{self.group.steps[0].name}  comparing documents of {len(inputs)} shards")
        started = time.monotonic()
        verdicts = self.group.steps[0].step.decide(inputs, self.engine.shuffle(), work)
        seconds = time.monotonic() - started
        return ApplyTask(shards=len(inputs), inputs=inputs, verdicts=verdicts, decide_seconds=seconds, **common)

    def _each(self, task: ShardWork) -> None:
        finished = {n for n in range(task.shards) if self._is_there(task, n)}
        waiting = [n for n in range(task.shards) if n not in finished]
        self.progress.begin(self._label(), task.shards, len(finished))

        def tick() -> None:
            if self.progress.due():
                self.progress.update(len(names(join(self.out, self.group.folder, UNITS), ".json")) - 1)

        failures = self.engine.each(task, waiting, tick)
        lines = [
            f"{step_label(self.group)}: shard {task.part(n)}: {failures.get(n, 'it left no record')}"
            for n in waiting
            if not self._is_there(task, n)
        ]
        if lines:
            self.progress.end("")
            raise GroupFailed(lines)

    def _is_there(self, task: ShardWork, number: int) -> bool:
        """A shard is done when its record is there and its data file is the one that the record tells of."""
        record = task.record(number)
        if record is None:
            return False
        told = record[self.group.steps[-1].name].shards[0]
        files, path = filesystem(join(self.out, self.group.folder, "data", told["name"]))
        return bool(files.exists(path)) and files.size(path) == told["bytes"]

    def _account(self, task: ShardWork, started: float) -> None:
        """Add up the shards and write the manifests, the group's last one last: it is what makes the group done."""
        records = [task.record(number) or {} for number in range(task.shards)]
        tallies = {step.name: total(record[step.name] for record in records) for step in self.group.steps}
        self._check_flow(tallies)
        inputs = self.inputs()
        for step in self.group.steps:
            account = manifest(
                step=step.name, kind=step.kind, settings=step.settings, code=step.code, fingerprint=step.fingerprint,
                inputs=inputs, tally=tallies[step.name],
            )  # fmt: skip
            write_json(join(self.out, step.folder, "manifest.json"), account)
        for step in self.group.steps:
            remove(join(self.out, step.folder, UNITS))
        self.progress.end(summary(self.group, tallies, time.monotonic() - started))

    def _check_flow(self, tallies: dict[str, Tally]) -> None:
        """What leaves a step enters the next, rows and bytes: within the group, and from the group before."""
        steps = [step.name for step in self.group.steps]
        leaving = [(tallies[name].rows["kept"], tallies[name].bytes["out"]) for name in steps]
        before = self.before()
        if before is not None:
            leaving.insert(0, (before["rows"]["kept"], before["bytes"]["out"]))
            steps.insert(0, before["step"])
        for at in range(1, len(steps)):
            entering = (tallies[steps[at]].rows["in"], tallies[steps[at]].bytes["in"])
            sections.same(f"{steps[at - 1]} -> {steps[at]}", leaving[at - 1], entering)

    def before(self) -> dict[str, Any] | None:
        """The manifest of what this group reads; None for the first group."""
        previous = [group for group in self.plan.groups if group.number < self.group.number]
        return read_manifest(join(self.out, previous[-1].folder)) if previous else None

    def inputs(self) -> list[dict[str, Any]]:
        before = self.before()
        if before is None:
            return [{"name": file.path, "bytes": file.bytes, "digest": file.digest} for file in self.plan.inputs]
        return [{"name": before["step"], "bytes": before["bytes"]["out"], "digest": before["digest"]}]

    def _label(self) -> str:
        return step_label(self.group)


def step_label(group: GroupPlan) -> str:
    return " + ".join(step.name for step in group.steps)


def summary(group: GroupPlan, tallies: dict[str, Tally], seconds: float) -> str:
    """A line a step: what came in, what stayed, the rule that dropped most."""
    return "\n".join(_lines(group, tallies, seconds))


def _lines(group: GroupPlan, tallies: dict[str, Tally], seconds: float) -> Iterator[str]:
    for step in group.steps:
        rows, rules = tallies[step.name].rows, tallies[step.name].rules
        share = rows["kept"] / rows["in"] if rows["in"] else 1.0
        lost = f"  quarantined {rows['quarantined']}" if rows["quarantined"] else ""
        top = f"  most by {rules.most_common(1)[0][0]} ({rules.most_common(1)[0][1]})" if rules else ""
        yield f"{step.name:<16} {rows['kept']:>9} of {rows['in']:>9} kept  {share:6.1%}{lost}{top}"
    yield f"{'':<16} {seconds:.1f} s"
