"""Gaussian process laws: a smooth function of the mixture (and scale) with its own error bars.

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), chapters 2, 4 and 5; logarithm above a
learned floor after Snelson, Rasmussen and Ghahramani, Warped Gaussian Processes (2003). As a law of mixtures: olmix's
isotropic one on raw weights, which Matern-5/2 with a length a feature on logarithms leaves far behind (RegMix, 512
runs: Spearman .886 against .993).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from mixing.laws.gaussian_process_evidence import learned
from mixing.laws.gaussian_process_posterior import Process
from mixing.laws.gaussian_process_warp import Heights
from mixing.laws.kernels import FeatureMap, Features
from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points

LEARNED_ROWS = 512
"""Constants are learned from at most so many rows, drawn by the seed; the process is then given all of them."""

MOST_ROWS = 6000
"""A metric's matrices grow with the square of its rows: 6,000 are 290 MB a metric."""

REFIT_ROWS = 160
"""Up to here, rows held out get constants learned without them; above, where 50 constants learned from all rows hardly
know a fold of them, constants are kept and the rows are left out in closed form."""

CHUNK = 2048
"""Points predicted at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianProcess(Law):
    """Of one scale. features: from points to what the kernel sees; processes: one a metric.

    `mean` is the median of the predicted metric, which a warp keeps where it does not keep the mean.
    """

    name: ClassVar[str] = "gaussian_process"
    equation: ClassVar[str] = (
        "log(L - floor) = f(w) + noise; f ~ GP(0, c + a^2 Matern52(root w, log w; a length each) + sum_j v_j root w_j "
        "root w'_j)"
    )
    source: ClassVar[str] = "Rasmussen and Williams 2006, ch. 4-5; warp: Snelson et al. 2003; constants: MAP"

    domains: tuple[str, ...]
    metrics: tuple[str, ...]
    features: FeatureMap
    processes: tuple[Process, ...]

    @classmethod
    def fit(cls, observations: Observations, *, seed: int = 0) -> Self:
        """Raises MixingError where a metric was measured nowhere, or more often than MOST_ROWS."""
        known = np.isfinite(observations.values)
        for name, count in zip(observations.metrics, known.sum(axis=0), strict=True):
            if not 0 < count <= MOST_ROWS:
                raise MixingError(f"{cls.name}: {name} has {count} values; it takes 1 to {MOST_ROWS}")
        ordered = observations.rows(canonical(observations))
        known = np.isfinite(ordered.values)
        mapped = FeatureMap.of(ordered.points, scaled=cls.uses_scale)
        features = mapped(ordered.points)
        processes: dict[int, Process] = {}
        # Metrics measured in the same rows share their kernels' first search.
        _, groups = np.unique(known, axis=1, return_inverse=True)
        for group in np.unique(groups):
            columns = np.flatnonzero(groups == group)
            rows = np.flatnonzero(known[:, columns[0]])
            fitted = fit_processes(features.rows(rows), ordered.values[np.ix_(rows, columns)], seed)
            processes.update(zip(columns.tolist(), fitted, strict=True))
        return cls(
            domains=observations.domains,
            metrics=observations.metrics,
            features=mapped,
            processes=tuple(processes[column] for column in range(len(processes))),
        )

    def mean(self, points: Points) -> Floats:
        return self._each(points, lambda process, at, _: process.warp.value(process.mean(at)))

    def gradient(self, points: Points) -> Floats:
        def slopes(process: Process, at: Features, part: Points) -> Floats:
            by_z = process.warp.slope(process.mean(at))
            return by_z[:, None] * self.features.by_weight(part, *process.mean_slopes(at))

        return self._each(points, slopes)

    def deviation(self, points: Points, *, noise: bool = True) -> Floats:
        """[n, k]: standard deviation of what a run there would measure; without noise, of the law's mean.

        To first order of the warp.
        """
        return self._each(points, lambda process, at, _: spread(process, at, noise))

    def deviation_gradient(self, points: Points, *, noise: bool = True) -> Floats:
        """[n, k, m]: derivative of the deviation by each weight."""

        def slopes(process: Process, at: Features, part: Points) -> Floats:
            told = spread(process, at, noise)
            steepness = process.warp.slope(process.mean(at))
            by_mean = self.features.by_weight(part, *process.mean_slopes(at))
            by_variance = self.features.by_weight(part, *process.variance_slopes(at))
            # d(s sd) with ds = spread s dz, dsd = dvar / (2 sd); at sd 0 there is no slope.
            least = np.maximum(told, 1e-150)
            return (process.warp.spread * told)[:, None] * by_mean + (0.5 * steepness**2 / least)[:, None] * by_variance

        return self._each(points, slopes)

    def posterior(self, points: Points) -> tuple[Floats, Floats]:
        """mean [n, k] and covariance [k, n, n] of the law's mean, before noise, to first order of the warp."""
        at = self.features(points)
        means = [process.mean(at) for process in self.processes]
        covariances = []
        for process, z in zip(self.processes, means, strict=True):
            steepness = process.warp.slope(z)
            covariances.append(process.covariance(at) * steepness[:, None] * steepness)
        values = [process.warp.value(z) for process, z in zip(self.processes, means, strict=True)]
        return np.column_stack(values), np.stack(covariances)

    def noise(self, points: Points) -> Floats:
        """[n, k]: standard deviation that runs of one mixture have among themselves."""
        return self._each(
            points,
            lambda process, at, _: process.warp.slope(process.mean(at)) * np.sqrt(process.constants.noise),
        )

    def conditioned(self, points: Points, values: Floats | None = None) -> Self:
        """The law as if runs at `points` had been measured, constants kept. NaN: that metric was not.

        Without values they measure what the law predicts: its mean stays, and its deviations shrink as they would.
        """
        at = self.features(points)
        told = self.mean(points) if values is None else np.asarray(values, np.float64)
        if told.shape != (len(points), len(self.metrics)):
            raise MixingError(f"values: shape {told.shape}; give {len(points)} rows of {len(self.metrics)} metrics")
        processes = []
        for process, column in zip(self.processes, told.T, strict=True):
            there = np.isfinite(column)
            rows = at.rows(there)
            z = process.mean(rows) if values is None else process.warp.z(column[there])
            processes.append(process.conditioned(rows, z))
        return replace(self, processes=tuple(processes))

    def held_out(
        self, observations: Observations, folds: npt.NDArray[np.int64], *, seed: int = 0
    ) -> tuple[Floats, Floats | None]:
        """As Law's. Above REFIT_ROWS the constants are those of all rows: see there."""
        if len(observations) <= REFIT_ROWS:
            return super().held_out(observations, folds, seed=seed)
        return self.left_out(observations, folds)

    def left_out(self, observations: Observations, folds: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        """[n, k] means and deviations of each row given the other folds, with the constants that this law has."""
        features = self.features(observations.points)
        means, deviations = np.full((2, *observations.values.shape), np.nan)
        for column, held in enumerate(self.processes):
            values = observations.values[:, column]
            rows = np.flatnonzero(np.isfinite(values))
            process = Process.of(held.constants, held.warp, features.rows(rows), held.warp.z(values[rows]))
            z, variance = process.left_out(folds[rows])
            means[rows, column] = held.warp.value(z)
            deviations[rows, column] = held.warp.slope(z) * np.sqrt(variance)
        return means, deviations

    def told(self) -> dict[str, Any]:
        """By metric: its floor, noise and amplitude (of the standardised log above the floor), and by domain the
        lengths of root and logarithm (long: it hardly matters) and the variance of the line in the root."""
        return {name: self._constants(process) for name, process in zip(self.metrics, self.processes, strict=True)}

    def _constants(self, process: Process) -> dict[str, Any]:
        kernel, names = process.constants.kernel, self.features.domains
        count = len(names)
        told: dict[str, Any] = {
            "floor": process.warp.floor,
            "noise": float(np.sqrt(process.constants.noise)),
            "amplitude": float(np.sqrt(kernel.amplitude)),
            "root_length": dict(zip(names, kernel.lengths[:count].tolist(), strict=True)),
            "log_length": dict(zip(names, kernel.lengths[count : 2 * count].tolist(), strict=True)),
            "root_line": dict(zip(names, kernel.slopes[1 : 1 + count].tolist(), strict=True)),
        }
        if self.uses_scale:
            told["scale_length"] = dict(
                zip(("parameters", "tokens"), kernel.lengths[2 * count :].tolist(), strict=True)
            )
        return told

    def _each(self, points: Points, told: Any) -> Floats:
        """[n, k, ...] of told(process, features, points) [n, ...], some points at a time."""
        parts = [
            np.stack([told(process, self.features(part), part) for process in self.processes], axis=1)
            for part in chunks(points)
        ]
        return np.concatenate(parts)


class ScaledGaussianProcess(GaussianProcess):
    """Of several scales: log N and log D are features too."""

    name: ClassVar[str] = "gaussian_process_scaled"
    equation: ClassVar[str] = (
        "log(L - floor) = f(w, N, D) + noise; f ~ GP(0, c + a^2 Matern52(root w, log w, log N, log D; a length each) + "
        "sum_j v_j root w_j root w'_j + v_N log N log N' + v_D log D log D')"
    )
    uses_scale: ClassVar[bool] = True


def fit_processes(features: Features, values: Floats, seed: int) -> list[Process]:
    """Of metrics [n, k] that were measured in the same rows."""
    rows: Any = slice(None)
    if len(features) > LEARNED_ROWS:
        rows = np.sort(np.random.default_rng(seed).permutation(len(features))[:LEARNED_ROWS])
    heights = tuple(Heights.of(column) for column in values[rows].T)
    constants, _ = learned(features.rows(rows), heights)
    processes = []
    for column, height, found in zip(values.T, heights, constants, strict=True):
        warp = height.warp(found.depth)
        processes.append(Process.of(found, warp, features, warp.z(column)))
    return processes


def spread(process: Process, at: Features, noise: bool) -> Floats:
    variance = process.variance(at) + (process.constants.noise if noise else 0.0)
    return np.asarray(process.warp.slope(process.mean(at)) * np.sqrt(variance))


def chunks(points: Points) -> Iterator[Points]:
    for start in range(0, max(len(points), 1), CHUNK):
        yield points.rows(slice(start, start + CHUNK))


def canonical(observations: Observations) -> npt.NDArray[np.int64]:
    """The rows' order by what they say, so that the order in which runs were told changes nothing."""
    points = observations.points.aligned(sorted(observations.domains))
    keys = (*observations.values.T, points.tokens, points.parameters, *points.weights.round(12).T)
    return np.asarray(np.lexsort(keys))
