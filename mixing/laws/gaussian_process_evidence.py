"""The constants of a Gaussian process: maximum a posteriori of the evidence, by L-BFGS with analytic gradients.

All metrics share one kernel first, so that one factorisation serves them all; each metric's own search starts there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixing.laws.gaussian_process_warp import Heights
from mixing.laws.kernels import Features, Kernel
from mixing.observations.points import Floats

# Priors of the logarithms: middle, spread. Heights are in units of the standardised log-metric, lengths in units of the
# features (which span about 2). Compared on parts of RegMix's training table, 32 to 128 runs: middles within a factor
# 3 and spreads within a factor 2 move the mean absolute error by less than 4%.
LENGTH = (np.log(3.0), 1.0)
AMPLITUDE = (1.0, 1.5)
NOISE = (np.log(3e-3), 1.5)
SLOPE = (-3.0, 2.0)
DEPTH = (np.log(0.7), 0.7)
CONSTANT = 1.0
"""Prior variance of the process's constant."""

REACH = 4.0
"""Each constant is sought within so many spreads of its prior's middle: noise stays above 7e-6, which is the jitter
that duplicated rows need."""

TOLERANCE = 1e-6
ITERATIONS = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class Constants:
    """kernel; noise: variance of a measurement; depth: of the metric's floor (Heights.warp)."""

    kernel: Kernel
    noise: float
    depth: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """-log posterior of theta = log(lengths [p], amplitude, noise, slopes [q - 1], depths [k]), with its gradient."""

    features: Features
    metrics: tuple[Heights, ...]

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.features.curved.shape[1], self.features.straight.shape[1] - 1, len(self.metrics)

    @property
    def prior(self) -> tuple[Floats, Floats]:
        """Middles and spreads of theta."""
        lengths, slopes, metrics = self.sizes
        each = [LENGTH] * lengths + [AMPLITUDE, NOISE] + [SLOPE] * slopes + [DEPTH] * metrics
        middle, spread = np.array(each, np.float64).T
        return middle, spread

    def constants(self, theta: Floats, metric: int = 0) -> Constants:
        lengths, slopes, _ = self.sizes
        told = np.exp(theta)
        kernel = Kernel(
            lengths=told[:lengths],
            amplitude=float(told[lengths]),
            slopes=np.concatenate([[CONSTANT], told[lengths + 2 : lengths + 2 + slopes]]),
        )
        return Constants(
            kernel=kernel, noise=float(told[lengths + 1]), depth=float(told[lengths + 2 + slopes + metric])
        )

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        lengths, slopes, count = self.sizes
        rows = len(self.features)
        held = self.constants(theta)
        kernel, curved, straight = held.kernel, self.features.curved, self.features.straight
        told = [
            metric.standard(float(depth)) for metric, depth in zip(self.metrics, np.exp(theta[-count:]), strict=True)
        ]
        z = np.column_stack([one[0] for one in told])
        matern, slope = kernel.parts(self.features, self.features)
        covariance = kernel.amplitude * matern + (straight * kernel.slopes) @ straight.T
        inverse, log_determinant = inverted(covariance, held.noise)
        weights = inverse @ z
        # d(log evidence) = .5 sum_ij pull_ij dK_ij
        pull = weights @ weights.T - count * inverse
        slope *= pull
        slope *= kernel.amplitude * 5 / 3
        by_length = np.square(curved).T @ slope.sum(axis=1) - np.einsum("ij,ij->j", curved, slope @ curved)
        gradient = np.concatenate(
            [
                by_length / np.square(kernel.lengths),
                [0.5 * kernel.amplitude * np.vdot(pull, matern), 0.5 * held.noise * np.trace(pull)],
                0.5 * kernel.slopes[1:] * np.einsum("ij,ij->j", straight, pull @ straight)[1:],
                [-weights[:, k] @ one[2] - one[3] for k, one in enumerate(told)],
            ]
        )
        loss = 0.5 * np.vdot(z, weights) + 0.5 * count * log_determinant + sum(one[1] for one in told)
        middle, spread = self.prior
        off = (theta - middle) / spread
        # The shared constants count once a metric: so many metrics are as many draws of the prior.
        times = np.concatenate([np.full(lengths + 2 + slopes, float(count)), np.ones(count)])
        loss += 0.5 * times @ np.square(off) + 0.5 * rows * count * np.log(2 * np.pi)
        return float(loss), times * off / spread - gradient


def inverted(covariance: Floats, noise: float) -> tuple[Floats, float]:
    """(K + noise I)^-1 and log |K + noise I|. `covariance` is overwritten."""
    from scipy.linalg import lapack

    covariance[np.diag_indices(len(covariance))] += noise
    # LAPACK counts columns first, and the matrix is symmetric: its transpose is no copy.
    factor, failed = lapack.dpotrf(covariance.T, lower=1, clean=1, overwrite_a=1)
    assert not failed, "noise keeps the covariance positive definite"
    log_determinant = 2 * float(np.log(np.diagonal(factor)).sum())
    inverse, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
    assert not failed
    # dpotri leaves the upper half: of dpotrf's zeros.
    full = inverse + inverse.T
    full[np.diag_indices(len(full))] *= 0.5
    return full, log_determinant


def learned(features: Features, metrics: tuple[Heights, ...]) -> tuple[list[Constants], list[float]]:
    """Constants of each metric, and the log posterior density there (up to the priors' own constants)."""
    pooled = Evidence(features=features, metrics=metrics)
    start = found(pooled, pooled.prior[0])[0]
    if len(metrics) == 1:
        thetas, densities = [start], [-pooled(start)[0]]
        return [pooled.constants(theta) for theta in thetas], densities
    shared = len(start) - len(metrics)
    constants, densities = [], []
    for number, metric in enumerate(metrics):
        alone = Evidence(features=features, metrics=(metric,))
        theta, loss = found(alone, np.append(start[:shared], start[shared + number]))
        constants.append(alone.constants(theta))
        densities.append(-loss)
    return constants, densities


def found(evidence: Evidence, start: Floats) -> tuple[Floats, float]:
    """The maximum a posteriori that L-BFGS reaches from `start`, and its loss."""
    from scipy.optimize import minimize

    middle, spread = evidence.prior
    result = minimize(
        evidence,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack([middle - REACH * spread, middle + REACH * spread]),
        options={"ftol": TOLERANCE, "gtol": 1e-3, "maxiter": ITERATIONS, "maxcor": 20},
    )
    return np.asarray(result.x), float(result.fun)
