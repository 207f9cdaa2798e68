"""A simulated teacher: a real HTTP server, scripted skill, latency and faults, the same reply to the same request.

SimulatorSettings, Known, Rule, Skill, Speech, Latency, Faults    settings
SimulatorProcess(settings)    with or async with: a server in a process of its own; .url, .stats()
decode(ids)                   the text of its token ids
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth.simulator.process import SimulatorProcess
    from synth.simulator.settings import Faults, Known, Latency, Rule, SimulatorSettings, Skill, Speech
    from synth.simulator.speech import decode

__all__ = [
    "Faults",
    "Known",
    "Latency",
    "Rule",
    "SimulatorProcess",
    "SimulatorSettings",
    "Skill",
    "Speech",
    "decode",
]

_HOMES = dict.fromkeys(__all__, "synth.simulator.settings") | {
    "SimulatorProcess": "synth.simulator.process",
    "decode": "synth.simulator.speech",
}


def __getattr__(name: str) -> Any:
    # pydantic's models take a while to build.
    if name not in _HOMES:
        raise AttributeError(f"module 'synth.simulator' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
