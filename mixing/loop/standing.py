"""What is known at a time: all observations of the loop, those that a law can be fitted to, and the law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from mixing.fitting import Fitted, fit
from mixing.laws.law import Law
from mixing.loop.feeding import observed
from mixing.loop.goal import HELD_OUT, spelt_out
from mixing.loop.rounds import Proposal, Round, stored
from mixing.loop.settings import Mix
from mixing.observations import Observations, pool, read_observations
from mixing.observations.points import MixingError
from mixing.optimum.objective import Objective

SAME_SCALE: Final = 0.05
"""Runs whose N and D differ by less than this share are of one scale: D counts targets, of which rows with more
documents have a few less."""
TARGET_RUNS: Final = 3
"""Runs of the target's scale from which the law is put on a line: SOURCE mixing.scale.recalibrate."""
FOREIGN: Final = 1e-6
"""Weight of domains that are not the loop's, up to which a run can be used."""


@dataclass(frozen=True)
class Standing:
    """observations: all there are. measured: rounds' runs by name. warnings: what could not be used, a line each."""

    settings: Mix
    domains: tuple[str, ...]
    rounds: tuple[Round, ...]
    observations: Observations | None
    warnings: tuple[str, ...] = ()

    @property
    def spent(self) -> int:
        """Runs that were paid for, failed ones counted."""
        return sum(one.runs for one in self.rounds)

    @property
    def flops(self) -> float:
        told = [one.measured.observations.flops for one in self.rounds if one.measured.observations is not None]
        return float(np.nansum(np.concatenate(told))) if told else 0.0

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.rounds)

    @property
    def failed(self) -> dict[str, str]:
        return {run: why for one in self.rounds for run, why in one.measured.failed.items()}

    @property
    def whole(self) -> Observations:
        """All observations. Raises MixingError where there are none, with why the first run failed."""
        if self.observations is None:
            failed = self.failed
            told = f"; the first: {next(iter(failed.items()))}" if failed else ""
            raise MixingError(f"runs: none of {self.spent} finished{told}")
        return self.observations

    @cached_property
    def objective(self) -> Objective:
        """What is minimised, by names of metrics."""
        return spelt_out(self.settings.objective, self.domains, _measured(self.whole))

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """A line for the held-out losses that the default objective lacks, since no run tells them."""
        asked = self.settings.objective
        lacking = [domain for domain in self.domains if f"{HELD_OUT}{domain}" not in self.objective.weights]
        if asked.weights or asked.worst or not lacking:
            return ()
        return (f"objective: without the held-out loss of {', '.join(lacking)}, which no run tells",)

    @cached_property
    def rows(self) -> Observations:
        """What the law is fitted to: rows of the proxies' scales, and the metrics that are minimised or kept."""
        kept = self.settings.constraints.no_regression
        also = kept if isinstance(kept, dict) else ()
        metrics = sorted({*self.objective.weights, *self.objective.worst, *also})
        return of_scales(self.whole, self.own)[0].only(metrics)

    @property
    def own(self) -> set[str]:
        """Runs that the rounds measured."""
        return {run for one in self.rounds if one.measured.observations for run in one.measured.observations.runs}

    @cached_property
    def others(self) -> Observations:
        """Rows of other scales: of the trained target, mostly."""
        return of_scales(self.whole, self.own)[1]

    @cached_property
    def at_target(self) -> Law | None:
        """The law put on a line a metric by runs of the largest other scale, from 3 of them on; None where there are
        fewer, or none tells a metric of the law."""
        others = self.others
        if not len(others):
            return None
        logs = _logs(others)
        there = others.rows([_near(log, logs[int(np.lexsort(logs.T)[-1])]) for log in logs])
        known = [name for name in self.law.metrics if name in there.metrics]
        told = np.isfinite(there.only(known).values).any(axis=1)
        if told.sum() < TARGET_RUNS:
            return None
        from mixing.scale import recalibrate

        pairs = zip(there.runs, there.seeds.tolist(), strict=True)
        return recalibrate(self.law, replace(there, runs=tuple(f"{run}/{seed}" for run, seed in pairs)).rows(told))

    @cached_property
    def law(self) -> Fitted:
        """Of the proxies' scale."""
        return fit(self.rows, law=self.settings.law, level=self.settings.level, seed=self.settings.seed)


