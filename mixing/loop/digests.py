"""What makes a proposal, or an answer, the same one: settings and data as a short hash."""

from __future__ import annotations

import importlib.metadata
import json
from typing import Any, Final

import xxhash

from mixing.loop.ground import Ground
from mixing.loop.settings import Mix

OF_PROPOSALS: Final = ("objective", "constraints", "tokens", "parameters", "max_epochs", "method")
"""Settings that say where runs are proposed. The others only say how many there are and what is made of them."""
OF_ANSWERS: Final = (*OF_PROPOSALS, "law", "level", "seed", "phases")
LIBRARIES: Final = ("numpy", "scipy", "lightgbm")


def digest_of(value: Any) -> str:
    """xxh3-128 of a value as canonical JSON."""
    told = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return str(xxhash.xxh3_128_hexdigest(told.encode()))


def proposals(settings: Mix, ground: Ground) -> str:
    """Digest of what a proposal follows from, besides what was measured before."""
    told = settings.plain()
    sizes = told["proxies"]["sizes"]
    return digest_of({**{name: told[name] for name in OF_PROPOSALS}, **_of(ground), "sizes": sizes})


def answer(settings: Mix, ground: Ground, observations: str) -> dict[str, Any]:
    """What an optimum follows from: digests of settings and observations, tokens, and versions of the code."""
    told = settings.plain()
    return {
        "settings": digest_of({**{name: told[name] for name in OF_ANSWERS if name in told}, **_of(ground)}),
        "observations": observations,
        "tokens": ground.digest,
        "code": {"mix": Mix.version, **{name: _version(name) for name in LIBRARIES}},
    }


def _of(ground: Ground) -> dict[str, Any]:
    return {"available": {domain: str(count) for domain, count in ground.available.items()}}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"
