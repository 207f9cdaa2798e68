"""What a recipe means: groups of steps in order, their fingerprints, and what of it is done already. No work.

See `jobs.fingerprint` for what makes a step's work the same work.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from jobs import mixing_job, synth_job, training
from jobs.fingerprint import fingerprint, flatten, plain, source_settings, step_code, step_settings, versions
from jobs.recipe import Recipe, StepEntry
from jobs.steps import STEPS
from shards.manifest import FORMAT
from shards.schema import DOCUMENT
from shards.store import join, read_json, sizes

if TYPE_CHECKING:
    from ingest import InputFile, Unit

Scope = Literal["ingest", "document", "corpus", "tokens", "mix", "train", "synth"]
SECTIONS: tuple[Scope, ...] = ("tokens", "mix", "train", "synth")
SIDES = {"dropped", "signals", "quarantine"}
SMALL_CORPUS_SHARDS, SMALL_SHARD_BYTES = 16, 1 << 20
INPUTS = ".gristmill/inputs.json"
COPIES = pa.schema([("copies", pa.int32()), ("first_seen", pa.timestamp("us", tz="UTC"))])


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """One step with its place: `step` is the callable object (None for `read`), `schema` what its data holds."""

    name: str
    kind: str
    folder: str
    step: Any
    domains: tuple[str, ...] | None
    settings: dict[str, Any]
    code: dict[str, Any]
    fingerprint: str
    schema: pa.Schema


@dataclass(frozen=True, kw_only=True)
class GroupPlan:
    """Fused steps: one read, one write. `done` groups are left alone; `reason` says why another is to do."""

    number: int
    scope: Scope
    steps: tuple[StepPlan, ...]
    done: bool = False
    reason: str = ""

    @property
    def fingerprint(self) -> str:
        return self.steps[-1].fingerprint

    @property
    def folder(self) -> str:
        return self.steps[-1].folder

    @property
    def holds_rows(self) -> bool:
        """Whether its data are documents."""
        return self.scope not in SECTIONS


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All groups of a recipe, over the inputs as they are now."""

    recipe: Recipe
    limit: int | None
    inputs: tuple[InputFile, ...]
    units: tuple[Unit, ...]
    groups: tuple[GroupPlan, ...]

    @property
    def to_do(self) -> tuple[GroupPlan, ...]:
        return tuple(group for group in self.groups if not group.done)


def make(recipe: Recipe, *, limit: int | None = None) -> Plan:
    """List the inputs, fingerprint every step, and compare with what the output holds.

    Raises InputError (ingest) for inputs that are missing or unreadable.
    """
    listed = list_sources(recipe)
    units = _units(recipe, listed, limit)
    steps = tuple(_steps(recipe, listed, limit))
    groups = tuple(
        dataclasses.replace(group, done=not (reason := _reason(recipe.output, group)), reason=reason)
        for group in _groups(steps)
    )
    return Plan(
        recipe=recipe,
        limit=limit,
        inputs=tuple(file for files in listed for file in files),
        units=units,
        groups=_need(recipe, groups),
    )


def list_sources(recipe: Recipe) -> list[tuple[InputFile, ...]]:
    """The input files of each source. Digests of local files are remembered in the output, by what changes with them:
    {path: [stamp, digest]}; anything else there is as good as nothing."""
    from ingest import list_inputs

    told = read_json(join(recipe.output, INPUTS)) or {}
    known = {
        path: (entry[0], entry[1])
        for path, entry in told.items()
        if isinstance(entry, list) and len(entry) == 2 and all(isinstance(part, str) for part in entry)
    }
    return [list_inputs(source, known=known) for source in recipe.sources]