def standing_of(settings: Mix, out: str, domains: tuple[str, ...]) -> tuple[Standing, Proposal | None]:
    """What a folder holds, and the proposal that waits to be measured, if one does."""
    rounds, waiting = stored(out, domains)
    parts = [one.measured.observations for one in rounds if one.measured.observations is not None]
    for number, url in enumerate(settings.observations, 1):
        earlier = read_observations(url)
        parts.append(replace(earlier, runs=tuple(f"earlier-{number}/{run}" for run in earlier.runs)))
    parts += observed(out)
    usable = [usable_rows(part, domains) for part in parts]
    warnings = tuple(dict.fromkeys(line for _, lines in usable for line in lines))
    found = [part for part, _ in usable if len(part)]
    whole = _ordered(pool(*found)) if found else None
    return Standing(settings, domains, tuple(rounds), whole, warnings), waiting


def usable_rows(observations: Observations, domains: tuple[str, ...]) -> tuple[Observations, tuple[str, ...]]:
    """Rows over these domains (a missing one has weight 0), and a line for what has to be left out."""
    foreign = [at for at, name in enumerate(observations.domains) if name not in domains]
    good = observations.weights[:, foreign].sum(axis=1) <= FOREIGN
    told: tuple[str, ...] = observations.notes
    if not good.all():
        names = ", ".join(observations.domains[at] for at in foreign)
        told += (
            f"observations: {int((~good).sum())} rows left out, which train on domains that are not there: {names}",
        )
    rows = observations.rows(good)
    points = rows.points
    weights, unique = np.zeros((len(rows), len(domains))), np.full((len(rows), len(domains)), np.nan)
    for at, name in enumerate(domains):
        if name in points.domains:
            column = points.domains.index(name)
            weights[:, at], unique[:, at] = points.weights[:, column], points.unique_tokens[:, column]
    weights = weights / weights.sum(axis=1, keepdims=True)
    return replace(rows, points=replace(points, domains=domains, weights=weights, unique_tokens=unique), notes=()), told


def of_scales(observations: Observations, own: set[str]) -> tuple[Observations, Observations]:
    """Rows at a scale (N and D) that a run of `own` has, each scale made one number; and the others.

    All rows count as own where there are no own runs. A law of one scale takes runs of one scale only.
    """
    logs = _logs(observations)
    mine = np.array([run in own for run in observations.runs]) if own else np.ones(len(observations), np.bool_)
    centres: list[npt.NDArray[np.float64]] = []
    for row in np.lexsort(logs.T):
        if mine[row] and not any(_near(logs[row], centre) for centre in centres):
            centres.append(logs[row])
    group = np.array([next((at for at, one in enumerate(centres) if _near(log, one)), -1) for log in logs], np.int64)
    inside = group >= 0
    found = observations.rows(inside)
    parameters, tokens = found.points.parameters.copy(), found.points.tokens.copy()
    for number in range(len(centres)):
        held = group[inside] == number
        parameters[held], tokens[held] = np.median(parameters[held]), np.median(tokens[held])
    scaled = replace(found, points=replace(found.points, parameters=parameters, tokens=tokens))
    return scaled, observations.rows(~inside)


def _logs(observations: Observations) -> npt.NDArray[np.float64]:
    """[n, 2]: log N, log D; 0 where unknown."""
    logs = np.log(np.column_stack([observations.points.parameters, observations.points.tokens]))
    return np.where(np.isnan(logs), 0.0, logs)


def _near(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> bool:
    return bool(np.abs(one - other).max() <= np.log1p(SAME_SCALE))


def _measured(observations: Observations) -> Sequence[str]:
    """Metrics that have a value in some row."""
    return [name for at, name in enumerate(observations.metrics) if np.isfinite(observations.values[:, at]).any()]


def _ordered(observations: Observations) -> Observations:
    """By run, then scale and seed: the same whatever order files came in."""
    keys = [observations.seeds, observations.points.tokens, observations.points.parameters]
    return observations.rows(np.lexsort([*keys, np.unique(observations.runs, return_inverse=True)[1]]))
