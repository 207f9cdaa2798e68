"""Raw bytes to documents: listing, units, readers, gates, extraction, normalisation.

The front door. Nothing heavy is imported before a name is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ingest.extraction import Extract as Extract
    from ingest.inputs import InputFile as InputFile
    from ingest.inputs import list_inputs as list_inputs
    from ingest.inputs import stamp_of as stamp_of
    from ingest.page import Extracted as Extracted
    from ingest.page import extract as extract
    from ingest.reading import read as read
    from ingest.records import Lost as Lost
    from ingest.records import Records as Records
    from ingest.source import InputError as InputError
    from ingest.source import Source as Source
    from ingest.units import Piece as Piece
    from ingest.units import Unit as Unit
    from ingest.units import plan_units as plan_units

_HOMES = {
    "Extract": "ingest.extraction",
    "Extracted": "ingest.page",
    "InputError": "ingest.source",
    "InputFile": "ingest.inputs",
    "Lost": "ingest.records",
    "Piece": "ingest.units",
    "Records": "ingest.records",
    "Source": "ingest.source",
    "Unit": "ingest.units",
    "extract": "ingest.page",
    "list_inputs": "ingest.inputs",
    "plan_units": "ingest.units",
    "read": "ingest.reading",
    "stamp_of": "ingest.inputs",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
