"""Many small models on many mixtures, as one resumable job: what mixing laws are fitted on.

Proxies, ProxySize                 the recipe's settings: mixtures x sizes x seeds, one base learning rate under muP
run(settings, tokens=, out=)       train what is missing in OUT/runs -> the table of observations (Arrow)
observations(out)                  the table of what OUT holds, without training anything
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.proxies.observing import observations
    from train.proxies.running import run
    from train.proxies.settings import Proxies, ProxyError, ProxySize

__all__ = ["Proxies", "ProxyError", "ProxySize", "observations", "run"]

_HOMES = {
    "Proxies": "train.proxies.settings",
    "ProxyError": "train.proxies.settings",
    "ProxySize": "train.proxies.settings",
    "observations": "train.proxies.observing",
    "run": "train.proxies.running",
}


def __getattr__(name: str) -> Any:
    # torch takes seconds to import, and settings need none of it.
    if name not in _HOMES:
        raise AttributeError(f"module 'train.proxies' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
