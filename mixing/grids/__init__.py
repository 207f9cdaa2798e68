"""Domains crossed with quality, copies or phases: quality buckets, rehydration, curricula.

Grid                                   cells DOMAIN@LEVEL as domains: build, fold, an order of quality as constraints
curriculum(mixture, shares, forward)   phases whose total is the mixture exactly -> Curriculum
count_copies, rehydrate, upsampled     weights from how often documents were copied; quality_repeats from filters' rates
value_of_repeats, epochs_worth         what the epochs of a mixture are worth, by domain
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixing.grids.grid import Grid
    from mixing.grids.phases import Curriculum, curriculum
    from mixing.grids.rehydration import Rehydration, count_copies, quality_repeats, rehydrate, upsampled
    from mixing.grids.repeats import RepeatValue, epochs_worth, value_of_repeats

__all__ = [
    "Curriculum",
    "Grid",
    "Rehydration",
    "RepeatValue",
    "count_copies",
    "curriculum",
    "epochs_worth",
    "quality_repeats",
    "rehydrate",
    "upsampled",
    "value_of_repeats",
]

_HOMES = {
    "Curriculum": "phases",
    "Grid": "grid",
    "Rehydration": "rehydration",
    "RepeatValue": "repeats",
    "count_copies": "rehydration",
    "curriculum": "phases",
    "epochs_worth": "repeats",
    "quality_repeats": "rehydration",
    "rehydrate": "rehydration",
    "upsampled": "rehydration",
    "value_of_repeats": "repeats",
}


def __getattr__(name: str) -> Any:
    # Rehydration imports Arrow, and phases need none of it.
    if name not in _HOMES:
        raise AttributeError(f"module 'mixing.grids' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"mixing.grids.{_HOMES[name]}"), name)
