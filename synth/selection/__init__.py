"""Which samples are kept: difficulty, length, degenerate traces, near-duplicates, contamination, balance.

Selection                   settings: a key a filter, absent where it is off
select(read, settings)      what goes and why, and what each filter is worth -> Selected
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth.selection.selecting import Selected, select
    from synth.selection.settings import Selection

__all__ = ["Selected", "Selection", "select"]

_HOMES = {
    "Selected": "synth.selection.selecting",
    "Selection": "synth.selection.settings",
    "select": "synth.selection.selecting",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'synth.selection' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
