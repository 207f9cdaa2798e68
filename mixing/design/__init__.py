"""Which runs to make next: space-filling first, then what is worth its cost, and when to stop.

propose(observations or domains, n)   the next n runs as a table: a column a domain, why, and their size
worth(observations, n)                what n more runs are expected to gain, with an interval, and whether to stop
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixing.design.proposal import Method, propose
    from mixing.design.stopping import Worth, worth

__all__ = ["Method", "Worth", "propose", "worth"]

_HOMES = {
    "Method": "mixing.design.proposal",
    "Worth": "mixing.design.stopping",
    "propose": "mixing.design.proposal",
    "worth": "mixing.design.stopping",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mixing.design' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
