"""Mixing laws: equations from mixture (and scale) to loss, each named after its source, fitted to observations.

LAWS                 name, as `law=` takes it -> where its class stands
law_class(name)      the class: `law_class("shared_power").fit(observations)` -> a Law with mean, gradient, convex
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixing.observations.points import MixingError

if TYPE_CHECKING:
    from mixing.laws.law import Law

__all__ = ["LAWS", "law_class"]

# A line a law. Modules are imported when their law is asked for: some stand on scipy, lightgbm or torch.
LAWS: dict[str, str] = {
    "linear": "mixing.laws.linear:Linear",
    "lightgbm": "mixing.laws.boosted_trees:BoostedTrees",
    "exponential": "mixing.laws.exponential:Exponential",
    "exponential_published": "mixing.laws.exponential:ExponentialPublished",
    "additive_power": "mixing.laws.additive_power:AdditivePower",
    "shared_power": "mixing.laws.shared_power:SharedPower",
    "parts_power": "mixing.laws.parts_power:PartsPower",
    "gaussian_process": "mixing.laws.gaussian_process:GaussianProcess",
    "gaussian_process_scaled": "mixing.laws.gaussian_process:ScaledGaussianProcess",
    "chinchilla": "mixing.laws.joint_chinchilla:Chinchilla",
    "joint_additive": "mixing.laws.joint_shukor:JointAdditive",
    "joint_power": "mixing.laws.joint_shukor:JointPower",
    "effective_tokens": "mixing.laws.joint_effective_tokens:EffectiveTokens",
    "joint_shared_power": "mixing.laws.joint_shared_power:JointSharedPower",
    "repetition": "mixing.laws.repetition:Repetition",
}


def law_class(name: str) -> type[Law]:
    """The class of the law of this name. Raises MixingError that tells near names."""
    if name not in LAWS:
        import difflib

        near = difflib.get_close_matches(str(name), LAWS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise MixingError(f"law: no {name!r}; {hint}there are {', '.join(LAWS)}")
    import importlib

    module, _, held = LAWS[name].partition(":")
    found: type[Law] = getattr(importlib.import_module(module), held)
    return found
