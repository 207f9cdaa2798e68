"""The groups of a plan that are no steps over documents: sections `tokens:`, `mix:`, `train:` and `synth:`.

Each leaves every document where it was, so their rows are those of the last group of documents.
"""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

from jobs import mixing_job, synth_job, training
from jobs.task import UNITS
from shards.manifest import ConservationError, Tally, manifest, read_manifest
from shards.store import join, remove, sizes, write_json

if TYPE_CHECKING:
    from jobs.group import GroupRun

WORK = ".work"


def run(group: GroupRun, started: float) -> None:
    """Do a section's group and write its manifest."""
    {"tokens": _tokens, "mix": _mix, "train": _train, "synth": _synth}[group.group.scope](group, started)


def prepare(group: GroupRun) -> None:
    """Make the folder of a `mix:`, `train:` or `synth:` ready. What was trained stays where it can go on: manifests
    too, since only the training itself refuses settings that cannot."""
    if group.group.scope == "synth":
        remove(join(_folder(group, "synth"), "manifest.json"))
        return
    mixture = mixing_job.digest(_folder(group, "mix")) if group.group.scope == "train" and _has(group, "mix") else None
    training.prepare(group.out, group.group.folder, _folder(group, "tokens"), mixture)


def same(where: str, left: tuple[int, int], right: tuple[int, int]) -> None:
    """Raise ConservationError unless the (rows, bytes) that left one step arrived at the next."""
    if left != right:
        raise ConservationError(f"{where}: (rows, bytes) {left} left, {right} arrived")


def _tokens(group: GroupRun, started: float) -> None:
    step = group.group.steps[0]
    folder = join(group.out, step.folder)
    group.progress.say(f"tokens  encoding {len(group.shards)} shards")
    told = step.step.run(group.shards, group.engine.shuffle(), join(folder, WORK), folder, group.plan.recipe.seed)
    before = group.before()
    assert before is not None
    rows, size = before["rows"]["kept"], before["bytes"]["out"]
    same("tokens", (rows, size), (told["documents"], size))
    tally = Tally(seconds=time.monotonic() - started, digests={"data": int(told["ordered_digest"], 16)})
    tally.rows.update({"in": rows, "kept": told["documents"]})
    tally.bytes.update({"in": size, "kept": size, "out": size})
    for kind in ("ends", "documents"):
        tally.files += [{"name": f"{kind}/{name}", "bytes": b} for name, b in sizes(join(folder, kind)).items()]
    remove(join(folder, WORK))
    remove(join(folder, UNITS))
    _write(group, tally, told)
    group.progress.end(f"{'tokens':<16} {told['tokens']:>9} in {told['documents']} documents")


def _mix(group: GroupRun, started: float) -> None:
    """Find the mixture by proxies on the run's own token shards."""
    folder = join(group.out, group.group.folder)
    told = mixing_job.run(group.group.steps[0].step, [_folder(group, "tokens")], folder, say=group.progress.say)
    _write(group, _passed_on(group, started), {"mixed": told})
    group.progress.end(f"{'mix':<16} {mixing_job.summary(told)}")


def _train(group: GroupRun, started: float) -> None:
    """Train on the token shards, with the weights of `mix:` where there is one."""
    step = group.group.steps[0].step
    if _has(group, "mix"):
        step = dataclasses.replace(step, **mixing_job.train_settings(_folder(group, "mix"), step))
    folder = join(group.out, group.group.folder)
    group.progress.say(f"train  on {read_manifest(_folder(group, 'tokens'))['tokens']} tokens")
    told = training.pretrain(step, [_folder(group, "tokens")], folder, say=group.progress.say)
    tally = _passed_on(group, started)
    tally.files += [{"name": f"model/{name}", "bytes": size} for name, size in sizes(join(folder, "model")).items()]
    _write(group, tally, {"trained": told})
    group.progress.end(f"{'train':<16} {training.summary(told)}")


def _synth(group: GroupRun, started: float) -> None:
    """Make data from the run's documents, or from rows that the section names. Its documents are a source of another
    recipe; this one's stay as they are."""
    folder = join(group.out, group.group.folder)
    documents = next(other.folder for other in reversed(group.plan.groups) if other.holds_rows)
    settings = synth_job.on_documents(group.group.steps[0].step, join(group.out, documents, "data"))
    told = synth_job.section(settings, folder, say=group.progress.say)
    _write(group, _passed_on(group, started), {"made": told})
    group.progress.end(f"{'synth':<16} {synth_job.summary(told)}")


def _passed_on(group: GroupRun, started: float) -> Tally:
    """The account of a section that reads all documents' tokens and keeps every one."""
    before = group.before()
    assert before is not None
    tally = Tally(seconds=time.monotonic() - started)
    for what, counts in (("rows", tally.rows), ("bytes", tally.bytes)):
        counts.update({"in": before[what]["kept"], "kept": before[what]["kept"]})
    tally.bytes["out"] = before["bytes"]["out"]
    return tally


def _write(group: GroupRun, tally: Tally, told: dict[str, Any]) -> None:
    step = group.group.steps[0]
    written = manifest(
        step=step.name, kind=step.kind, settings=step.settings, code=step.code, fingerprint=step.fingerprint,
        inputs=group.inputs(), tally=tally,
    )  # fmt: skip
    write_json(join(group.out, step.folder, "manifest.json"), {**written, **told})


def _has(group: GroupRun, scope: str) -> bool:
    return any(other.scope == scope for other in group.plan.groups)


def _folder(group: GroupRun, scope: str) -> str:
    """The folder of the plan's one group of a scope."""
    return join(group.out, next(other.folder for other in group.plan.groups if other.scope == scope))
