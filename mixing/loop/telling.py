"""OUT/mix.json: everything that a report shows of the loop, as plain values.

mixture, made_of, stop        the mixture file, what it follows from, why the loop ended
objective                     {weights, worst}: metrics by name
spent                         {runs, failed, flops, seconds, budget}
rounds                        [{number, why, seconds, failed, runs: names, best: objective so far}]
worth                         of ten more runs: {gain, low, high, limit, why}, or null
law                           {why, warnings, choice: [{law, metric, error, explained, share, why}]}
fit                           {metric: [{run, measured, predicted}]}: each predicted by fits on other runs;
                              "objective" is one of them
curves                        {domain: {weight, allowed, objective: {low, value, high}, metrics: {...}}}, lists over
                              the weight, the others in the proportions of the optimum
design                        [{run, round, why, weights, objective, metrics}]
optimum                       mixing.optimum.Mixture.told(): shadow prices, near-optimal set, comparisons ...
others                        [{run, parameters, tokens, weights, metrics}]: of other scales, not fitted
warnings                      lines
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from mixing.loop.finding import Found
from mixing.loop.rounds import Round
from mixing.loop.stopping import Next
from mixing.observations.observations import Observations
from mixing.observations.points import Floats

FORMAT: Final = 1
STEPS: Final = 25
"""Weights along a response curve."""


def told(found: Found, last: Next) -> dict[str, Any]:
    """What a report shows, all finite: null where a number is not known."""
    standing, law = found.standing, found.standing.law
    whole = {
        "objective": {"weights": standing.objective.weights, "worst": standing.objective.worst},
        "level": found.settings.level,
        "spent": spent(found),
        "rounds": list(_rounds(found)),
        "worth": None if last.worth is None else asdict(last.worth),
        "law": {"why": law.why, "choice": [asdict(one) for one in law.choice], **law.told()},
        "at_target": None if standing.at_target is None else standing.at_target.told()["lines"],
        "fit": fit(found),
        "curves": curves(found),
        "design": list(_design(found)),
        "optimum": found.optimum.told(),
        "others": list(_others(standing.others)),
        "warnings": [*standing.warnings, *standing.unmeasured, *law.warnings, *found.optimum.warnings, *_few(found)],
    }
    plain: dict[str, Any] = finite(whole)
    return plain


def spent(found: Found) -> dict[str, Any]:
    standing = found.standing
    return {
        "runs": standing.spent,
        "failed": standing.failed,
        "flops": standing.flops,
        "seconds": round(standing.seconds, 3),
        "budget": found.settings.budget(len(standing.domains)),
    }


def fit(found: Found) -> dict[str, list[dict[str, Any]]]:
    """Predicted against measured, by metric; the objective too."""
    standing = found.standing
    rows, names = standing.rows, standing.law.metrics
    there = rows.only(names)
    pairs = {name: (there.values[:, at], found.held_out[:, at]) for at, name in enumerate(names)}
    objective = standing.objective
    pairs["objective"] = objective.value(names, there.values), objective.value(names, found.held_out)
    return {
        name: [
            {"run": run, "measured": float(one), "predicted": float(other)}
            for run, one, other in zip(rows.runs, measured, predicted, strict=True)
            if math.isfinite(one)
        ]
        for name, (measured, predicted) in pairs.items()
    }


def curves(found: Found) -> dict[str, Any]:
    """What a domain's weight does, the others keeping the proportions that they have at the optimum."""
    polytope = found.constraints.polytope(found.standing.domains)
    optimum = np.array([found.weights[domain] for domain in found.standing.domains])
    seen = found.standing.rows.weights
    told: dict[str, Any] = {}
    for at, domain in enumerate(found.standing.domains):
        least, most = min(seen[:, at].min(), optimum[at]), max(seen[:, at].max(), optimum[at])
        along = np.unique(np.append(np.linspace(least, most, STEPS), optimum[at]))
        rows = moved(optimum, at, along)
        low, value, high = found.objective(rows)
        sides = found.predicted(rows)
        told[domain] = {
            "weight": along.tolist(),
            "allowed": polytope.contains(rows).tolist(),
            "objective": _band(low, value, high),
            "metrics": {
                name: _band(*(side[:, column] for side in sides))
                for column, name in enumerate(found.standing.law.metrics)
            },
        }
    return told


