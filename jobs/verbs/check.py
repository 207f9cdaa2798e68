"""`gristmill check RECIPE`: is everything there that a run needs? Nothing is read through and nothing is written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobs import recipe as recipes
from jobs.recipe import Recipe, StepEntry
from jobs.sizes import show_size
from jobs.steps import STEPS
from jobs.verbs import machine
from jobs.verbs.findings import Finding, from_error, show

if TYPE_CHECKING:
    from ingest import Source

LEAST_FREE = 256 << 20
"""Free bytes under which a run is not worth starting: a few shards and their temporary copies."""

_STORES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs"}


def run(recipe: str, sets: Sequence[str] = (), *, json: bool = False) -> int:
    """Check a recipe file and what it needs; returns 0, or 1 where something is bad.

    Raises MistakesError (exit 2) for a recipe that is wrong in itself.
    """
    checked = recipes.load(recipe, sets)
    return show(list(findings(checked)), json=json, recipe=recipe)


def findings(recipe: Recipe) -> Iterator[Finding]:
    """All that is looked at, in the order of a run."""
    steps = ", ".join(entry.name for entry in recipe.steps)
    yield Finding(what="recipe", state="ok", found=f"{recipe.name}: {steps}")
    total = 0
    for source in recipe.sources:
        finding, size = _source(source)
        total += size
        yield finding
    for entry in recipe.steps:
        yield from _step(entry)
    if recipe.tokens is not None:
        yield _tokens(recipe.tokens)
    if recipe.mix is not None:
        yield _mix()
    if recipe.synth is not None:
        yield _synth(recipe.synth)
    if recipe.train is not None:
        yield _train()
    yield from _credentials(recipe)
    yield _output(recipe.output)
    if "://" not in recipe.output:
        yield _disk(recipe, total)
    yield _memory(recipe)
    yield machine.spark()


class _Unread(Mapping[str, tuple[str, str]]):
    """A listing that claims to know each local file's digest, so that checking does not read them through."""

    def __getitem__(self, path: str) -> tuple[str, str]:
        from ingest import stamp_of

        try:
            status = os.stat(path)
        except OSError:
            raise KeyError(path) from None
        return stamp_of(status), ""

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True


def _source(source: Source) -> tuple[Finding, int]:
    from ingest import list_inputs

    what = f"source {source.name}"
    try:
        files = list_inputs(source, known=_Unread())
    except (ValueError, OSError, ImportError) as error:
        said = str(error).removeprefix(f"source {source.name!r}: ")
        return from_error(what, ValueError(said), "correct paths: or remove the source"), 0
    size = sum(file.bytes for file in files)
    empty = sum(file.bytes == 0 for file in files)
    found = f"{machine.count(len(files), 'file')}, {show_size(size)}"
    if empty:
        return Finding(what=what, state="warn", found=f"{found}, {empty} of them empty", mend="they give no rows"), size
    return Finding(what=what, state="ok", found=found), size


def _step(entry: StepEntry) -> Iterator[Finding]:
    what = f"step {entry.name}"
    missing = machine.missing(getattr(entry.step, "libraries", ()))
    if missing:
        yield Finding(
            what=what, state="bad", found=f"needs {', '.join(missing)}", mend=f"pip install {' '.join(missing)}"
        )
    try:
        files = entry.step.files() if hasattr(entry.step, "files") else ()
        for path in files:
            _first_byte(path)
    except (ValueError, OSError, ImportError) as error:
        yield from_error(what, error, f"see: gristmill explain {entry.kind}")
        return
    if files:
        yield Finding(what=what, state="ok", found=f"reads {machine.count(len(files), 'file')}")


def _first_byte(url: str) -> None:
    import fsspec

    with fsspec.open(url, "rb") as stream:
        stream.read(1)


def _tokens(tokens: Any) -> Finding:
    missing = machine.missing(("tokenizers",))
    if missing:
        return Finding(what="tokens", state="bad", found="needs tokenizers", mend="pip install 'gristmill[train]'")
    try:
        for path in tokens.files() if hasattr(tokens, "files") else ():
            _first_byte(path)
    except (ValueError, OSError) as error:
        return from_error("tokens", error, "see: gristmill explain tokens")
    return Finding(what="tokens", state="ok", found=f"tokenizers {machine.version('tokenizers')}")


