"""A fitted average of laws: predictions with intervals, and how it came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from mixing.fitting.intervals import ErrorModel
from mixing.fitting.support import Support
from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a law showed on held-out runs of a metric, and its share in the average.

    error: root mean square of the held-out errors, in the metric's unit; NaN where the law could not be held out.
    explained: share of the metric's variance that held-out predictions explain. why: where a law has no share anywhere.
    """

    law: str
    metric: str
    error: float
    explained: float
    share: float
    why: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prediction:
    """Of n points: a column a metric, a row a point.

    low, high: the interval that holds a new measurement with probability `level`. support: [n], whether the point lies
    within what was observed. warnings: a line for each way in which points do not.
    """

    points: Points
    level: float
    mean: pa.Table
    low: pa.Table
    high: pa.Table
    support: npt.NDArray[np.bool_]
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted(Law):
    """An average of laws by cross-validation, itself a law.

    laws, shares: [l], [l, v], of the metrics that vary. levels: [k], what constant metrics are. errors: how large the
    error of the average is. choice: a row a law and metric. why: what was chosen and on which figures, a sentence.
    warnings: what was left out. fold_count: 1 where nothing could be held out: intervals are then without end.
    """

    name: ClassVar[str] = "average"
    equation: ClassVar[str] = "L = sum_l a_l L_l, a_l >= 0, sum_l a_l = 1"
    source: ClassVar[str] = "stacking (Wolpert 1992; Breiman 1996) of the laws named in .choice"

    domains: tuple[str, ...]
    metrics: tuple[str, ...]
    observations: Observations
    seed: int
    level: float
    laws: tuple[Law, ...]
    shares: Floats
    levels: Floats
    varying: npt.NDArray[np.int64]
    errors: ErrorModel | None
    support: Support
    spread: Floats
    choice: tuple[Choice, ...]
    why: str
    warnings: tuple[str, ...]
    asked: str | tuple[str, ...]
    fold_count: int

    @classmethod
    def fit(cls, observations: Observations, *, seed: int = 0) -> Self:
        """As `mixing.fitting.fit` with the law it chooses by itself."""
        from mixing.fitting.average import fit

        found = fit(observations, seed=seed)
        assert isinstance(found, cls)
        return found

    def mean(self, points: Points) -> Floats:
        here = self._own(points)
        means = np.tile(self.levels, (len(points), 1))
        if len(self.varying):
            means[:, self.varying] = np.einsum("lnv,lv->nv", self._means(here), self.shares)
        return means

    def gradient(self, points: Points) -> Floats:
        here = self._own(points)
        slopes = np.zeros((len(points), len(self.metrics), len(here.domains)))
        for law, share in zip(self.laws, self.shares, strict=True):
            slopes[:, self.varying] += law.gradient(here) * share[:, None]
        return slopes[:, :, [here.domains.index(name) for name in points.domains]]

    @property
    def convex(self) -> npt.NDArray[np.bool_]:
        surely = np.ones(len(self.metrics), np.bool_)
        for law, share in zip(self.laws, self.shares, strict=True):
            surely[self.varying] &= law.convex | (share == 0)
        return surely

    def deviation(self, points: Points) -> Floats | None:
        """[n, k]: standard deviation of the error of a new measurement, from held-out errors; more off support.

        None where nothing could be held out.
        """
        if self.fold_count == 1:
            return None
        here = self._own(points)
        found = np.zeros((len(points), len(self.metrics)))
        if self.errors is not None:
            told = np.hypot(self.errors.deviation(self._signals(here)), self._off_support(here))
            found[:, self.varying] = told * self.support.stretch(here)[:, None]
        return found

    def predict(
        self, at: Points | pa.Table | Mapping[str, float] | Sequence[Mapping[str, float]] | Floats,
        *, level: float | None = None,
    ) -> Prediction:  # fmt: skip
        """Predictions at points, or at mixtures: a table with a column a domain, {domain: weight} or several (a domain
        that is left out has weight 0), or rows of weights in the order of `domains`.

        level: of the intervals, between 0 and 1; None is the level of the fit. Mixtures without a scale are taken at
        the largest scale that was observed. Raises MixingError where domains or sums are wrong.
        """
        import pyarrow as pa

        level = self.level if level is None else level
        if not 0 < level < 1:
            raise MixingError(f"level: {level} is no probability between 0 and 1; 0.9 is usual")
        points = points_of(at, self.observations.points)
        here = self._own(points)
        mean, half = self.mean(here), self._half_width(here, level)
        tables = [pa.table({name: array[:, k] for k, name in enumerate(self.metrics)})
                  for array in (mean, mean - half, mean + half)]  # fmt: skip
        return Prediction(
            points=points, level=level, mean=tables[0], low=tables[1], high=tables[2],
            support=self.support.inside(here), warnings=self.support.warnings(here),
        )  # fmt: skip

    def held_out(
        self, observations: Observations, folds: npt.NDArray[np.int64], *, seed: int = 0
    ) -> tuple[Floats, Floats | None]:
        """Of averages that are chosen and fitted anew without each fold: what choosing costs is in it."""
        from mixing.fitting.average import fit

        means, deviations = np.full(observations.values.shape, np.nan), np.full(observations.values.shape, np.nan)
        for fold in np.unique(folds):
            inside = folds == fold
            law = fit(observations.rows(~inside), law=self.asked, seed=seed)
            points = observations.points.rows(inside)
            columns = [observations.metrics.index(name) for name in law.metrics]
            means[np.ix_(inside, columns)] = law.mean(points)
            told = law.deviation(points)
            if told is not None:
                deviations[np.ix_(inside, columns)] = told
        return means, deviations

    def told(self) -> dict[str, Any]:
        """What was chosen and why, and what each law of the average learned."""
        return {
            "why": self.why,
            "warnings": list(self.warnings),
            "shares": {
                law.name: {self.metrics[k]: float(value) for k, value in zip(self.varying, share, strict=True)}
                for law, share in zip(self.laws, self.shares, strict=True)
            },
            "laws": {law.name: law.told() for law in self.laws},
        }

    def _own(self, points: Points) -> Points:
        return points.aligned(self.support.domains)

    def _means(self, here: Points) -> Floats:
        return np.stack([law.mean(here) for law in self.laws])

    def _signals(self, here: Points) -> Floats:
        return signals(
            self.shares, self._means(here), [law.deviation(here) for law in self.laws], self.support.distance(here)
        )

    def _off_support(self, here: Points) -> Floats:
        """[n, v]: an error that grows with the share of the mixture that no observation speaks of."""
        unknown = self.support.beyond(here).sum(axis=1) * (self.support.excess(here) > 0)
        return np.asarray(unknown[:, None] * self.spread)

    def _half_width(self, here: Points, level: float) -> Floats:
        half = np.zeros((len(here), len(self.metrics)))
        if self.fold_count == 1:
            half[:] = np.inf
        elif self.errors is not None:
            widths = self.errors.half_width(self._signals(here), level)
            half[:, self.varying] = (widths + self._off_support(here)) * self.support.stretch(here)[:, None]
        return half


