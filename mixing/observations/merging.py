"""Rows that tell of the same run made one, and swarms with other domains or metrics pooled, without losing a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points

SAME_WEIGHTS = 1e-3
"""Two tellings of one run's weights may differ by rounding: published tables hold three decimals."""


def pool(
    *observations: Observations, names: Sequence[str] | None = None, called: Sequence[str] | None = None
) -> Observations:
    """All rows of several swarms over the union of their domains and metrics.

    A domain that a swarm does not have has weight 0 there; a metric that it did not measure is NaN. Rows of one run
    (same name, seed, parameters and tokens) are made one, so later evaluations of a run add metrics to it.
    names: put before each swarm's run names ("a/run-1"), where different runs have the same names. called: what a
        message calls each swarm, such as its file; "swarm 1" and so on where nothing is given.
    Raises MixingError where one run has two mixtures, or two values of one metric.
    """
    if not observations:
        raise MixingError("pool: nothing given; give observations")
    if names is not None:
        if len(set(names)) != len(observations):
            raise MixingError(f"pool: names {list(names)} for {len(observations)} swarms; give each one of its own")
        observations = tuple(
            replace(one, runs=tuple(f"{name}/{run}" for run in one.runs))
            for name, one in zip(names, observations, strict=True)
        )
    domains = _union(one.domains for one in observations)
    metrics = _union(one.metrics for one in observations)
    points = [_spread(one.points, domains) for one in observations]
    whole = Observations(
        runs=tuple(run for one in observations for run in one.runs),
        points=Points(
            domains=domains,
            weights=np.concatenate([one.weights for one in points]),
            parameters=np.concatenate([one.parameters for one in points]),
            tokens=np.concatenate([one.tokens for one in points]),
            unique_tokens=np.concatenate([one.unique_tokens for one in points]),
        ),
        seeds=np.concatenate([one.seeds for one in observations]),
        flops=np.concatenate([one.flops for one in observations]),
        metrics=metrics,
        values=np.concatenate([_columns(one.values, one.metrics, metrics, np.nan) for one in observations]),
        notes=tuple(dict.fromkeys(note for one in observations for note in one.notes)),
    )
    told = called or [f"swarm {number + 1}" for number in range(len(observations))]
    places = [f"{name}, row {row + 1}" for name, one in zip(told, observations, strict=True) for row in range(len(one))]
    return merged(whole, places)[0]


def merged(observations: Observations, places: Sequence[str]) -> tuple[Observations, npt.NDArray[np.intp]]:
    """One row for each run, seed, parameters and tokens, and the first row of each; a note tells of repeated values.

    places: what a message calls each row. Raises MixingError where rows of one run tell two mixtures or two values.
    """
    first, group = _groups(observations)
    _check_weights(observations, first, group, places)
    shape = (len(first), len(observations.metrics))
    low, high, told = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, np.int64)
    np.fmin.at(low, group, observations.values)
    np.fmax.at(high, group, observations.values)
    np.add.at(told, group, ~np.isnan(observations.values))
    with np.errstate(invalid="ignore"):
        clash = np.argwhere(high - low > 1e-9 * np.maximum(np.abs(high), 1e-300))
    if len(clash):
        row, column = clash[0]
        of = [int(at) for at in np.flatnonzero(group == row) if not np.isnan(observations.values[at, column])]
        one = of[0]
        other = next(at for at in of if observations.values[at, column] != observations.values[one, column])
        raise MixingError(
            f"{places[other]}: {observations.metrics[column]} of run {observations.runs[one]!r} is "
            f"{observations.values[other, column]:.10g}, but {observations.values[one, column]:.10g} at {places[one]}; "
            "keep one, or tell the runs apart by name or seed"
        )
    repeated = int((told > 1).any(axis=1).sum())
    runs = "run is told more than once: it counts" if repeated == 1 else "runs are told more than once: each counts"
    notes = (f"{repeated} {runs} once",) if repeated else ()
    return _taken(observations, first, group, low, notes), first


def _taken(
    observations: Observations,
    first: npt.NDArray[np.intp],
    group: npt.NDArray[np.intp],
    values: Floats,
    notes: tuple[str, ...],
) -> Observations:
    """The first row of each group, with what another row of it knows where the first does not."""
    kept = observations.rows(first)
    flops = np.full(len(first), np.nan)
    np.fmax.at(flops, group, observations.flops)
    unique = np.full(kept.weights.shape, np.nan)
    np.fmax.at(unique, group, observations.points.unique_tokens)
    return replace(
        kept, values=values, flops=flops, points=replace(kept.points, unique_tokens=unique), notes=kept.notes + notes
    )


def _groups(observations: Observations) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """First row of each identity, in order; and the group of each row."""
    points = observations.points
    scales = np.nan_to_num(np.stack([points.parameters, points.tokens]), nan=-1.0)
    found: dict[Any, int] = {}
    first: list[int] = []
    group = np.empty(len(observations), np.intp)
    keys = zip(observations.runs, observations.seeds.tolist(), *scales.tolist(), strict=True)
    for row, key in enumerate(keys):
        if key not in found:
            found[key] = len(first)
            first.append(row)
        group[row] = found[key]
    return np.array(first, np.intp), group


def _check_weights(
    observations: Observations,
    first: npt.NDArray[np.intp],
    group: npt.NDArray[np.intp],
    places: Sequence[str],
) -> None:
    away = np.abs(observations.weights - observations.weights[first][group])
    bad = np.flatnonzero((away > SAME_WEIGHTS).any(axis=1))
    if len(bad):
        row, one = int(bad[0]), int(first[group[bad[0]]])
        domain = int(away[row].argmax())
        raise MixingError(
            f"{places[row]}: run {observations.runs[row]!r} has {observations.weights[row, domain]:.4g} of "
            f"{observations.domains[domain]}, but {observations.weights[one, domain]:.4g} at {places[one]}; "
            "a run has one mixture: give the two names of their own (pool(..., names=...) does)"
        )


def _spread(points: Points, domains: tuple[str, ...]) -> Points:
    return replace(
        points,
        domains=domains,
        weights=_columns(points.weights, points.domains, domains, 0.0),
        unique_tokens=_columns(points.unique_tokens, points.domains, domains, np.nan),
    )


def _columns(values: Floats, have: Sequence[str], want: Sequence[str], missing: float) -> Floats:
    found = np.full((len(values), len(want)), missing)
    found[:, [want.index(name) for name in have]] = values
    return found


def _union(names: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for some in names for name in some))
