"""Recalibration: a law of small runs, told at another scale through a straight line a metric from a few runs there.

Scale changes what a metric is worth against the others more than it changes which mixtures help: over the same 256
mixtures losses of 1M and of 60M models rank alike (Spearman .994 a metric), and their averages do not (.966).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points

if TYPE_CHECKING:
    from mixing.fitting.fitted import Prediction

SLOPE_DEVIATION = 0.5
"""Of the slope that metrics share about 1, before runs tell; in units of the metric's own ratio between scales."""

METRICS_DEVIATION, METRICS_WEIGHT = 0.2, 2.0
"""Of a metric's slope about the one shared, before runs tell, and how many metrics that guess counts as."""

NOISE, NOISE_WEIGHT = 0.03, 4.0
"""Residuals, relative to the metric, before runs tell, and how many runs the other metrics' residuals count as."""

ROUNDS = 50


class Lines(NamedTuple):
    """y = level + slope (x - centre) of each metric, all [k]; noise and doubt: variances of a run and of the slope.

    runs: how many each metric was measured on; with 0 the line is y = x.
    """

    level: Floats
    slope: Floats
    centre: Floats
    noise: Floats
    doubt: Floats
    runs: npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Recalibrated(Law):
    """What a law tells, put on each metric's line at the target's scale.

    law: of the smaller scale. lines: of `recalibrate`. warnings: metrics that no target run tells.
    """

    name: ClassVar[str] = "recalibrated"
    equation: ClassVar[str] = "L' = u + v L(w)"
    source: ClassVar[str] = "own: empirical Bayes over metrics; measured on RegMix, 1M to 60M parameters"

    domains: tuple[str, ...]
    metrics: tuple[str, ...]
    law: Law
    lines: Lines
    warnings: tuple[str, ...] = ()

    @classmethod
    def fit(cls, observations: Observations, *, seed: int = 0) -> Self:
        """A law of the smaller runs, by `mixing.fitting.fit`, recalibrated on those of the largest N and D.

        Raises MixingError where all rows are of one scale.
        """
        from mixing.fitting import fit

        points = observations.points
        scale = points.parameters * points.tokens
        target = scale == np.nanmax(scale) if np.isfinite(scale).any() else np.ones(len(points), np.bool_)
        if target.all():
            raise MixingError("recalibrated: all runs are of one scale; give runs of a smaller one, too")
        found = recalibrate(fit(observations.rows(~target), seed=seed), observations.rows(target))
        assert isinstance(found, cls)
        return found

    def mean(self, points: Points) -> Floats:
        return np.asarray(self.lines.level + self.lines.slope * (self.law.mean(points) - self.lines.centre))

    def gradient(self, points: Points) -> Floats:
        return self.law.gradient(points) * self.lines.slope[:, None]

    @property
    def convex(self) -> npt.NDArray[np.bool_]:
        """Where the law is, and the line does not fall."""
        return np.asarray(self.law.convex & (self.lines.slope >= 0))

    def deviation(self, points: Points) -> Floats | None:
        """[n, k]: of a new run at the target: residuals of the runs there, and what they leave open of the line."""
        lines = self.lines
        away = self.law.mean(points) - lines.centre
        found = np.sqrt(lines.noise * (1 + 1 / np.maximum(lines.runs, 1)) + lines.doubt * away**2)
        inner = self.law.deviation(points)
        unknown = np.full_like(found, np.inf) if inner is None else inner
        return np.where(lines.runs > 0, found, unknown)

    def predict(self, at: Points, *, level: float = 0.9) -> Prediction:
        """Means and intervals of a new run at the target (Student's t); support as the law tells it.

        Raises MixingError where the level is no probability.
        """
        import pyarrow as pa
        from scipy.special import stdtrit

        from mixing.fitting.fitted import Prediction

        if not 0 < level < 1:
            raise MixingError(f"level: {level} is no probability between 0 and 1; 0.9 is usual")
        points = at.aligned(self.domains)
        inner: Any = self.law.predict(points, level=level) if hasattr(self.law, "predict") else None
        freedom = np.maximum(self.lines.runs - 2, 0) + NOISE_WEIGHT
        mean, deviation = self.mean(points), self.deviation(points)
        assert deviation is not None
        half = deviation * stdtrit(freedom, (1 + level) / 2)
        told = [
            pa.table({name: array[:, place] for place, name in enumerate(self.metrics)})
            for array in (mean, mean - half, mean + half)
        ]
        support = np.ones(len(points), np.bool_) if inner is None else inner.support
        warnings = self.warnings if inner is None else (*inner.warnings, *self.warnings)
        return Prediction(
            points=points, level=level, mean=told[0], low=told[1], high=told[2], support=support, warnings=warnings
        )

    def told(self) -> dict[str, Any]:
        lines = self.lines
        by_metric: Mapping[str, Any] = {
            name: {
                "slope": float(lines.slope[place]),
                "shift": float(lines.level[place] - lines.slope[place] * lines.centre[place]),
                "residual": float(np.sqrt(lines.noise[place])),
                "runs": int(lines.runs[place]),
            }
            for place, name in enumerate(self.metrics)
        }
        return {"law": self.law.name, "lines": by_metric, "warnings": list(self.warnings), **self.law.told()}