def signals(shares: Floats, means: Floats, deviations: Sequence[Floats | None], distance: Floats) -> Floats:
    """[3, n, v]: variances that grow with what is not known: of the laws that have one, between laws, by distance.

    shares: [l, v]. means: [l, n, v]. distance: [n].
    """
    average = np.einsum("lnv,lv->nv", means, shares)
    between = np.einsum("lnv,lv->nv", (means - average) ** 2, shares)
    known = [found for found in deviations if found is not None]
    own = np.mean([found**2 for found in known], axis=0) if known else np.zeros_like(between)
    return np.stack([own, between, np.broadcast_to(distance[:, None] ** 2, between.shape)])


def points_of(at: Any, like: Points) -> Points:
    """Points of what a user may give, at the largest scale of `like`."""
    if isinstance(at, Points):
        return at
    if hasattr(at, "column_names"):
        lacking = [name for name in like.domains if name not in at.column_names]
        if lacking:
            raise MixingError(f"weights: no column {lacking[0]!r}; the domains are {', '.join(like.domains)}")
        rows = np.column_stack([at[name].to_numpy() for name in like.domains])
    elif isinstance(at, Mapping) or (isinstance(at, Sequence) and len(at) and isinstance(at[0], Mapping)):
        mixtures = [at] if isinstance(at, Mapping) else at
        unknown = sorted({name for mixture in mixtures for name in mixture} - set(like.domains))
        if unknown:
            raise MixingError(f"weights: unknown domain {unknown[0]!r}; the domains are {', '.join(like.domains)}")
        rows = np.array([[mixture.get(name, 0.0) for name in like.domains] for mixture in mixtures], np.float64)
    else:
        rows = np.atleast_2d(np.asarray(at, np.float64))
    largest = int(np.lexsort(np.nan_to_num([like.tokens, like.parameters]))[-1])
    return Points.of(
        like.domains, rows, parameters=like.parameters[largest], tokens=like.tokens[largest],
        unique_tokens=np.broadcast_to(like.unique_tokens[largest], (len(rows), len(like.domains))),
    )  # fmt: skip
