"""The whole way as one resumable job: propose, train proxies, fit, optimise, write the mixture.

Mix                                the recipe's `mix:` section
run(settings, tokens=, out=)       the loop, on a folder; again goes on -> MixtureFile
observe(out, table)                what was measured later, fed back; the next run fits it too
read_mixture(url), write_mixture   OUT/mixture.json -> MixtureFile: weights, tokens, epochs, intervals, phases;
                                   .train_settings(train) is what train.Pretrain takes of it
compare(mixture, measured)         predicted intervals against what the trained target measured; metrics_of(trained)
blend(mixture, folder)             the mixture beside an export, as its program takes weights
Measured                           what a measure of one's own gives, where run(measure=) takes the place of proxies
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixing.loop.blending import blend
    from mixing.loop.comparing import Comparison, compare, metrics_of
    from mixing.loop.feeding import observe
    from mixing.loop.mixture_file import MixtureFile, read_mixture, write_mixture
    from mixing.loop.rounds import Measured
    from mixing.loop.running import run
    from mixing.loop.settings import Mix

__all__ = [
    "Comparison",
    "Measured",
    "Mix",
    "MixtureFile",
    "blend",
    "compare",
    "metrics_of",
    "observe",
    "read_mixture",
    "run",
    "write_mixture",
]

_HOMES = {
    "Comparison": "comparing",
    "Measured": "rounds",
    "Mix": "settings",
    "MixtureFile": "mixture_file",
    "blend": "blending",
    "compare": "comparing",
    "metrics_of": "comparing",
    "observe": "feeding",
    "read_mixture": "mixture_file",
    "run": "running",
    "write_mixture": "mixture_file",
}


def __getattr__(name: str) -> Any:
    # pydantic, Arrow and scipy take a while to import.
    if name not in _HOMES:
        raise AttributeError(f"module 'mixing.loop' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"mixing.loop.{_HOMES[name]}"), name)
