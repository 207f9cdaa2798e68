"""A recipe's `mix:` section: the mixture is found by proxies on the run's own token shards, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import xxhash

from jobs import children
from jobs.fingerprint import plain
from shards.store import filesystem, join, read_json, sizes

MIXTURE = "mixture.json"
OBSERVED = "observed"


def run(
    settings: Any, tokens: Sequence[str], folder: str, *, say: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Find the mixture, or go on with it, and return what a manifest tells of it. Raises UserError with the program's
    own last words."""
    told = {"settings": plain(settings), "tokens": list(tokens), "out": folder}
    try:
        children.run("mixing.loop", told, say=say)
    except children.ChildFailedError as error:
        raise children.failed(
            error, f"runs that are done stay in {folder}; mend it and run again: it goes on"
        ) from None
    return found(folder)


def found(folder: str) -> dict[str, Any]:
    """The mixture that a folder holds, in little: its digest, weights, value and runs."""
    told = read_json(join(folder, MIXTURE)) or {}
    kept = ("weights", "objective", "epochs", "runs")
    return {"digest": digest(folder), **{key: told[key] for key in kept if key in told}}


def digest(folder: str) -> str | None:
    """xxh3-128 of the mixture file; None where there is none."""
    files, path = filesystem(join(folder, MIXTURE))
    if not files.exists(path):
        return None
    with files.open(path, "rb") as stream:
        return str(xxhash.xxh3_128_hexdigest(stream.read()))


def observed(folder: str) -> list[list[Any]]:
    """The later evaluations that were fed back to a folder: what they say changes the mixture."""
    return [[name, size] for name, size in sorted(sizes(join(folder, OBSERVED)).items())]


def is_result(folder: str, account: Mapping[str, Any]) -> bool:
    """Whether a step's manifest tells of the mixture that its folder holds."""
    return digest(folder) is not None and digest(folder) == (account.get("mixed") or {}).get("digest")


def train_settings(folder: str, step: Any) -> dict[str, Any]:
    """What of the recipe's `train:` the mixture of a folder decides: weights, phases, caps of epochs that it lacks."""
    from mixing.loop import read_mixture

    told: dict[str, Any] = read_mixture(join(folder, MIXTURE)).train_settings(step)
    return told


def summary(told: Mapping[str, Any]) -> str:
    """The mixture in a line, the largest shares first."""
    shares = sorted((told.get("weights") or {}).items(), key=lambda entry: (-entry[1], entry[0]))
    first = ", ".join(f"{name} {share:.3f}" for name, share in shares[:6])
    return first + (f" and {len(shares) - 6} more" if len(shares) > 6 else "")
