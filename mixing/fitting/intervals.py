"""Intervals from the errors that held-out rows showed, wider where laws are unsure."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from mixing.observations.points import Floats

PARTS = 4
LEAST_CONSTANT = 0.25
"""Share of the error's variance that is the same everywhere, at least: noise and misfit know no distance."""

LEARNING_EXPONENT = 0.4
"""Errors fall as rows ** -0.4: measured on RegMix from 32 to 512 runs (MAE .112, .079, .060, .050, .043 of
reference tables). Held-out errors come from fits on fewer rows than the law that predicts."""

POOL_BELOW = 200
"""With fewer held-out errors of a metric than this, the shape of their distribution is pooled over metrics."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ErrorModel:
    """How large the errors of each metric are, as a function of signals that grow with what is not known.

    A signal is a variance [n, k] of a prediction: of the law itself (its deviation), between laws, by distance to the
    observed mixtures. An error's variance is a blend of a constant and of signals, each divided by its mean, the same
    blend for all metrics: the one under which held-out errors are likeliest (Laplace).
    Quantiles of errors over their scale make the interval (split conformal on cross-validation residuals; Papadopoulos
    2008 for the normalisation), with the finite-sample rank ceil((n + 1) level), and Student's t beyond the last rank.
    Of few errors a metric has only its own size, the shape is that of all metrics, and what a size is worth that was
    taken from n errors is Student's t over the normal.

    blend: [1 + s]. unit: [s, k]. size: [k], root mean square of |error| / scale. ratios: sorted, by metric or of all.
    """

    blend: Floats
    unit: Floats
    size: Floats
    ratios: tuple[Floats, ...]
    learning: float

    @classmethod
    def of(cls, errors: Floats, signals: Floats, *, kept: float) -> Self:
        """errors: [n, k], held out, NaN where not measured. signals: [s, n, k]. kept: share of rows in each fit."""
        measured = np.isfinite(errors)
        unit = np.array([[_mean(signal[:, k], measured[:, k]) for k in range(errors.shape[1])] for signal in signals])
        unit = unit.reshape(len(signals), errors.shape[1])
        scaled = _scaled(signals, unit)
        blend = _likeliest(np.where(measured, np.abs(errors), np.nan), scaled)
        ratios = np.abs(errors) / _scales(blend, scaled)
        size = np.sqrt(np.nanmean(ratios**2, axis=0))
        by_metric = [np.sort(ratios[measured[:, k], k]) / max(size[k], 1e-300) for k in range(errors.shape[1])]
        return cls(
            blend=blend, unit=unit, size=size, ratios=tuple(by_metric), learning=float(kept**LEARNING_EXPONENT)
        )  # fmt: skip

    def deviation(self, signals: Floats) -> Floats:
        """[n, k]: standard deviation of the error of a prediction (noise of a measurement included)."""
        return np.asarray(_scales(self.blend, _scaled(signals, self.unit)) * self.size * self.learning)

    def half_width(self, signals: Floats, level: float) -> Floats:
        """[n, k]: half of the interval that holds `level` of new measurements."""
        quantiles = np.array([self._quantile(metric, level) for metric in range(len(self.size))])
        return np.asarray(self.deviation(signals) * quantiles)

    def _quantile(self, metric: int, level: float) -> float:
        """Of |error| / deviation: what a new one stays below with probability `level`."""
        from scipy.stats import norm, t

        own, every = self.ratios[metric], np.concatenate(self.ratios)
        count = len(own)
        if count < 2:
            return float("inf")
        tail = (1 + level) / 2
        student = float(t.ppf(tail, count - 1))
        if count >= POOL_BELOW or len(self.ratios) == 1:
            rank = int(np.ceil((count + 1) * level))
            return float(own[rank - 1]) if rank <= count else max(float(own[-1]), student * (1 + 1 / count) ** 0.5)
        found = float(np.quantile(every, level)) * student / float(norm.ppf(tail))
        return found if level <= len(every) / (len(every) + 1) else max(found, student)


def _likeliest(errors: Floats, scaled: Floats) -> Floats:
    """[1 + s]: the blend, in quarters, with the least Laplace negative log-likelihood; each metric has its own size."""
    count = len(scaled)
    best, found = np.inf, np.asarray(np.eye(1 + count)[0])
    for parts in itertools.product(range(PARTS + 1), repeat=count):
        constant = 1 - sum(parts) / PARTS
        if constant < LEAST_CONSTANT - 1e-9:
            continue
        blend = np.array([constant, *(part / PARTS for part in parts)])
        scales = _scales(blend, scaled)
        with np.errstate(divide="ignore"):
            sizes = np.log(np.nanmean(errors / scales, axis=0))
        score = float(np.mean(np.nanmean(np.where(np.isfinite(errors), np.log(scales), np.nan), axis=0) + sizes))
        if score < best - 1e-9:
            best, found = score, blend
    return found


def _scaled(signals: Floats, unit: Floats) -> Floats:
    return np.asarray(signals / np.where(unit > 0, unit, 1.0)[:, None, :])


def _scales(blend: Floats, scaled: Floats) -> Floats:
    return np.asarray(np.sqrt(blend[0] + np.tensordot(blend[1:], scaled, axes=1)))


def _mean(values: Floats, measured: npt.NDArray[np.bool_]) -> float:
    return float(values[measured].mean()) if measured.any() else 0.0
