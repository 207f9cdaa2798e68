"""Exponential law (Ye et al.), with a prior and, for comparison, as it was published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from mixing.laws.law import Law
from mixing.laws.robust import FIXED, Prior
from mixing.laws.robust_law import RobustLaw, by_domain, measured
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, Points

C, K, T = range(3)
"""Columns of theta: c, log k; from T on t_j."""

FARTHEST = 50.0
"""Exponents are cut here, so that a start that runs away stays a number."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Exponential(RobustLaw):
    """L = c + k exp(sum_j t_j w_j), k > 0: convex in w, being an exponential of a linear function.

    Differs from the published fit: t_j have a common Gaussian prior, whose width comes from the data; c may be below 0.
    """

    name: ClassVar[str] = "exponential"
    equation: ClassVar[str] = "L = c + k exp(sum_j t_j w_j)"
    source: ClassVar[str] = "Ye et al. 2024 (Data Mixing Laws), arXiv:2403.16952, eq. M4; MAP"
    convex_equation: ClassVar[bool] = True

    @classmethod
    def prior(cls, domains: int) -> Prior:
        # Wide: a domain's own t is -10 to -200 on RegMix, others near 0. Chosen on RegMix's training rows.
        return Prior(
            mean=np.r_[-1.5, 1, np.zeros(domains)],
            group=np.r_[C, K, np.full(domains, T)],
            variance=np.array([1, 10, 300]),
            counts=np.array([FIXED, FIXED, 30]),
        )

    @classmethod
    def starts(cls, prior: Prior, domains: int) -> Floats:
        return prior.mean[None]

    @classmethod
    def curve(cls, theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        power = _power(theta, weights)
        jacobian = np.empty((*power.shape, theta.shape[1]))
        jacobian[..., C], jacobian[..., K] = 1, power
        jacobian[..., T:] = power[:, :, None] * weights
        return theta[:, [C]] + power, jacobian

    @classmethod
    def slope(cls, theta: Floats, weights: Floats) -> Floats:
        return _power(theta, weights)[:, :, None] * theta[:, None, T:]

    def told(self) -> dict[str, Any]:
        """c and k in the metric's units, and t by domain, of each metric."""
        return {
            metric: {
                "c": float(self.level[row] + self.scale[row] * theta[C]),
                "k": float(self.scale[row] * np.exp(theta[K])),
                "t": by_domain(self.domains, theta[T:]),
                "noise": float(self.noise[row]),
            }
            for row, (metric, theta) in enumerate(zip(self.metrics, self.theta, strict=True))
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class ExponentialPublished(Exponential):
    """The same equation fitted as Ye et al. do: no prior, c > 0, Huber's loss, the best of several random starts.

    A baseline: with fewer runs than about twice the domains it blows up. Differs from their code: Levenberg-Marquardt
    with analytic Jacobians from STARTS starts instead of L-BFGS from 6,000.
    """

    name: ClassVar[str] = "exponential_published"
    source: ClassVar[str] = "Ye et al. 2024 (Data Mixing Laws), arXiv:2403.16952, eq. M4, as in yegcjs/mixinglaws"

    HUBER_LOSS: ClassVar[float] = 0.02
    """Within the .01 to .05 of their notebooks, in units of the loss."""
    STARTS: ClassVar[int] = 6

    @classmethod
    def fit(cls, observations: Observations, *, seed: int = 0) -> Self:
        used = measured(observations)
        columns = zip(used, observations.values.T, strict=True)
        thetas = [cls._descended(observations.weights[rows], values[rows], seed) for rows, values in columns]
        count, size = len(used), 2 + len(observations.domains)
        return cls(
            domains=observations.domains,
            metrics=observations.metrics,
            level=np.zeros(count),
            scale=np.ones(count),
            theta=np.array(thetas),
            covariance=np.zeros((count, size, size)),
            noise=np.full(count, np.nan),
        )

    @classmethod
    def _descended(cls, weights: Floats, values: Floats, seed: int) -> Floats:
        """theta of one metric, in its own units."""
        from scipy.optimize import least_squares

        def residual(free: Floats) -> Floats:
            return np.asarray(_curve_of_log(free, weights)[0] - values)

        def jacobian(free: Floats) -> Floats:
            return _curve_of_log(free, weights)[1]

        generator = np.random.default_rng(seed)
        least = max(float(values.min()), 1e-6)
        fits = []
        for _ in range(cls.STARTS):
            start = np.r_[np.log(least * generator.uniform(0.3, 0.95)), 0, generator.normal(0, 0.5, weights.shape[1])]
            fits.append(
                least_squares(
                    residual, start, jacobian, loss="huber", f_scale=cls.HUBER_LOSS, max_nfev=300, x_scale="jac"
                )
            )
        best = min(fits, key=lambda fit: float(fit.cost)).x
        return np.asarray(np.r_[np.exp(np.clip(best[:1], -FARTHEST, FARTHEST)), best[1:]])

    def deviation(self, points: Points) -> Floats | None:
        """None: the published fit tells no uncertainty."""
        return None

    def held_out(
        self, observations: Observations, folds: npt.NDArray[np.int64], *, seed: int = 0
    ) -> tuple[Floats, Floats | None]:
        """A fit a fold, as any law does."""
        return Law.held_out(self, observations, folds, seed=seed)


def _power(theta: Floats, weights: Floats) -> Floats:
    return np.asarray(np.exp(np.clip(theta[:, [K]] + theta[:, T:] @ weights.T, -FARTHEST, FARTHEST)))


def _curve_of_log(free: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Values and Jacobian of the curve with log c in place of c, as the published code has it."""
    c = np.exp(np.clip(free[C], -FARTHEST, FARTHEST))
    values, jacobian = Exponential.curve(np.r_[c, free[K:]][None], weights)
    jacobian[0, :, C] = c
    return np.asarray(values[0]), np.asarray(jacobian[0])
