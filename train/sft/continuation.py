"""What a run may go on from: its own checkpoint, of the same model, examples and settings; and that it runs alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import xxhash

from shards.store import filesystem, join, names, sweep
from train.sft.refusals import SftError
from train.sft.settings import FREE, Sft

Json = dict[str, Any]
LOCK = ".training"


def identity_of(settings: Sft, examples_fingerprint: str, model_folder: str) -> Json:
    """What a checkpoint remembers of its run."""
    return {"settings": settings.plain(), "examples": examples_fingerprint, "model": model_digest(model_folder)}


def model_digest(folder: str) -> str:
    """xxh3-128 of config.json and all weights of a model folder."""
    digest = xxhash.xxh3_128()
    for name in ["config.json", *names(folder, ".safetensors")]:
        files, path = filesystem(join(folder, name))
        if not files.exists(path):
            raise SftError(f"{folder}: no {name}; give a folder that transformers' save_pretrained wrote")
        digest.update(name.encode() + b"\0")
        with files.open(path, "rb") as stream:
            while chunk := stream.read(1 << 24):
                digest.update(chunk)
    return str(digest.hexdigest())


def continuation_check(now: Json, out: str) -> Callable[[Json, int], None]:
    """check(stored identity, step): raises SftError where this run is not what the checkpoint of `step` began."""

    def check(stored: Json, step: int) -> None:
        for what, told in (("model", "another model"), ("examples", "other rows, or of rows that became other ids")):
            if stored[what] != now[what]:
                raise SftError(f"{out}: its checkpoint of step {step} is of {told}; use another out")
        before = stored["settings"]
        for name, value in sorted(now["settings"].items()):
            if name not in FREE and before.get(name) != value:
                raise SftError(
                    f"{name}: {value} here, but {out} was trained with {before.get(name)} up to step {step}; put it "
                    "back, or use another out"
                )

    return check


@contextmanager
def alone(out: str, *, leads: bool) -> Iterator[None]:
    """Hold OUT for this run, by a lock of the leading process that ends with it. Raises SftError where it is held."""
    folder = filesystem(out)[1]
    os.makedirs(folder, exist_ok=True)
    if not leads:
        yield
        return
    import fcntl

    with open(os.path.join(folder, LOCK), "ab") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SftError(f"out: another run is training into {out}; wait for it, or use another folder") from error
        sweep(out)
        yield
