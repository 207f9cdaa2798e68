"""Designs compared in a simulated world: how many runs until the mixture that the fit calls best is nearly the best.

Every design has the same fit and the same optimiser; only where its runs are differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from mixing.design import propose
from mixing.fitting import Fitted, fit
from mixing.observations.observations import Observations
from mixing.observations.points import Points
from mixing.optimum import optimize
from tests.mixing.world import BASE, World

CLOSE = 0.002
"""Of the true optimum's loss."""
HARD = {"domains": 8, "metrics": 3, "bend": 0.3, "ripple": 0.5, "noise": 0.005, "corner_noise": 0.05}
"""A world whose losses are of no law's form and not convex; what is wanted is the loss on the three rarest domains."""
EASY = {"domains": 6, "bend": 0.3, "ripple": 0.2, "noise": 0.01, "corner_noise": 0.1}
"""One where a dozen runs are nearly enough."""

Sizes = Mapping[str, tuple[float, float]]


def campaign(
    here: World,
    *,
    seed: int,
    runs: int,
    first: int = 12,
    batch: int = 4,
    law: str = "auto",
    sizes: Sizes | None = None,
    target: tuple[float, float] | None = None,
) -> Iterator[tuple[Observations, Fitted]]:
    """Propose, measure, fit, and again: the observations and the fit after each batch."""
    table = propose(here.domains, first, seed=seed, sizes=sizes, target=target)
    known: Observations | None = None
    while True:
        new = measured(here, table, seed=1000 * seed + (0 if known is None else len(known)), sizes=sizes)
        known = new if known is None else joined(known, new)
        fitted = fit(known, law)
        yield known, fitted
        if len(known) >= runs:
            return
        table = propose(known, batch, law=fitted, seed=seed, sizes=sizes, target=target)


def measured(here: World, table: pa.Table, *, seed: int, sizes: Sizes | None) -> Observations:
    """The runs of a proposal, each at its size."""
    scales = [BASE] * len(table) if sizes is None else [sizes[name] for name in table["size"].to_pylist()]
    points = Points.of(
        here.domains,
        np.column_stack([table[name].to_numpy() for name in here.domains]),
        parameters=np.array([scale[0] for scale in scales]),
        tokens=np.array([scale[1] for scale in scales]),
    )
    return here.measure(points, seed=seed)


def random_design(
    here: World, *, seed: int, counts: Sequence[int], natural: bool, law: str = "auto"
) -> Iterator[tuple[Observations, Fitted]]:
    """As RegMix draws runs: Dirichlet, around the natural mixture or evenly over all of them."""
    parameters = here.natural * len(here.domains) if natural else np.ones(len(here.domains))
    drawn = np.random.default_rng([seed, natural]).dirichlet(parameters, max(counts))
    known = here.measure(drawn, seed=1000 * seed + 1)
    for count in counts:
        rows = known.rows(slice(count))
        yield rows, fit(rows, law)


def excess(here: World, fitted: Fitted, size: tuple[float, float] = BASE) -> float:
    """By what share the true loss of the fit's best mixture lies above the true optimum's, both at a size."""
    at = Points.of(here.domains, here.natural, parameters=size[0], tokens=size[1])
    mixture = optimize(fitted, points=at, explain=False)
    weights = np.array([[mixture.weights[mixture.domains.index(name)] for name in here.domains]])
    best = here.best[1] if size == BASE else here.best_at(size)[1]
    return float(here.loss(weights, size)[0] / best - 1)


def best_run(here: World, known: Observations) -> float:
    """The same of the run whose measured mean loss is least."""
    chosen = known.weights[[int(np.argmin(known.values.mean(axis=1)))]]
    return float(here.loss(chosen)[0] / here.best[1] - 1)


def joined(one: Observations, other: Observations) -> Observations:
    """Rows of both, which are runs of their own."""
    fields = ("weights", "parameters", "tokens", "unique_tokens")
    points = Points(
        domains=one.domains,
        **{name: np.concatenate([getattr(one.points, name), getattr(other.points, name)]) for name in fields},
    )
    values, flops = (np.concatenate([getattr(part, name) for part in (one, other)]) for name in ("values", "flops"))
    whole = Observations.of(points, one.metrics, values, flops=flops)
    return replace(whole, seeds=np.concatenate([one.seeds, other.seeds]))


def runs_needed(curve: Sequence[tuple[int, float]]) -> float:
    """Runs at the first fit that is close; inf where none is."""
    return min((float(runs) for runs, loss in curve if loss <= CLOSE), default=float("inf"))
