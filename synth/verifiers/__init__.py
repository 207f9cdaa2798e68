"""Answers against gold, each kind by its own verifier; an error is never a wrong answer.

verify(kind, gold, answer, **options)   one verdict, in this process, within limit_seconds -> Verdict
version(kind)                           of a kind, for Check.key
load(kind)                              the Verifier itself
Workers                                 many verdicts, in processes that are killed when they hang, die or overeat
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from synth.verifiers.front_door import load, verify, version
    from synth.verifiers.verifier import Verifier, read_options
    from synth.verifiers.workers import Workers

__all__ = ["VERIFIERS", "Verifier", "Workers", "load", "read_options", "verify", "version"]

VERIFIERS: Final[dict[str, str]] = {
    "choice": "synth.verifiers.choice:Choice",
    "code": "synth.verifiers.code.verifier:Code",
    "constraints": "synth.verifiers.constraints:Constraints",
    "exact": "synth.verifiers.exact:Exact",
    "format": "synth.verifiers.format:Formats",
    "json_schema": "synth.verifiers.json_schema:Json",
    "language": "synth.verifiers.language:Languages",
    "math": "synth.verifiers.math.verifier:Math",
    "pattern": "synth.verifiers.pattern:Patterns",
}
"""Every kind that a recipe may write, and where its class stands."""

_HOMES = {
    "Verifier": "synth.verifiers.verifier",
    "Workers": "synth.verifiers.workers",
    "load": "synth.verifiers.front_door",
    "read_options": "synth.verifiers.verifier",
    "verify": "synth.verifiers.front_door",
    "version": "synth.verifiers.front_door",
}


def __getattr__(name: str) -> Any:
    # sympy and the sandbox take long to import; a recipe that only names kinds needs neither.
    if name not in _HOMES:
        raise AttributeError(f"module 'synth.verifiers' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