def _units(recipe: Recipe, listed: Sequence[Sequence[InputFile]], limit: int | None) -> tuple[Unit, ...]:
    """What one task reads each. A limit counts records of a source from its start, so each source is then one unit."""
    from ingest import Unit, plan_units

    unit_bytes = _unit_bytes(recipe, listed) if limit is None else 1 << 62
    units: list[Unit] = []
    for source, files in zip(recipe.sources, listed, strict=True):
        cut = plan_units(source, files, unit_bytes=unit_bytes)
        if limit is not None:
            cut = (Unit(source=source, pieces=tuple(piece for unit in cut for piece in unit.pieces)),)
        units += cut
    return tuple(units)


def _unit_bytes(recipe: Recipe, listed: Sequence[Sequence[InputFile]]) -> int:
    """Bytes of input a shard: shard_bytes, and less for a small corpus, so that it too is shared among workers."""
    total = sum(file.bytes for files in listed for file in files)
    return min(recipe.shard_bytes, max(total // SMALL_CORPUS_SHARDS, SMALL_SHARD_BYTES))


def _steps(recipe: Recipe, listed: Sequence[Sequence[InputFile]], limit: int | None) -> Iterator[StepPlan]:
    """`read` and each step of the recipe in order, each with the schema of the rows that leave it."""
    schema = _source_schema(recipe)
    entries = list(recipe.steps)
    if not any(entry.kind == "extract" for entry in entries):
        entries.insert(0, StepEntry(kind="extract", name="extract", step=STEPS["extract"].load()()))
    settings: dict[str, Any] = {
        "sources": [source_settings(source) for source in recipe.sources],
        "shard_bytes": recipe.shard_bytes,
    }
    inputs = [[[file.path, file.bytes, file.digest] for file in files] for files in listed]
    code = {"version": 1, "libraries": versions(("fastwarc", "resiliparse", "pyarrow", "ftfy"))}
    upstream = fingerprint("read", code, settings, recipe.seed, limit, inputs)
    yield StepPlan(
        name="read", kind="read", folder="00-read", step=None, domains=None, settings=settings, code=code,
        fingerprint=upstream, schema=schema,
    )  # fmt: skip
    for number, entry in enumerate(entries, 1):
        settings, code = step_settings(entry), step_code(entry.step)
        schema = merge(schema, COPIES if STEPS[entry.kind].scope == "corpus" else entry.step.adds)
        share = None if entry.kind == "extract" else recipe.keep_dropped  # what extract drops has no text to keep
        upstream = fingerprint(entry.kind, code, settings, recipe.seed, limit, share, upstream)
        yield StepPlan(
            name=entry.name, kind=entry.kind, folder=f"{number:02d}-{entry.name}", step=entry.step,
            domains=entry.domains, settings=settings, code=code, fingerprint=upstream, schema=schema,
        )  # fmt: skip
    sections = [(kind, step) for kind in SECTIONS if (step := getattr(recipe, kind)) is not None]
    documents = upstream
    for number, (kind, step) in enumerate(sections, len(entries) + 1):
        settings, code = plain(step), step_code(step)
        shaping = {name: value for name, value in settings.items() if name not in getattr(step, "free", ())}
        observed = mixing_job.observed(join(recipe.output, f"{number:02d}-mix")) if kind == "mix" else None
        before = documents if kind == "synth" else upstream  # it works on documents, whatever is trained on them
        upstream = fingerprint(kind, code, shaping, recipe.seed, limit, observed, before)
        yield StepPlan(
            name=kind, kind=kind, folder=f"{number:02d}-{kind}", step=step, domains=None, settings=settings, code=code,
            fingerprint=upstream, schema=schema,
        )  # fmt: skip


def _groups(steps: Sequence[StepPlan]) -> Iterator[GroupPlan]:
    """Consecutive per-document steps are one group; a cut after extraction, so that nothing later extracts again."""
    yield GroupPlan(number=0, scope="ingest", steps=tuple(steps[:2]))
    number, fused = 1, list[StepPlan]()
    for step in steps[2:]:
        scope: Scope = step.kind if step.kind in SECTIONS else STEPS[step.kind].scope
        if scope == "document":
            fused.append(step)
            continue
        if fused:
            yield GroupPlan(number=number, scope="document", steps=tuple(fused))
            number, fused = number + 1, []
        yield GroupPlan(number=number, scope=scope, steps=(step,))
        number += 1
    if fused:
        yield GroupPlan(number=number, scope="document", steps=tuple(fused))


def _reason(output: str, group: GroupPlan) -> str:
    """Why a group is to do, in words; empty when all its manifests are there and tell of exactly this work."""
    for step in group.steps:
        found = read_json(join(output, step.folder, "manifest.json"))
        if found is None or found.get("format") != FORMAT:
            return "not done yet"
        if found["fingerprint"] != step.fingerprint:
            return difference(found, step)
        if not _files_are_there(join(output, step.folder), found):
            return "its files are not those that were written"
        if step.kind == "synth" and not synth_job.is_result(join(output, step.folder), found):
            return "its store is not the one that was accounted for"
        if step.kind == "train" and not training.is_result(join(output, step.folder), found):
            return "its training went on since, and did not end"
        if step.kind == "mix" and not mixing_job.is_result(join(output, step.folder), found):
            return "its mixture is not the one that was written"
    return ""


def _files_are_there(folder: str, account: Mapping[str, Any]) -> bool:
    """Whether a finished step's files are those of its manifest, by name and size. Data may be gone (keep: last)."""
    wanted = {file["name"]: file["bytes"] for file in account["files"]}
    data = {f"data/{shard['name'].rsplit('/', 1)[-1]}": shard["bytes"] for shard in account["shards"]}
    kinds = {name.split("/")[0] for name in wanted} | SIDES
    present = {f"{kind}/{name}": size for kind in kinds for name, size in sizes(join(folder, kind)).items()}
    held = {f"data/{name}": size for name, size in sizes(join(folder, "data")).items()}
    return present == wanted and (not held or held == data)


def difference(found: Mapping[str, Any], step: StepPlan) -> str:
    """What changed since a manifest was written, in words."""
    before, now = flatten(found["settings"]), flatten(step.settings)
    keys = [key for key in sorted({*before, *now}) if before.get(key) != now.get(key)]
    changed = [f"{key} {before.get(key)} -> {now.get(key)}" for key in keys]
    if found["step"] != step.name or found["kind"] != step.kind:
        return f"another step stood here: {found['step']}"
    if changed:
        return f"settings of {step.name} changed: {', '.join(changed[:3])}{' ...' if len(changed) > 3 else ''}"
    if found["code"] != json.loads(json.dumps(step.code)):
        return "its version, a library's version, or a file it reads changed"
    return "its inputs, the seed or the limit changed" if step.kind == "read" else "what comes before it changed"


def _need(recipe: Recipe, groups: Sequence[GroupPlan]) -> tuple[GroupPlan, ...]:
    """A finished group whose data are gone is done again when they are wanted: by a later group, or by the user.

    With keep: last only the last group's data are to stay.
    """
    needed, checked = True, list[GroupPlan]()
    for planned in reversed(groups):
        group = planned
        present = group.scope in ("mix", "train", "synth") or bool(sizes(join(recipe.output, group.folder, "data")))
        if group.done and needed and not present:
            group = dataclasses.replace(group, done=False, reason="its data are gone, and wanted")
        needed = not group.done or recipe.keep == "all" or not group.holds_rows
        checked.append(group)
    return tuple(reversed(checked))


def merge(schema: pa.Schema, adds: pa.Schema) -> pa.Schema:
    """The schema with a step's columns added or retyped."""
    for field in adds:
        at = schema.get_field_index(field.name)
        schema = schema.append(field) if at < 0 else schema.set(at, field)
    return schema


def _source_schema(recipe: Recipe) -> pa.Schema:
    schema = DOCUMENT
    for source in recipe.sources:
        schema = merge(schema, source.schema())
    return schema
