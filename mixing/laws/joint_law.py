"""What joint laws in mixture, parameters and tokens share: a sum of positive terms, fitted in log-loss with priors."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from mixing.laws.joint_fit import Equation, Fit, Prior, maximum_a_posteriori, refined
from mixing.laws.joint_terms import Batch, Constant, Inputs
from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points


@dataclass(frozen=True, kw_only=True, eq=False)
class JointLaw(Law):
    """A law in (w, N, D). theta: [k, p] inner values.

    centre: log N and log D, and level: [k] log-loss, of the units that the constants are told in.
    sigma: [k], robust deviation in log-loss of the rows that were fitted.
    """

    uses_scale: ClassVar[bool] = True
    scalars: ClassVar[tuple[Constant, ...]]
    blocks: ClassVar[tuple[Constant, ...]] = ()

    domains: tuple[str, ...]
    metrics: tuple[str, ...]
    theta: Floats
    centre: tuple[float, float]
    level: Floats
    sigma: Floats

    @staticmethod
    @abstractmethod
    def terms(batch: Batch) -> None:
        """Add the law's terms to the batch."""

    @classmethod
    def fit(cls, observations: Observations, *, seed: int = 0) -> Self:
        """Fit log-loss of each metric on the rows with N, D and that metric; at least two scales are needed.

        Raises MixingError where rows lack N and D, stand at one scale, or a metric is not above 0.
        """
        used = _usable(cls.name, observations)
        points = used.points
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(used.values.T)
        centre = (float(np.log(points.parameters).mean()), float(np.log(points.tokens).mean()))
        inputs = _inputs(points, centre)
        level = np.nanmedian(logs, axis=1)
        prior = cls._prior(len(level), len(points.domains))

        fit = maximum_a_posteriori(cls._equation(inputs), logs - level[:, None], prior, seed=seed)
        return cls(
            domains=points.domains,
            metrics=used.metrics,
            theta=fit.theta,
            centre=centre,
            level=level,
            sigma=fit.sigma,
        )

    def mean(self, points: Points) -> Floats:
        return self._batch(points).value.T * np.exp(self.level)

    def gradient(self, points: Points) -> Floats:
        return self._batch(points).by_weight.transpose(1, 0, 2) * np.exp(self.level)[:, None]

    def held_out(
        self, observations: Observations, folds: npt.NDArray[np.int64], *, seed: int = 0
    ) -> tuple[Floats, Floats | None]:
        """All folds at once, from where the law stands: a fold's rows are not seen, and no start is drawn again.

        Rows without N and D get NaN.
        """
        known = np.flatnonzero(_scaled_rows(observations.points))
        used, names = observations.rows(known), np.unique(folds)
        inputs = _inputs(used.points, self.centre)
        outside = folds[known] != names[:, None]
        logs = np.log(used.values.T) - self.level[:, None]
        seen = np.where(outside[:, None, :], logs[None], np.nan).reshape(-1, len(known))
        prior, start = (
            self._prior(len(seen), len(self.domains)),
            Fit(theta=np.tile(self.theta, (len(names), 1)), sigma=np.tile(self.sigma, len(names))),
        )
        theta = refined(self._equation(inputs), seen, prior, start)
        told = self._equation(inputs)(theta)[0].reshape(len(names), len(self.metrics), -1)
        means = np.full(observations.values.shape, np.nan)
        for place, inside in enumerate(~outside):
            means[known[inside]] = (told[place] * np.exp(self.level)[:, None]).T[inside]
        return means, None

    @property
    def convex(self) -> npt.NDArray[np.bool_]:
        return np.ones(len(self.metrics), np.bool_)

    def told(self) -> dict[str, Any]:
        """Constants by metric, as the equation names them, of N, D and the metric in the units told with them."""
        constants: dict[str, Any] = {}
        for row, metric in enumerate(self.metrics):
            held: dict[str, Any] = {"unit": float(np.exp(self.level[row]))}
            held |= {
                constant.name: _outer(constant.kind, self.theta[row, place])
                for place, constant in enumerate(self.scalars)
            }
            for number, block in enumerate(self.blocks):
                start = len(self.scalars) + number * len(self.domains)
                inner = self.theta[row, start : start + len(self.domains)]
                held[block.name] = {
                    name: _outer(block.kind, value) for name, value in zip(self.domains, inner, strict=True)
                }
            constants[metric] = held
        units = {"parameters": float(np.exp(self.centre[0])), "tokens": float(np.exp(self.centre[1]))}
        return {"equation": self.equation, "source": self.source, "units": units, "constants": constants}

    def _batch(self, points: Points) -> Batch:
        if not _scaled_rows(points).all():
            raise MixingError(
                f"{self.name}: a point tells no parameters or no tokens; give both, since this law depends on them"
            )
        batch = Batch(self.scalars, self.blocks, self.theta, _inputs(points, self.centre))
        self.terms(batch)
        return batch

    @classmethod
    def _equation(cls, inputs: Inputs) -> Equation:
        def equation(theta: Floats) -> tuple[Floats, Floats]:
            batch = Batch(cls.scalars, cls.blocks, theta, inputs)
            cls.terms(batch)
            return batch.value, batch.jacobian

        return equation

    @classmethod
    def _prior(cls, metrics: int, domains: int) -> Prior:
        each = [*cls.scalars, *(block for block in cls.blocks for _ in range(domains))]
        mean = np.tile([constant.mean for constant in each], (metrics, 1))
        # Starts that differ between domains would depend on the order of domains.
        spread = [constant.spread for constant in cls.scalars] + [0.0] * (len(each) - len(cls.scalars))
        return Prior(mean=mean, deviation=np.array([constant.deviation for constant in each]), spread=np.array(spread))


def _usable(name: str, observations: Observations) -> Observations:
    """The rows with a scale and something measured, all metrics above 0, at two scales or more."""
    points = observations.points
    known = _scaled_rows(points)
    if not known.any():
        raise MixingError(f"{name}: no row tells parameters and tokens; give both, or fit a law of one scale")
    used = observations.rows(known & np.isfinite(observations.values).any(axis=1))
    for column, metric in enumerate(observations.metrics):
        values = used.values[:, column]
        if not np.isfinite(values).any():
            raise MixingError(f"{name}: {metric} was measured on no row that tells its scale; leave that metric out")
        if (values <= 0).any():
            raise MixingError(f"{name}: {metric} has the value {np.nanmin(values):g}; joint laws take losses above 0")
    scales = np.unique(np.stack([used.points.parameters, used.points.tokens]), axis=1)
    if scales.shape[1] < 2:
        raise MixingError(
            f"{name}: all rows are of one scale ({scales[0, 0]:g} parameters, {scales[1, 0]:g} tokens); "
            "add runs of another size or length, or fit a law of one scale such as shared_power"
        )
    return used


def _scaled_rows(points: Points) -> npt.NDArray[np.bool_]:
    known = np.isfinite(points.parameters) & np.isfinite(points.tokens)
    return np.asarray(known & (points.parameters > 0) & (points.tokens > 0))


def _inputs(points: Points, centre: tuple[float, float]) -> Inputs:
    return Inputs(points.weights, np.log(points.parameters) - centre[0], np.log(points.tokens) - centre[1], points)


def _outer(kind: str, inner: float) -> float:
    """The number that an equation names, of its inner value."""
    if kind == "exp":
        return float(np.exp(inner))
    return float(1 / (1 + np.exp(-inner))) if kind == "unit" else float(inner)