def recalibrate(law: Law, target: Observations) -> Recalibrated:
    """The law at the scale of these runs, 3 or more of which make a line a metric; of fewer little but a level is told.

    A metric's slope is drawn to the one that metrics share, and that to the ratio between scales (a loss that is 10 %
    lower there has differences that are 10 % smaller), the more so the fewer runs and the noisier. Mixtures that differ
    much from each other tell most. Of a run with several rows the longest counts. A metric that no run tells keeps what
    the law says, with a warning. Raises MixingError where domains differ or no run tells any metric of the law.
    """
    rows = _last_of_each_run(target)
    points = rows.points.aligned(law.domains)
    shared = [name for name in law.metrics if name in rows.metrics]
    seen = np.full((len(rows), len(law.metrics)), np.nan)
    for name in shared:
        seen[:, law.metrics.index(name)] = rows.values[:, rows.metrics.index(name)]
    known = np.isfinite(seen)
    if not known.any():
        raise MixingError(
            f"recalibrate: no run tells any of {', '.join(law.metrics)}; measure at least one of them at the target"
        )
    lines = _lines(np.where(known, law.mean(points), 0.0), np.where(known, seen, 0.0), known)
    lacking = [name for name, count in zip(law.metrics, lines.runs, strict=True) if not count]
    told = tuple(
        f"{name}: no run at the target tells it; predictions are those of the smaller scale" for name in lacking
    )
    return Recalibrated(domains=law.domains, metrics=law.metrics, law=law, lines=lines, warnings=told)


def _lines(told: Floats, seen: Floats, known: npt.NDArray[np.bool_]) -> Lines:
    """Empirical Bayes over metrics. told, seen: [n, k], 0 where not known."""
    runs = known.sum(axis=0)
    count = np.maximum(runs, 1)
    centre, level = told.sum(axis=0) / count, seen.sum(axis=0) / count
    positive = (centre > 0) & (level > 0)
    ratio = np.where(positive, level / np.where(positive, centre, 1.0), 1.0)
    size = np.where(positive, level, np.sqrt((seen**2).sum(axis=0) / count))
    size = np.where(size > 0, size, 1.0)
    x = np.where(known, (told - centre) * ratio, 0.0)
    z = np.where(known, seen - level, 0.0)
    spread = (x**2).sum(axis=0)
    flat = ~(spread > 1e-18 * size**2)
    alone = np.where(flat, 1.0, (x * z).sum(axis=0) / np.where(flat, 1.0, spread))
    left = ((z - alone * x) ** 2).sum(axis=0) / size**2
    # Each line takes a level and a slope; one that cannot take its slope leaves more.
    freedom = np.maximum(runs - 2 + (flat & (runs > 0)), 0)
    pooled = (left.sum() + NOISE**2) / (freedom.sum() + 1)
    noise = (left + NOISE_WEIGHT * pooled) / (freedom + NOISE_WEIGHT) * size**2
    worth = np.where(flat, 0.0, spread) / noise
    shared, between = 1.0, METRICS_DEVIATION**2
    slope, doubt = np.ones(len(runs)), np.full(len(runs), between)
    for _ in range(ROUNDS):
        # Expectation of each slope given the shared one, then the shared one and how far slopes differ.
        doubt = 1 / (worth + 1 / between)
        certain = np.where(
            worth > 0, 1 / (between + np.divide(1, worth, where=worth > 0, out=np.ones_like(worth))), 0.0
        )
        shared = float((certain @ alone + 1 / SLOPE_DEVIATION**2) / (certain.sum() + 1 / SLOPE_DEVIATION**2))
        slope = doubt * (worth * alone + shared / between)
        gap = ((slope - shared) ** 2 + doubt).sum() + METRICS_WEIGHT * METRICS_DEVIATION**2
        between = float(gap / (len(runs) + METRICS_WEIGHT))
    none = runs == 0
    return Lines(
        level=np.where(none, 0.0, level),
        slope=np.where(none, 1.0, slope * ratio),
        centre=np.where(none, 0.0, centre),
        noise=noise,
        doubt=doubt * ratio**2,
        runs=runs,
    )


def _last_of_each_run(observations: Observations) -> Observations:
    """Checkpoints of a run are not runs of their own: its longest row stands for it."""
    tokens = np.nan_to_num(observations.points.tokens, nan=0.0)
    last: dict[str, int] = {}
    for place, run in enumerate(observations.runs):
        if run not in last or tokens[place] > tokens[last[run]]:
            last[run] = place
    return observations.rows(sorted(last.values()))
