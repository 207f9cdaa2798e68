"""What a design is for: the feasible mixtures, what is minimised, where runs can be made, and what is known so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from mixing.design.surrogate import Surrogate, Value, surrogate
from mixing.fitting.grouping import SAME_DIGITS, canonical
from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points
from mixing.optimum.constraints import Constraints
from mixing.optimum.polytope import Polytope

if TYPE_CHECKING:
    from mixing.optimum.objective import Objective

Scale = tuple[float, float]
"""(parameters, tokens) of a run; NaN where unknown."""
SAME_WEIGHT = 1e-6
"""Observed mixtures may miss a constraint by this: tables of weights are rounded."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Domains are in the order of their names, rows in an order of their content: nothing depends on how they came.

    natural: [m], what space-filling goes around. observations: rows whose objective is known, or None.
    sizes: by name, each a scale and the cost of a run at it. target: the scale the mixture is wanted for.
    """

    domains: tuple[str, ...]
    polytope: Polytope
    natural: Floats
    observations: Observations | None
    value: Value
    sizes: Mapping[str, tuple[Scale, float]]
    target: Scale
    seed: int

    @classmethod
    def of(
        cls,
        known: Observations | Sequence[str],
        *,
        constraints: Constraints | None,
        objective: Objective | None,
        sizes: Mapping[str, Scale] | None,
        costs: Mapping[str, float] | None,
        target: Scale | None,
        seed: int,
    ) -> Self:
        """Raises MixingError where domains, metrics, sizes or constraints do not fit together."""
        observed: Observations | None = None
        if isinstance(known, Observations):
            observed = canonical(known)
            domains = observed.domains
        else:
            domains = _names(known)
        asked = constraints or Constraints()
        value = value_of(objective, observed)
        if observed is not None:
            kept = np.isfinite(value(observed.metrics, observed.values))
            if not kept.any():
                raise MixingError(
                    "observations: no run has all metrics of the objective; measure them, or leave one out"
                )
            observed = observed.rows(kept)
        told, wanted = _sizes(observed, sizes, costs, target)
        return cls(
            domains=domains,
            polytope=asked.polytope(domains),
            natural=_natural(asked, domains),
            observations=observed,
            value=value,
            sizes=told,
            target=wanted,
            seed=seed,
        )

    @property
    def mixtures(self) -> Floats:
        """[u, m]: distinct mixtures that were measured."""
        if self.observations is None:
            return np.zeros((0, len(self.domains)))
        return np.unique(self.observations.weights.round(SAME_DIGITS), axis=0)

    def points(self, weights: Floats, scale: Scale) -> Points:
        """Mixtures ([n, m]) at a scale."""
        like = np.full(weights.shape, np.nan)
        if self.observations is not None:
            like = np.broadcast_to(self.observations.points.unique_tokens[:1], weights.shape)
        shape = (len(weights),)
        return Points(
            domains=self.domains,
            weights=weights,
            parameters=np.broadcast_to(scale[0], shape),
            tokens=np.broadcast_to(scale[1], shape),
            unique_tokens=like,
        )

    def surrogate(self, law: str | tuple[str, ...] | Law | None) -> Surrogate:
        """Fitted to the observations. Raises MixingError where there are too few for the law."""
        assert self.observations is not None
        return surrogate(self.observations, self._law(law), self.value, seed=self.seed)

    def _law(self, law: str | tuple[str, ...] | Law | None) -> Law:
        assert self.observations is not None
        if isinstance(law, Law):
            return law
        from mixing.fitting import fit

        return fit(self.observations, law=law or "auto", seed=self.seed)


def value_of(objective: Objective | None, observed: Observations | None) -> Value:
    """What is minimised, as a function of metrics; the mean of all that were ever measured where nothing is said."""
    from mixing.optimum.objective import Objective

    if observed is None:
        return lambda metrics, table: table.mean(axis=1)
    if not np.isfinite(observed.values).any():
        raise MixingError("observations: no metric has a value; measure one")
    if objective is None or not (objective.weights or objective.worst):
        used = [name for k, name in enumerate(observed.metrics) if np.isfinite(observed.values[:, k]).any()]
        objective = Objective(weights=dict.fromkeys(used, 1.0))
    return objective.value


def _names(known: Sequence[str]) -> tuple[str, ...]:
    names = tuple(sorted(known)) if not isinstance(known, str) else (known,)
    if not names:
        raise MixingError("domains: there are none; give at least one")
    if len(set(names)) < len(names):
        twice = next(name for name, after in zip(names, names[1:], strict=False) if name == after)
        raise MixingError(f"domains: {twice!r} stands twice; give each once")
    return names


def _natural(constraints: Constraints, domains: tuple[str, ...]) -> Floats:
    """The prior where one is told, else each domain's part of all unique tokens, else all alike."""
    prior = constraints.prior_weights(domains)
    if prior is not None:
        return prior
    if np.isfinite(constraints.unique(domains)).all():
        return constraints.natural(domains)
    return np.full(len(domains), 1 / len(domains))


def _sizes(
    observed: Observations | None,
    sizes: Mapping[str, Scale] | None,
    costs: Mapping[str, float] | None,
    target: Scale | None,
) -> tuple[dict[str, tuple[Scale, float]], Scale]:
    """Scales with costs by name, and the scale the mixture is for: as told, the dearest, or the usual one."""
    unknown = sorted(set(costs or {}) - set(sizes or {}))
    if unknown:
        raise MixingError(f"costs: no size {unknown[0]!r}; the sizes are {', '.join(sorted(sizes or {})) or 'none'}")
    if sizes:
        told = {name: (scale, float((costs or {}).get(name, 6 * scale[0] * scale[1]))) for name, scale in sizes.items()}
        for name, (scale, cost) in told.items():
            if not (cost > 0 and np.isfinite(cost) and min(scale) > 0):
                raise MixingError(f"sizes.{name}: {scale} at cost {cost}; parameters, tokens and cost are above 0")
        return told, target or max(told.values(), key=lambda one: one[1])[0]
    scale = (np.nan, np.nan)
    if observed is not None:
        table = np.column_stack([observed.points.parameters, observed.points.tokens])
        found, counts = np.unique(table, axis=0, return_counts=True)
        usual = found[np.lexsort([found[:, 0], counts])[-1]]
        scale = (float(usual[0]), float(usual[1]))
    cost = 6 * scale[0] * scale[1]
    return {"": (scale, cost if np.isfinite(cost) else 1.0)}, target or scale
