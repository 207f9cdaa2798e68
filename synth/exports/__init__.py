"""Samples as what SFT, preference training, RLVR and pretraining read, proved row by row before it is written.

Export                             settings: format, tokenizer, licences
export(rows, destination, made)    the accepted samples as a dataset with its card -> Account
Row                                a sample with the item and the teachers that it was made from
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth.exports.account import Account
    from synth.exports.exporting import export
    from synth.exports.settings import Export
    from synth.rows import Row

__all__ = ["Account", "Export", "Row", "export"]

_HOMES = {
    "Account": "synth.exports.account",
    "Export": "synth.exports.settings",
    "Row": "synth.rows",
    "export": "synth.exports.exporting",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'synth.exports' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
