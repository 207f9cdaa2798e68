"""Domain ratios: observations of runs, a law fitted to them, an optimum with error bars, and what to try next.

read_observations(weights, losses)       what was measured: a table a run and metric, domains by name
fit(observations, law="auto") -> Fitted  an average of laws by cross-validation; .predict has intervals
optimize(law, objective, constraints)    the best mixture, what each constraint costs, how flat it is
propose(observations, n, ...)            which runs to make next; worth(...) when to stop
Mix                                      the recipe's `mix:` section; mixing.loop.run does all of it, on token shards
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixing.design import propose, worth
    from mixing.fitting import Fitted, fit
    from mixing.loop import Mix
    from mixing.observations import MixingError, Observations, Points, read_observations
    from mixing.optimum import Constraints, Mixture, Objective, optimize

__all__ = [
    "Constraints",
    "Fitted",
    "Mix",
    "MixingError",
    "Mixture",
    "Objective",
    "Observations",
    "Points",
    "fit",
    "optimize",
    "propose",
    "read_observations",
    "worth",
]

_HOMES = {
    "Constraints": "optimum",
    "Fitted": "fitting",
    "Mix": "loop",
    "MixingError": "observations",
    "Mixture": "optimum",
    "Objective": "optimum",
    "Observations": "observations",
    "Points": "observations",
    "fit": "fitting",
    "optimize": "optimum",
    "propose": "design",
    "read_observations": "observations",
    "worth": "design",
}


def __getattr__(name: str) -> Any:
    # A law needs no proxies, and settings need no law.
    if name not in _HOMES:
        raise AttributeError(f"module 'mixing' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"mixing.{_HOMES[name]}"), name)