def moved(weights: Floats, at: int, along: Floats) -> Floats:
    """[n, m]: one domain at each of n weights, the others in the proportions they have (alike where they have none)."""
    others = np.delete(weights, at)
    others = others / others.sum() if others.sum() > 0 else np.full(len(others), 1 / len(others))
    return np.insert((1 - along)[:, None] * others, at, along, axis=1)


def _band(low: Floats, value: Floats, high: Floats) -> dict[str, list[float]]:
    return {"low": low.tolist(), "value": value.tolist(), "high": high.tolist()}


def _rounds(found: Found) -> Iterable[dict[str, Any]]:
    """Each round, and the least objective that was measured by its end."""
    best = math.inf
    for one in found.standing.rounds:
        measured = one.measured.observations
        values = _objective(found, measured) if measured is not None else np.zeros(0)
        best = min([best, *values[np.isfinite(values)].tolist()])
        yield {
            "number": one.proposal.number,
            "mixtures": len(one.proposal),
            "why": list(one.proposal.why),
            "runs": [] if measured is None else sorted(set(measured.runs)),
            "failed": dict(one.measured.failed),
            "seconds": round(one.seconds, 3),
            "best": best,
        }


def _objective(found: Found, observations: Observations) -> Floats:
    """[n]: NaN where one of its metrics is not measured."""
    objective = found.standing.objective
    names = tuple(dict.fromkeys((*objective.weights, *objective.worst)))
    if any(name not in observations.metrics for name in names):
        return np.full(len(observations), np.nan)
    return objective.value(names, observations.only(names).values)


def _design(found: Found) -> Iterable[dict[str, Any]]:
    rows = found.standing.rows
    home = {run: one for one in found.standing.rounds for run in _runs(one)}
    values = _objective(found, rows)
    for at, run in enumerate(rows.runs):
        one = home.get(run)
        yield {
            "run": run,
            "round": None if one is None else one.proposal.number,
            "why": None if one is None else _why(one, rows.weights[at], rows.domains),
            "weights": dict(zip(rows.domains, rows.weights[at].tolist(), strict=True)),
            "parameters": float(rows.points.parameters[at]),
            "tokens": float(rows.points.tokens[at]),
            "objective": float(values[at]),
            "metrics": dict(zip(rows.metrics, rows.values[at].tolist(), strict=True)),
        }


def _runs(one: Round) -> tuple[str, ...]:
    return () if one.measured.observations is None else one.measured.observations.runs


def _why(one: Round, weights: Floats, domains: tuple[str, ...]) -> str | None:
    """Why the nearest mixture of the round was proposed; None where none is near (a spent domain changes it)."""
    asked = np.array([[mixture[domain] for domain in domains] for mixture in one.proposal.mixtures()])
    away = np.abs(asked - weights).sum(axis=1) / 2
    nearest = int(away.argmin())
    return one.proposal.why[nearest] if away[nearest] < 0.02 else None


def _others(observations: Observations) -> Iterable[dict[str, Any]]:
    for at, run in enumerate(observations.runs):
        values = dict(zip(observations.metrics, observations.values[at].tolist(), strict=True))
        yield {
            "run": run,
            "parameters": float(observations.points.parameters[at]),
            "tokens": float(observations.points.tokens[at]),
            "weights": dict(zip(observations.domains, observations.weights[at].tolist(), strict=True)),
            "metrics": {name: value for name, value in values.items() if math.isfinite(value)},
        }


def _few(found: Found) -> Iterable[str]:
    runs, domains = len(found.standing.rows), len(found.standing.domains)
    if runs <= domains:
        yield f"runs: {runs} tell of {domains} domains; a law is hardly determined by fewer than {domains + 1}"
    failed = found.standing.failed
    if failed:
        run, why = next(iter(failed.items()))
        yield f"runs: {len(failed)} failed and count as spent; the first, {run}: {why}"


def finite(value: Any) -> Any:
    """The same with null for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