def _synth(synth: Any) -> Finding:
    """Packages, the files of rows, the keys of servers; no teacher is asked."""
    missing = machine.missing(("aiohttp", "math_verify"))
    if missing:
        mend = "pip install 'gristmill[synth]'"
        return Finding(what="synth", state="bad", found=f"needs {', '.join(missing)}", mend=mend)
    try:
        for path in synth.files():
            _first_byte(path)
        for teacher in synth.teachers.values():
            teacher.identity()
            teacher.api_key()
    except (ValueError, OSError) as error:
        return from_error("synth", error, "see: gristmill explain synth")
    return Finding(what="synth", state="ok", found=machine.count(len(synth.teachers), "teacher"))


def _mix() -> Finding:
    missing = machine.missing(("torch", "scipy", "lightgbm"))
    if missing:
        mend = "pip install 'gristmill[mix,train]'"
        return Finding(what="mix", state="bad", found=f"needs {', '.join(missing)}", mend=mend)
    return Finding(what="mix", state="ok", found=f"scipy {machine.version('scipy')}, torch {machine.version('torch')}")


def _train() -> Finding:
    missing = machine.missing(("torch", "safetensors", "transformers"))
    if missing:
        return Finding(
            what="train", state="bad", found=f"needs {', '.join(missing)}", mend="pip install 'gristmill[train]'"
        )
    return Finding(what="train", state="ok", found=f"torch {machine.version('torch')}")


def _credentials(recipe: Recipe) -> Iterator[Finding]:
    urls = [path for source in recipe.sources for path in source.paths] + [recipe.output]
    for protocol in sorted({url.partition("://")[0] for url in urls if "://" in url}):
        package = _STORES.get(protocol)
        if package and machine.missing((package,)):
            yield Finding(what=f"{protocol}://", state="bad", found=f"needs {package}", mend=f"pip install {package}")
        elif protocol in ("s3", "s3a") and not _aws():
            looked = "AWS_PROFILE, AWS_ACCESS_KEY_ID, ~/.aws, role variables"
            mend = "set AWS_PROFILE, or sign in: aws sso login"
            yield Finding(what=f"{protocol}://", state="warn", found=f"no credentials in {looked}", mend=mend)


def _aws() -> bool:
    names = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    return any(name in os.environ for name in names) or os.path.isdir(os.path.expanduser("~/.aws"))


def _output(output: str) -> Finding:
    if "://" in output:
        return Finding(what="output", state="ok", found=output)
    path, nearest = os.path.abspath(output), machine.existing(output)
    if not os.path.isdir(nearest):
        return Finding(what="output", state="bad", found=f"{nearest} is a file", mend="set another output:")
    if not os.access(nearest, os.W_OK | os.X_OK):
        mend = "give yourself the right to it, or set another output:"
        return Finding(what="output", state="bad", found=f"no permission to write in {nearest}", mend=mend)
    if nearest != path:
        return Finding(what="output", state="ok", found=f"{output}, to be made")
    held = "holds an earlier run" if os.path.exists(os.path.join(path, "run.json")) else "there already"
    return Finding(what="output", state="ok", found=f"{output}, {held}")


def _disk(recipe: Recipe, size: int) -> Finding:
    free = machine.free(machine.existing(recipe.output))
    need = size * (_groups(recipe) if recipe.keep == "all" else 2)
    found = f"{show_size(free)} free; up to {show_size(need)} may be written"
    if free < LEAST_FREE:
        return Finding(what="disk", state="bad", found=found, mend="free some space or set another output:")
    if free < need:
        return Finding(
            what="disk", state="warn", found=found, mend="free some space, or set keep: last and keep_dropped: 0"
        )
    return Finding(what="disk", state="ok", found=found)


def _groups(recipe: Recipe) -> int:
    """How often the text is written: after extraction, after fused per-document steps, after each corpus step."""
    scopes = [STEPS[entry.kind].scope for entry in recipe.steps if entry.kind != "extract"]
    before = ["corpus", *scopes]
    begun = sum(scope == "document" and last == "corpus" for last, scope in zip(before, scopes, strict=False))
    return 1 + begun + scopes.count("corpus")


def _memory(recipe: Recipe) -> Finding:
    cores, memory = machine.cores(), machine.memory()
    found = f"{show_size(recipe.memory_bytes)} for each of {cores} workers, {show_size(memory)} here"
    if recipe.memory_bytes * cores > memory:
        most = show_size(memory // cores)
        return Finding(
            what="memory", state="warn", found=found, mend=f"use fewer --workers, or memory_bytes under {most}"
        )
    return Finding(what="memory", state="ok", found=found)
