"""LightGBM law (RegMix): boosted trees on the weights, one ensemble a metric, with the published settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from mixing.laws.law import Law
from mixing.laws.robust_law import measured
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, Points

PUBLISHED = {"learning_rate": 0.01, "num_leaves": 31, "min_child_samples": 20}
"""RegMix's settings (sail-sg/regmix @b004d3a, regression notebook); the rest are LightGBM's defaults."""

TREES = 1000

LEAST_ROWS = 40
"""Two leaves of min_child_samples: with fewer rows no tree splits, and the law is the mean of what it saw."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BoostedTrees(Law):
    """L = a sum of TREES trees of w.

    Differs from the notebook: never stopped early, which there is done on the test rows. ensembles: a Booster a metric.
    rows: [k] ints, how many each was fitted on. Piecewise constant: it has no slope to descend, and gradient is 0.
    """

    name: ClassVar[str] = "lightgbm"
    equation: ClassVar[str] = "L = sum of 1000 regression trees of w"
    source: ClassVar[str] = "Liu et al. 2024 (RegMix), arXiv:2407.01492, LightGBM with its settings"
    threads: ClassVar[int] = 1

    domains: tuple[str, ...]
    metrics: tuple[str, ...]
    ensembles: tuple[Any, ...]
    rows: tuple[int, ...]

    @classmethod
    def fit(cls, observations: Observations, *, seed: int = 0) -> Self:
        """Deterministic for a seed. `BoostedTrees.threads` cores are used, 1 where nobody sets another number."""
        used = measured(observations)
        columns = zip(used, observations.values.T, strict=True)
        ensembles = [_trained(observations.weights[rows], values[rows], seed, cls.threads) for rows, values in columns]
        return cls(
            domains=observations.domains,
            metrics=observations.metrics,
            ensembles=tuple(ensembles),
            rows=tuple(int(count) for count in used.sum(axis=1)),
        )

    def mean(self, points: Points) -> Floats:
        columns = [ensemble.predict(points.weights, num_threads=self.threads) for ensemble in self.ensembles]
        return np.asarray(np.stack(columns, axis=1), np.float64)

    def gradient(self, points: Points) -> Floats:
        """0 everywhere, which is right almost everywhere and of no use to a solver: search by mean instead."""
        return np.zeros((len(points), len(self.metrics), len(self.domains)))

    def told(self) -> dict[str, Any]:
        """Gain of the splits on each domain, as a share of all, and a warning where too few rows let no tree split."""
        told: dict[str, Any] = {}
        for metric, ensemble, rows in zip(self.metrics, self.ensembles, self.rows, strict=True):
            gain = np.asarray(ensemble.feature_importance("gain"), np.float64)
            shares = gain / gain.sum() if gain.sum() > 0 else gain
            told[metric] = {"gain": dict(zip(self.domains, map(float, shares), strict=True))}
            if not gain.any():
                why = f"trees cannot split below {LEAST_ROWS} runs" if rows < LEAST_ROWS else "no tree could split"
                told[metric]["warning"] = f"{rows} runs: {why}; this is their mean"
        return told


def _trained(weights: Floats, values: Floats, seed: int, threads: int) -> Any:
    import lightgbm

    data = lightgbm.Dataset(weights, values, free_raw_data=True, params={"verbose": -1})
    settings = PUBLISHED | {
        "objective": "regression",
        "seed": seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": threads,
        "verbose": -1,
    }
    return lightgbm.train(settings, data, num_boost_round=TREES)
