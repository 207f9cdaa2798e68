"""Teachers, prompts, rollouts, verifiers, selection and exports: data that models make, verified, with no row lost.

Synth                                settings: the recipe's `synth:` section
run(settings, out)                   ask, verify, conclude; resumable -> Account
verify(kind, gold, answer)           Verdict: right, wrong, error or unscored
plan(settings), status(out)          what to expect; what there is
select(read, settings)               which samples are kept, and what each filter is worth
export(store, destination, made)     a dataset that proves itself, with its card
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth.errors import SynthError
    from synth.made import export
    from synth.running import Synth, plan, status
    from synth.selection import select
    from synth.verifiers import verify
    from synth.whole import run

__all__ = ["Synth", "SynthError", "export", "plan", "run", "select", "status", "verify"]

_HOMES = {
    "Synth": "synth.running",
    "SynthError": "synth.errors",
    "export": "synth.made",
    "plan": "synth.running",
    "run": "synth.whole",
    "select": "synth.selection",
    "status": "synth.running",
    "verify": "synth.verifiers",
}


def __getattr__(name: str) -> Any:
    # pydantic, SQLite and aiohttp are not needed before something is made.
    if name not in _HOMES:
        raise AttributeError(f"module 'synth' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
