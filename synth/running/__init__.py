"""Runs tasks against teachers and verifiers: nothing is asked twice, and every row ends as one of four outcomes.

Synth, Rows, Budget, Checking                settings: the recipe's `synth:` section
run(settings, out, say=, progress=)          run, or go on with, a folder's run -> Account
verify(settings, out)                        verdicts anew, no teacher asked -> Account
status(out)                                  the account of a folder, also of a run that was killed -> Account
plan(settings, out)                          items, requests, tokens, cost and hours to expect -> Plan
ConservationError                            rows that came in and rows that went out do not add up

`python -m synth.running SETTINGS.json` is the same as a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth.running.accounts import Account, ConservationError
    from synth.running.front_door import run, status, verify
    from synth.running.planning import Assumptions, Plan, plan
    from synth.running.progress import Progress
    from synth.running.settings import Budget, Checking, Rows, Synth

__all__ = [
    "Account",
    "Assumptions",
    "Budget",
    "Checking",
    "ConservationError",
    "Plan",
    "Progress",
    "Rows",
    "Synth",
    "plan",
    "run",
    "status",
    "verify",
]

_HOMES = {
    "Account": "synth.running.accounts",
    "Assumptions": "synth.running.planning",
    "Budget": "synth.running.settings",
    "Checking": "synth.running.settings",
    "ConservationError": "synth.running.accounts",
    "Plan": "synth.running.planning",
    "Progress": "synth.running.progress",
    "Rows": "synth.running.settings",
    "Synth": "synth.running.settings",
    "plan": "synth.running.planning",
    "run": "synth.running.front_door",
    "status": "synth.running.front_door",
    "verify": "synth.running.front_door",
}


def __getattr__(name: str) -> Any:
    # pyarrow and pydantic's models take a while to load.
    if name not in _HOMES:
        raise AttributeError(f"module 'synth.running' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
