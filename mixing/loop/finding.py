"""The optimum of what was measured, with the intervals of what it will give, and the file that says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from mixing.loop.ground import Ground
from mixing.loop.mixture_file import Forecast, Interval, MixtureFile, Phase
from mixing.loop.settings import Mix
from mixing.loop.standing import Standing
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, Points
from mixing.optimum.constraints import Constraints
from mixing.optimum.objective import Objective

if TYPE_CHECKING:
    from mixing.optimum import Mixture

LEAST_ERRORS: Final = 2
"""Held-out errors from which an interval of the objective can be made."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The optimum, and what it follows from."""

    settings: Mix
    constraints: Constraints
    ground: Ground
    standing: Standing
    optimum: Mixture

    @classmethod
    def of(cls, settings: Mix, constraints: Constraints, ground: Ground, standing: Standing) -> Self:
        """Raises MixingError where the objective or a constraint asks for what was not measured."""
        from mixing.optimum import optimize

        optimum = optimize(
            standing.at_target or standing.law,
            standing.objective,
            constraints,
            points=points_at(settings, ground, standing),
            observations=standing.rows,
            seed=settings.seed,
        )
        return cls(settings=settings, constraints=constraints, ground=ground, standing=standing, optimum=optimum)

    @cached_property
    def points(self) -> Points:
        """One point: the scale that predictions are told at."""
        return points_at(self.settings, self.ground, self.standing)

    @cached_property
    def weights(self) -> dict[str, float]:
        return _named(self.optimum.domains, self.optimum.weights)

    @cached_property
    def held_out(self) -> Floats:
        """[n, k]: of the rows that the law was fitted to, what fits on other runs predict."""
        from mixing.design.surrogate import held_out

        rows, law = self.standing.rows.only(self.standing.law.metrics), self.standing.law
        return held_out(law, rows, self.settings.seed)

    def file(self, made_of: Mapping[str, Any]) -> MixtureFile:
        objective = self.standing.objective
        natural = self.constraints.prior_weights(self.standing.domains)
        return MixtureFile(
            **vars(self.forecast(self.weights)),
            **_of_run(self.settings, self.constraints, self.ground, self.weights),
            level=self.settings.level,
            minimised=Objective(weights=objective.weights, worst=objective.worst),
            natural=None if natural is None else self.forecast(_named(self.standing.domains, natural)),
            runs=self.standing.spent or len(set(self.standing.rows.runs)),
            provenance=made_of,
        )

    def forecast(self, weights: Mapping[str, float]) -> Forecast:
        """What is predicted of new runs on a mixture."""
        row = np.array([[weights[domain] for domain in self.points.domains]])
        sides = self.predicted(row)
        return Forecast(
            weights=weights,
            objective=_interval(*(float(side[0]) for side in self.objective(row))),
            predicted={
                metric: _interval(*(float(side[0, at]) for side in sides))
                for at, metric in enumerate(self.standing.law.metrics)
            },
        )

    def predicted(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """[n, k] each: low, mean and high of the metrics of new runs: at the target's scale where 3 runs told of it."""
        law: Any = self.standing.at_target or self.standing.law
        told = law.predict(self.points.at(weights), level=self.settings.level)
        names = self.standing.law.metrics
        low, mean, high = (
            np.column_stack([side[name].to_numpy() for name in names]) for side in (told.low, told.mean, told.high)
        )
        return low, mean, high

    def objective(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """[n] each: low, value and high of the objective of new runs at mixtures [n, m].

        Errors of metrics go together, so their intervals do not add up: half the interval is the quantile of the
        objective's own held-out errors (split conformal, finite-sample rank), times how much wider the metrics'
        intervals are there than at the mixtures that were measured. At the target's scale, where nothing was held out,
        they are added up as if all errors went together.
        """
        law, asked = self.standing.law, self.standing.objective
        low, mean, high = self.predicted(weights)
        value = asked.value(law.metrics, mean)
        here = self._widths(high - low)
        if self.standing.at_target is not None:
            return value - here / 2, value, value + here / 2
        seen_low, _, seen_high = self.predicted(self._rows.weights)
        usual = float(self._widths(seen_high - seen_low).mean())
        wider = (
            np.where(usual > 0, here / max(usual, 1e-300), 1.0) if np.isfinite(usual) else np.full(len(value), np.inf)
        )
        half = self._quantile * wider if self._quantile else np.zeros(len(value))
        return value - half, value, value + half

    @cached_property
    def _rows(self) -> Observations:
        rows = self.standing.rows
        known = np.isfinite(self.standing.objective.value(rows.metrics, rows.values))
        return rows.rows(known)

    def _widths(self, widths: Floats) -> Floats:
        """[n]: of the metrics' intervals, as the objective weighs them."""
        shares = np.abs(self.standing.objective.coefficients(self.standing.law.metrics)).max(axis=0)
        return np.asarray(np.nan_to_num(widths, posinf=np.inf)[:, shares > 0] @ shares[shares > 0])

    @cached_property
    def _quantile(self) -> float:
        """Half of the objective's interval at mixtures like those that were measured."""
        objective, rows = self.standing.objective, self.standing.rows
        errors = objective.value(rows.metrics, rows.values) - objective.value(self.standing.law.metrics, self.held_out)
        known = np.sort(np.abs(errors[np.isfinite(errors)]))
        if len(known) < LEAST_ERRORS:
            return float("inf")
        rank = int(np.ceil((len(known) + 1) * self.settings.level))
        if rank <= len(known):
            return float(known[rank - 1])
        from scipy.stats import t

        beyond = t.ppf((1 + self.settings.level) / 2, len(known) - 1) * np.sqrt(
            np.mean(known**2) * (1 + 1 / len(known))
        )
        return max(float(known[-1]), float(beyond))


def _named(domains: tuple[str, ...], weights: Floats) -> dict[str, float]:
    return dict(sorted(zip(domains, weights.tolist(), strict=True)))


def _interval(low: float, value: float, high: float) -> Interval:
    return Interval(value=value, low=low, high=high)


def points_at(settings: Mix, ground: Ground, standing: Standing) -> Points:
    """The scale of the run that the mixture is for, where the law knows scale; else the proxies', with the target's
    tokens, which epochs are told by."""
    there = standing.rows.points
    parameters, tokens = settings.parameters, settings.tokens
    largest = int(np.lexsort(np.nan_to_num([there.tokens, there.parameters]))[-1])
    return Points.of(
        standing.domains,
        np.full(len(standing.domains), 1 / len(standing.domains)),
        parameters=float(there.parameters[largest]) if parameters is None else parameters,
        tokens=float(there.tokens[largest]) if tokens is None else tokens,
        unique_tokens=dict(ground.available),
    )


def single(settings: Mix, constraints: Constraints, ground: Ground, made_of: Mapping[str, Any]) -> MixtureFile:
    """The mixture of one domain."""
    whole = dict.fromkeys(ground.domains, 1.0)
    return MixtureFile(weights=whole, **_of_run(settings, constraints, ground, whole), provenance=made_of)


def _of_run(settings: Mix, constraints: Constraints, ground: Ground, weights: Mapping[str, float]) -> dict[str, Any]:
    """What a mixture file says of the run that it is for."""
    caps = constraints.max_epochs
    unique = constraints.unique_tokens
    phases: tuple[Phase, ...] = ()
    if settings.phases is not None:
        from mixing.grids import curriculum

        found = curriculum(weights, settings.phases.shares, settings.phases.forward)
        phases = tuple(Phase(share=one["share"], weights=one["weights"]) for one in found.phases)
    return {
        "tokens": settings.tokens,
        "unique_tokens": {name: unique[name] for name in ground.domains if np.isfinite(unique.get(name, np.inf))}
        or None,
        "max_epochs": dict(caps) if isinstance(caps, dict) else {} if caps is None else dict.fromkeys(weights, caps),
        "phases": phases,
    }
