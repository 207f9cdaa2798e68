"""How many rollouts a prompt gets, at which temperature, when to stop, and what they say of its difficulty.

Rollouts, Tempering, GiveUp                settings
next_wave(settings, history, seed, ...)    Wave(temperatures) or Stop(reason), after a history of Rollout
allocate(settings, pilots, seed)           Allocation: rollouts of all prompts after a pilot of each (allocation hbn)
difficulty(pilot, rest, weight)            Difficulty: shares of right answers without bias, their mean and its error
compare(first, second, k=)                 Comparison of two teachers on the same prompts
costs(rollouts, by=)                       what an accepted sample costs by source, teacher, temperature
marginal_yield(settings, histories)        what another wave would yield, and take
sharpening_tax(before, after)              S(K) of two laws and their difference; curves of pass_curve, kept_curve
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth.rollouts.allocating import Allocation, Difficulty, allocate, difficulty
    from synth.rollouts.comparing import Comparison, compare
    from synth.rollouts.history import Rollout, counts
    from synth.rollouts.passes import first_counts, kept_curve, majority, pass_all, pass_at, pass_curve, sharpening_tax
    from synth.rollouts.population import Population, population_of
    from synth.rollouts.settings import GiveUp, Rollouts, Tempering
    from synth.rollouts.spending import Cost, Marginal, Spent, costs, marginal_yield
    from synth.rollouts.tempering import HeatEffect, heat_effect
    from synth.rollouts.waves import Stop, Wave, next_wave

__all__ = [
    "Allocation",
    "Comparison",
    "Cost",
    "Difficulty",
    "GiveUp",
    "HeatEffect",
    "Marginal",
    "Population",
    "Rollout",
    "Rollouts",
    "Spent",
    "Stop",
    "Tempering",
    "Wave",
    "allocate",
    "compare",
    "costs",
    "counts",
    "difficulty",
    "first_counts",
    "heat_effect",
    "kept_curve",
    "majority",
    "marginal_yield",
    "next_wave",
    "pass_all",
    "pass_at",
    "pass_curve",
    "population_of",
    "sharpening_tax",
]

_NAMES = {
    "allocating": ("Allocation", "Difficulty", "allocate", "difficulty"),
    "comparing": ("Comparison", "compare"),
    "spending": ("Cost", "Marginal", "Spent", "costs", "marginal_yield"),
    "history": ("Rollout", "counts"),
    "passes": ("first_counts", "kept_curve", "majority", "pass_all", "pass_at", "pass_curve", "sharpening_tax"),
    "population": ("Population", "population_of"),
    "settings": ("GiveUp", "Rollouts", "Tempering"),
    "tempering": ("HeatEffect", "heat_effect"),
    "waves": ("Stop", "Wave", "next_wave"),
}
_HOMES = {name: f"synth.rollouts.{module}" for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    # Flows are settings and waves; what estimates needs numpy and scipy.
    if name not in _HOMES:
        raise AttributeError(f"module 'synth.rollouts' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
