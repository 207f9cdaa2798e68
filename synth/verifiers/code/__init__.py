"""Programs against tests, in a bubblewrap sandbox; the verdict is computed outside of it.

Code                the verifier, kind `code`; its gold is described at Gold, its options at Settings
require_sandbox()   SynthError with what to do, where this machine cannot run untrusted programs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth.verifiers.code.gold import Gold
    from synth.verifiers.code.health import require_sandbox
    from synth.verifiers.code.settings import Settings
    from synth.verifiers.code.verifier import Code

__all__ = ["Code", "Gold", "Settings", "require_sandbox"]

_HOMES = {
    "Code": "synth.verifiers.code.verifier",
    "Gold": "synth.verifiers.code.gold",
    "Settings": "synth.verifiers.code.settings",
    "require_sandbox": "synth.verifiers.code.health",
}


def __getattr__(name: str) -> Any:
    # pydantic is not needed where the kinds are only named, and nothing but the standard library inside the sandbox.
    if name not in _HOMES:
        raise AttributeError(f"module 'synth.verifiers.code' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
