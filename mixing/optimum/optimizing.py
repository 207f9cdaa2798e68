"""The best mixture under constraints, with what it costs, how flat it is, and what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points
from mixing.optimum.baselines import UNIMAX_EPOCHS, baselines
from mixing.optimum.bounds import prices
from mixing.optimum.constraints import Constraints
from mixing.optimum.mixture import Alternative, Certificate, Flatness, Mixture, Range
from mixing.optimum.near_optimal import near_optimal
from mixing.optimum.objective import Objective
from mixing.optimum.polytope import TOLERANCE
from mixing.optimum.problem import Problem
from mixing.optimum.sensitivity import members, refitted, scale_of, shifts
from mixing.optimum.solving import Solution, solve
from mixing.single_thread import single_threaded

FLATNESS = 0.001
"""What "about as good" is where nothing is said: a tenth of a percent of the objective."""

_FEW_EPOCHS = 0.5
"""Runs that see a domain less than this part as often as the target will say little about repeating it."""


@single_threaded
def optimize(
    law: Law,
    objective: Objective | Mapping[str, float] | None = None,
    constraints: Constraints | None = None,
    *,
    points: Points | None = None,
    observations: Observations | None = None,
    flatness: float = FLATNESS,
    refits: int = 0,
    explain: bool = True,
    seed: int = 0,
) -> Mixture:
    """The mixture with the least predicted objective among those that keep every constraint to 1e-9.

    objective: see Objective; {metric: share} is its weights; None is the mean of all metrics. points: the scale of the
    target (its first row); None is the largest scale that was observed, with the tokens that constraints tell.
    observations: the runs the law was fitted to, where it does not hold them itself: the best of them is a start, and
    stands among the comparisons. flatness: mixtures are about as good whose objective is at most this share above.
    refits: how often the law is fitted anew without a part of the runs, to see how the optimum moves. explain: False
    finds the mixture alone.

    Convex laws are solved to a proved gap of at most 1e-9 of the objective (told where it is more), others from several
    starts, trees by search. Raises MixingError where constraints clash or names are unknown.
    """
    asked = objective if isinstance(objective, Objective) else Objective(weights=dict(objective or {}))
    kept = constraints or Constraints()
    at = scale_of(law, points, kept)
    work = _Work(
        law=law,
        objective=asked,
        constraints=kept,
        problem=Problem.of(law, at, asked, kept),
        observations=observations if observations is not None else getattr(law, "observations", None),
        seed=seed,
    )
    solution = solve(work.problem, work.hints(), seed=seed)
    return work.mixture(solution, flatness=flatness, refits=refits, explain=explain)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Work:
    law: Law
    objective: Objective
    constraints: Constraints
    problem: Problem
    observations: Observations | None
    seed: int

    def hints(self) -> Floats:
        """[h, m]: mixtures worth starting from."""
        known = list(self.usual().values())
        if self.constraints.no_regression is not None:
            known.insert(0, self.constraints.baseline_weights(self.law.domains))
        return np.array(known)

    def usual(self) -> dict[str, Floats]:
        """Mixtures that people use, and the best that was run."""
        unique, tokens = self.problem.at.unique_tokens[0], float(self.problem.at.tokens[0])
        most = self.constraints.max_epochs
        found = baselines(unique, tokens, most if isinstance(most, float) else UNIMAX_EPOCHS)
        if self.problem.prior is not None:
            found["prior"] = self.problem.prior
        best = self._best_run()
        return {"best run": best, **found} if best is not None else found

    def _best_run(self) -> Floats | None:
        rows = self.observations
        if rows is None or set(rows.domains) != set(self.law.domains):
            return None
        if any(name not in rows.metrics for name in self.law.metrics):
            return None
        values = self.objective.value(self.law.metrics, rows.only(self.law.metrics).values)
        if not np.isfinite(values).any():
            return None
        return np.asarray(rows.points.aligned(self.law.domains).weights[int(np.nanargmin(values))])

    def mixture(self, solution: Solution, *, flatness: float, refits: int, explain: bool) -> Mixture:
        weights, problem = solution.weights, self.problem
        own = self._alternative("optimum", weights, solution.value, weights)
        low, high = self._interval(own)
        certificate = Certificate(
            method=solution.method,
            convex=problem.convex,
            bound=solution.bound,
            gap=solution.gap,
            starts=solution.starts,
            agreed=solution.agreed,
            excess=float(problem.polytope.excess(weights[None, :])[0]),
        )
        tokens, epochs = self._tokens(weights)
        return Mixture(
            domains=self.law.domains,
            weights=weights,
            value=solution.value,
            low=low,
            high=high,
            metrics=own.metrics,
            metrics_low=own.low,
            metrics_high=own.high,
            tokens=tokens,
            epochs=epochs,
            certificate=certificate,
            prices=() if problem.flat else prices(problem, weights, float(problem.at.tokens[0])),
            near=self._flatness(weights, flatness) if explain else None,
            sensitivity=self._sensitivity(weights, refits) if explain else (),
            unconstrained=self._unconstrained(solution) if explain else None,
            comparisons=self._comparisons(solution) if explain else (),
            warnings=self._warnings(solution, epochs),
        )

    def _named(self, row: Floats) -> dict[str, float]:
        return dict(zip(self.law.domains, row.tolist(), strict=True))

    def _alternative(self, name: str, row: Floats, best: float, optimum: Floats) -> Alternative:
        problem = self.problem
        at = row[None, :]
        value = float(problem.values(at)[0])
        metrics = problem.metrics(at)[0]
        keeps = bool(problem.polytope.contains(row)[0] and problem.worst_limit(at)[0] <= TOLERANCE)
        low: dict[str, float] | None = None
        high: dict[str, float] | None = None
        told = self._predicted(at)
        if told is not None:
            low = {metric: float(told.low[metric][0].as_py()) for metric in self.law.metrics}
            high = {metric: float(told.high[metric][0].as_py()) for metric in self.law.metrics}
        return Alternative(
            name=name, weights=self._named(row), value=value, excess=value - best, keeps=keeps,
            change=float(np.abs(row - optimum).sum() / 2),
            metrics=dict(zip(self.law.metrics, metrics.tolist(), strict=True)), low=low, high=high,
        )  # fmt: skip

    def _predicted(self, rows: Floats) -> Any:
        """A prediction with intervals where the law gives them, else None."""
        predict = getattr(self.law, "predict", None)
        return None if predict is None else predict(self.problem.points(rows)[0])

    def _interval(self, own: Alternative) -> tuple[float | None, float | None]:
        """Of the objective, as wide as if the metrics' errors all went together."""
        if own.low is None or own.high is None:
            return None, None
        half = np.array([(own.high[name] - own.low[name]) / 2 for name in self.law.metrics])
        shares = np.abs(self.problem.coefficients)
        used = (shares > 0).any(axis=0)
        wide = float((shares[:, used] @ half[used]).max())
        return own.value - wide, own.value + wide

    def _tokens(self, weights: Floats) -> tuple[dict[str, float] | None, dict[str, float] | None]:
        tokens = float(self.problem.at.tokens[0])
        if not np.isfinite(tokens):
            return None, None
        given = weights * tokens
        unique = self.problem.at.unique_tokens[0]
        epochs = None
        if not np.isnan(unique).all():
            with np.errstate(divide="ignore", invalid="ignore"):
                epochs = self._named(np.where(given > 0, given / unique, 0.0))
        return self._named(given), epochs

    def _flatness(self, weights: Floats, share: float) -> Flatness:
        # Of a difference from a baseline the size is that of the losses behind it.
        size = float(np.abs(self.problem.coefficients @ self.problem.metrics(weights[None, :])[0]).max())
        near = near_optimal(self.problem, weights, within=share * size, seed=self.seed)
        ranges = {
            name: Range(low=low, high=high)
            for name, low, high in zip(self.law.domains, near.low.tolist(), near.high.tolist(), strict=True)
        }
        sample = tuple(self._named(row) for row in near.sample)
        return Flatness(within=near.within, ranges=ranges, sample=sample, farthest=near.farthest)

    def _sensitivity(self, weights: Floats, refits: int) -> Any:
        found = shifts(self.problem, weights, members(self.law), self.objective, self.constraints, seed=self.seed)
        if refits:
            if self.observations is None:
                raise MixingError("refits: needs the runs the law was fitted to; give observations")
            laws = refitted(self.law, self.observations, refits, seed=self.seed)
            found += shifts(self.problem, weights, laws, self.objective, self.constraints, seed=self.seed)
        return found

    def _unconstrained(self, solution: Solution) -> Alternative | None:
        """The optimum over all mixtures; None where it is the same."""
        plain = replace(Constraints(), prior=self.constraints.prior, unique_tokens=self.constraints.unique_tokens)
        free = Problem.of(self.law, self.problem.at, self.objective, plain)
        if not len(self.problem.limit_names) and self.problem.polytope.contains(free.polytope.vertices).all():
            return None
        solved = solve(free, np.vstack([solution.weights[None, :], self.hints()]), seed=self.seed)
        return self._alternative("unconstrained", solved.weights, solution.value, solution.weights)

    def _comparisons(self, solution: Solution) -> tuple[Alternative, ...]:
        rows = [self._alternative(name, row, solution.value, solution.weights) for name, row in self.usual().items()]
        return tuple(sorted(rows, key=lambda row: (row.value, row.name)))

    def _warnings(self, solution: Solution, epochs: Mapping[str, float] | None) -> tuple[str, ...]:
        told: list[str] = []
        predicted = self._predicted(solution.weights[None, :])
        if predicted is not None:
            told += [f"the optimum is off what was observed: {line}" for line in predicted.warnings]
        if self.problem.convex and solution.gap is not None and solution.gap > 1e-6:
            told.append(f"the optimum is proved only to {solution.gap:.1e} of the objective")
        if not self.problem.convex and solution.starts > 1 and solution.agreed * 2 < solution.starts:
            told.append(
                f"only {solution.agreed} of {solution.starts} searches ended at the same objective: there are several "
                "optima, and a better one may be missed"
            )
        return (*told, *self._repetition(epochs))

    def _repetition(self, epochs: Mapping[str, float] | None) -> list[str]:
        """Domains that the target repeats and the runs did not, and the unique tokens at which they would have."""
        rows = self.observations
        if epochs is None or rows is None or set(rows.domains) != set(self.law.domains):
            return []
        points = rows.points.aligned(self.law.domains)
        if not np.isfinite(points.tokens).any():
            return []
        unique, tokens = self.problem.at.unique_tokens[0], float(self.problem.at.tokens[0])
        share = float(np.nanmedian(points.tokens)) / tokens
        told = []
        for place, name in enumerate(self.law.domains):
            seen = points.epochs[:, place]
            most = float(np.nanmax(seen)) if np.isfinite(seen).any() else np.nan
            if epochs[name] > 1 and np.isfinite(epochs[name]) and most < _FEW_EPOCHS * epochs[name]:
                told.append(
                    f"{name} is seen {epochs[name]:.1f} times at the target and at most {most:.2g} times in the runs, "
                    f"which say little about repeating it; {unique[place] * share:.3g} unique tokens of it in each run "
                    "would match"
                )
        return told
