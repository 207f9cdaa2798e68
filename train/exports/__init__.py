"""Token shards and documents as the files of other programs, each byte accounted for.

export(out, to, destination, ...)   one of FORMATS, into a new folder; returns an Exported
FORMATS                             name -> what it is, in a line
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.exports.exporting import FORMATS, export
    from train.exports.folder import Exported, ExportError

__all__ = ["FORMATS", "ExportError", "Exported", "export"]

_HOMES = {
    "export": "train.exports.exporting",
    "FORMATS": "train.exports.exporting",
    "Exported": "train.exports.folder",
    "ExportError": "train.exports.folder",
}


def __getattr__(name: str) -> Any:
    # pyarrow and pydantic are not needed before something is exported.
    if name not in _HOMES:
        raise AttributeError(f"module 'train.exports' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
