"""Checkpoints of a run: OUT/checkpoints/step-00000100/, after 100 updates, whatever the number of processes.

tensors-00000.safetensors ..., holding whole tensors; state.json, the rest of the run's state; manifest.json, written
last, with every file's size and xxh3-128. A folder without a manifest is no checkpoint. All processes call these
functions together (tensors are gathered one by one, so that nobody holds the whole model twice); process 0 writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import xxhash
from torch import Tensor

from shards.store import exists, filesystem, join, read_json, remove, write_bytes, write_json

FORMAT = 1
FILE_BYTES = 1 << 30
PREFIX = "step-"
MANIFEST, STATE = "manifest.json", "state.json"


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be used: one line that names the file and says what to do."""


def checkpoint_folder(out: str, step: int) -> str:
    return join(out, "checkpoints", f"{PREFIX}{step:08d}")


def checkpoint_steps(out: str) -> list[int]:
    """Steps of the finished checkpoints of a run, rising."""
    files, path = filesystem(join(out, "checkpoints"))
    if not files.exists(path):
        return []
    found = (name.rstrip("/").rsplit("/", 1)[-1] for name in files.ls(path, detail=False))
    steps = (int(name[len(PREFIX) :]) for name in found if name.startswith(PREFIX) and name[len(PREFIX) :].isdigit())
    return sorted(step for step in steps if exists(join(checkpoint_folder(out, step), MANIFEST)))


def save_checkpoint(
    out: str, step: int, tensors: Iterable[tuple[str, Tensor]], state: dict[str, Any], *, writes: bool
) -> None:
    """Write the checkpoint of a step. writes: false in all processes but one, which only help to gather tensors."""
    folder = checkpoint_folder(out, step)
    if writes:
        remove(folder)
    files = []
    for number, group in enumerate(_groups(tensors, kept=writes)):
        if writes:
            files.append(_write(folder, f"tensors-{number:05d}.safetensors", _serialised(group)))
    if writes:
        files.append(_write(folder, STATE, json.dumps(state, sort_keys=True).encode() + b"\n"))
        write_json(join(folder, MANIFEST), {"format": FORMAT, "step": step, "files": files})


def read_state(out: str, step: int) -> dict[str, Any]:
    """The state that a checkpoint was saved with. Raises CheckpointError when it is damaged."""
    folder = checkpoint_folder(out, step)
    (entry,) = (one for one in _manifest(folder)["files"] if one["name"] == STATE)
    found: dict[str, Any] = json.loads(_read(folder, entry))
    return found


def read_tensors(out: str, step: int) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a checkpoint by name, on the CPU. Raises CheckpointError when one of its files is damaged."""
    from safetensors.torch import load

    folder = checkpoint_folder(out, step)
    for entry in _manifest(folder)["files"]:
        if entry["name"] != STATE:
            yield from load(_read(folder, entry)).items()


def remove_checkpoints(out: str, steps: Iterable[int]) -> None:
    """The manifest goes first, so that what a kill leaves of a checkpoint is none."""
    for step in steps:
        remove(join(checkpoint_folder(out, step), MANIFEST))
        remove(checkpoint_folder(out, step))


def _groups(tensors: Iterable[tuple[str, Tensor]], *, kept: bool) -> Iterator[dict[str, Tensor]]:
    """Tensors on the CPU in groups of about FILE_BYTES. kept: false goes through them and keeps none."""
    group: dict[str, Tensor] = {}
    size = 0
    for name, tensor in tensors:
        if not kept:
            continue
        group[name] = tensor.detach().cpu().contiguous()
        size += tensor.numel() * tensor.element_size()
        if size >= FILE_BYTES:
            yield group
            group, size = {}, 0
    if group:
        yield group


def _serialised(group: dict[str, Tensor]) -> bytes:
    from safetensors.torch import save

    data: bytes = save(group)
    return data


def _write(folder: str, name: str, data: bytes) -> dict[str, Any]:
    write_bytes(join(folder, name), data)
    return {"name": name, "bytes": len(data), "digest": xxhash.xxh3_128_hexdigest(data)}


def _manifest(folder: str) -> dict[str, Any]:
    found = read_json(join(folder, MANIFEST))
    if found is None or found.get("format") != FORMAT:
        raise CheckpointError(
            f"{folder}: no checkpoint of format {FORMAT}; remove the folder to resume from an older one"
        )
    return found


def _read(folder: str, entry: dict[str, Any]) -> bytes:
    url = join(folder, entry["name"])
    files, path = filesystem(url)
    data: bytes = files.cat_file(path) if files.exists(path) else b""
    if xxhash.xxh3_128_hexdigest(data) != entry["digest"]:
        raise CheckpointError(f"{url}: missing or damaged; remove {folder} to resume from the checkpoint before it")
    return data
