"""Fingerprints: what shapes an answer, as one short hash.

The step, its version and settings, the seed and limit, the versions of the libraries behind it, the digests of the
files it reads, and everything upstream. Worker count, engine and the output's path are not in it.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from typing import Any

import xxhash

from jobs.recipe import StepEntry
from shards.store import filesystem

FINGERPRINT_DIGITS = 16


def fingerprint(*parts: Any) -> str:
    """The first 64 bits of the xxh3-128 of the parts as canonical JSON."""
    told = json.dumps(parts, sort_keys=True, default=str, separators=(",", ":"))
    return str(xxhash.xxh3_128_hexdigest(told.encode())[:FINGERPRINT_DIGITS])


def step_settings(entry: StepEntry) -> dict[str, Any]:
    settings = plain(entry.step)
    return {**settings, "domains": list(entry.domains)} if entry.domains is not None else settings


def plain(settings: Any) -> dict[str, Any]:
    """A settings dataclass as plain JSON values, fields in name order."""
    from pydantic import TypeAdapter

    told: dict[str, Any] = TypeAdapter(type(settings)).dump_python(settings, mode="json")
    return dict(sorted(told.items()))


def source_settings(source: Any) -> dict[str, Any]:
    """A source's settings but its paths: where files lie does not shape answers, what is in them does (see inputs)."""
    return {key: value for key, value in plain(source).items() if key != "paths"}


def step_code(step: Any) -> dict[str, Any]:
    """Version, libraries and files that a step's answers depend on."""
    files = step.files() if hasattr(step, "files") else ()
    return {
        "version": step.version,
        "libraries": versions(getattr(step, "libraries", ())),
        "files": {path: file_digest(path) for path in files},
    }


def versions(names: Sequence[str]) -> dict[str, str]:
    """Installed versions of distributions; "missing" for one that is not there."""
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "missing"
    return found


def file_digest(url: str) -> str:
    """The xxh3-128 of a file's content."""
    files, path = filesystem(url)
    digest = xxhash.xxh3_128()
    with files.open(path, "rb") as source:
        while block := source.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
