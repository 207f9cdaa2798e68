"""Recipe, plan, engines, command line and report: what drives the rooms. In a notebook: jobs.run(jobs.load(path))."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.recipe import load as load
    from jobs.running import Result as Result
    from jobs.running import run as run

_HOMES = {"load": "jobs.recipe", "Recipe": "jobs.recipe", "Result": "jobs.running", "run": "jobs.running"}

__all__ = ["Recipe", "Result", "load", "run"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
