"""Robust MAP fits of many small nonlinear regressions at once: metrics x folds x starts as one stack of arrays.

For each problem: minimise sum_n rho((f_n(theta) - y_n) / (sigma h_n)) + 1/2 sum_p (theta_p - mean_p)^2 / variance_g(p),
rho being Huber's loss, by Levenberg-Marquardt with analytic Jacobians. Between rounds of steps, sigma, the prior
variances of the groups g and the heteroscedasticity h_n = exp(slope (f_n - mean f)) are set to what the data say (the
evidence framework, MacKay 1992, "Bayesian interpolation": each group counts the parameters that the data determine), so
that the prior's strength needs no grid and no inner cross-validation. Nothing is random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mixing.observations.points import Floats

Bools = npt.NDArray[np.bool_]
Curve = Callable[[Floats], tuple[Floats, Floats]]
"""theta [B, p] -> values [B, n] and Jacobian [B, n, p] at the rows of the design."""

FIXED = 1e12
"""Counts behind a prior variance that the data shall not change."""

HUBER = 1.0
"""Residuals beyond this many sigmas count linearly. Chosen on RegMix's training rows (n of 512 to fit, the others to
judge): mean absolute error of shared_power at n=256 with 1, 1.5, 3 and without: .080, .081, .083, .085."""

HUBER_VARIANCE = 0.516
"""Variance of a standard normal number that is cut at HUBER (Huber 1964, proposal 2)."""

NOISE, NOISE_COUNTS = 0.05, 1.0
"""What sigma is held to be, in deviations of the metric, and how many rows that is worth."""

EARLY_ROUNDS, LATE_ROUNDS, STEPS = 3, 10, 6
"""Rounds before the best start is kept, after it, and steps a round; 20 rounds change RegMix's errors by under 1%."""

BLOCK = 1 << 17
"""Numbers in one stack of Jacobians (1 MB), so that it stays in the processor's cache."""


@dataclass(frozen=True, kw_only=True)
class Prior:
    """Gaussian priors of p parameters in groups that share a variance.

    mean: [p]. group: int [p]. variance: [groups], in units of standardised targets or of logarithms.
    counts: [groups], how many observations the variance is worth: what the data say weighs against it; FIXED keeps it.
    """

    mean: Floats
    group: npt.NDArray[np.int64]
    variance: Floats
    counts: Floats


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """theta [B, p], its posterior covariance [B, p, p] (Laplace), noise [B] (sigma) and log evidence [B]."""

    theta: Floats
    covariance: Floats
    noise: Floats
    evidence: Floats


def estimate(curve: Curve, targets: Floats, used: Bools, starts: Floats, prior: Prior) -> Estimates:
    """The best of the starts for each problem, by evidence.

    targets: [B, n], about standardised (mean 0, deviation 1). used: [B, n], rows of a problem; others are ignored.
    starts: [B, S, p], or [S, p] for all problems. curve: at the n rows of the design.
    """
    problems, rows = targets.shape
    starts = np.broadcast_to(starts, (problems, *starts.shape[-2:]))
    block = max(1, BLOCK // max(1, rows * starts.shape[2] * starts.shape[1]))
    parts = [
        _block(curve, targets[low : low + block], used[low : low + block], starts[low : low + block], prior)
        for low in range(0, problems, block)
    ]
    return Estimates(
        theta=np.concatenate([part.theta for part in parts]),
        covariance=np.concatenate([part.covariance for part in parts]),
        noise=np.concatenate([part.noise for part in parts]),
        evidence=np.concatenate([part.evidence for part in parts]),
    )


def _block(curve: Curve, targets: Floats, used: Bools, starts: Floats, prior: Prior) -> Estimates:
    problems, count, size = starts.shape
    every = np.repeat(np.arange(problems), count)
    fit = _Fit(curve, targets[every], used[every], starts.reshape(-1, size), prior)
    if count > 1:
        fit.rounds(EARLY_ROUNDS)
        # A nan (a start that went astray) is never the best; equal starts go by their order.
        evidence = np.nan_to_num(fit.evidence.reshape(problems, count), nan=-np.inf)
        fit.keep(np.arange(problems) * count + evidence.argmax(axis=1))
    fit.rounds(LATE_ROUNDS if count > 1 else EARLY_ROUNDS + LATE_ROUNDS)
    return Estimates(theta=fit.theta, covariance=fit.covariance, noise=fit.noise, evidence=fit.evidence)


class _Fit:
    """A stack of problems on their way: theta, and what goes between rounds."""

    def __init__(self, curve: Curve, targets: Floats, used: Bools, theta: Floats, prior: Prior) -> None:
        self.curve, self.prior = curve, prior
        self.targets, self.used, self.theta = targets, used.astype(np.float64), theta.copy()
        problems, size = theta.shape
        self.precision: Floats = np.broadcast_to(1 / prior.variance[prior.group], (problems, size))
        self.noise = np.full(problems, 0.1)
        self.spread = np.ones_like(targets)
        self.damping = np.full(problems, 1e-2)
        self.evidence = np.zeros(problems)
        self.covariance: Floats = np.zeros((problems, size, size))

    def keep(self, chosen: npt.NDArray[np.int64]) -> None:
        """Go on with these of the stack."""
        for name in ("targets", "used", "theta", "precision", "noise", "spread", "damping", "evidence", "covariance"):
            setattr(self, name, getattr(self, name)[chosen])

    def rounds(self, count: int) -> None:
        for _ in range(count):
            residual, jacobian = self._descend()
            self._learn(residual, jacobian)

    def _loss(self, residual: Floats, theta: Floats) -> Floats:
        size = np.abs(residual) / (self.noise[:, None] * self.spread)
        huber = np.where(size <= HUBER, 0.5 * size**2, HUBER * (size - 0.5 * HUBER))
        pull = 0.5 * (self.precision * (theta - self.prior.mean) ** 2).sum(axis=1)
        return np.asarray((huber * self.used).sum(axis=1) + pull)

    def _row_weights(self, residual: Floats) -> Floats:
        """[B, n]: Huber's weight over the variance of each row."""
        scale = self.noise[:, None] * self.spread
        inside = np.minimum(1.0, HUBER * scale / np.maximum(np.abs(residual), 1e-300))
        return np.asarray(inside * self.used / scale**2)

    def _descend(self) -> tuple[Floats, Floats]:
        """STEPS damped Gauss-Newton steps; a step that does not lower the loss is taken back and damped more."""
        values, jacobian = self.curve(self.theta)
        residual = values - self.targets
        loss = self._loss(residual, self.theta)
        for _ in range(STEPS):
            weighted, hessian = self._hessian(residual, jacobian)
            slope = np.matmul((weighted * residual)[:, None, :], jacobian)[:, 0]
            slope += self.precision * (self.theta - self.prior.mean)
            diagonal = np.einsum("bpp->bp", hessian)
            diagonal *= 1 + self.damping[:, None]
            # Exponents and logarithms: two units are far, and a longer step only overflows.
            step = np.clip(np.linalg.solve(hessian, -slope[:, :, None])[:, :, 0], -2, 2)
            trial = self.theta + step
            values, trial_jacobian = self.curve(trial)
            trial_residual = values - self.targets
            trial_loss = self._loss(trial_residual, trial)
            better = trial_loss <= loss
            self.theta[better], loss[better] = trial[better], trial_loss[better]
            residual[better], jacobian[better] = trial_residual[better], trial_jacobian[better]
            self.damping = np.where(better, np.maximum(self.damping * 0.2, 1e-9), np.minimum(self.damping * 8, 1e8))
        return residual, jacobian

    def _hessian(self, residual: Floats, jacobian: Floats) -> tuple[Floats, Floats]:
        weighted = self._row_weights(residual)
        hessian = np.matmul((jacobian * weighted[:, :, None]).transpose(0, 2, 1), jacobian)
        np.einsum("bpp->bp", hessian)[...] += self.precision
        return weighted, hessian

    def _learn(self, residual: Floats, jacobian: Floats) -> None:
        """Set noise, its growth with the loss, and the groups' variances; keep covariance and evidence."""
        _, hessian = self._hessian(residual, jacobian)
        self.covariance = np.asarray(np.linalg.inv(hessian), np.float64)
        rows = np.maximum(self.used.sum(axis=1), 1)
        determined = np.clip(1 - self.precision * np.einsum("bpp->bp", self.covariance), 1e-9, 1)
        self.evidence = (
            -self._loss(residual, self.theta)
            - rows * np.log(self.noise)
            - (np.log(self.spread) * self.used).sum(axis=1)
            + 0.5 * np.log(self.precision).sum(axis=1)
            - 0.5 * np.linalg.slogdet(hessian)[1]
        )
        self.spread = self._spread(residual, rows)
        relative = residual / self.spread
        bound = HUBER * self.noise[:, None]
        # At least .15 of the rows are taken as free: with more parameters than rows sigma would go to zero.
        free = np.maximum(rows - determined.sum(axis=1), 0.15 * rows)
        cut = np.clip(relative, -bound, bound)
        squares = (cut**2 * self.used).sum(axis=1) / HUBER_VARIANCE
        self.noise = np.sqrt((squares + NOISE_COUNTS * NOISE**2) / (free + NOISE_COUNTS))
        member = np.eye(len(self.prior.variance))[self.prior.group]
        counts, moved = self.prior.counts, (self.theta - self.prior.mean) ** 2 @ member
        variance = (moved + counts * self.prior.variance) / (determined @ member + counts)
        self.precision = (1 / variance)[:, self.prior.group]

    def _spread(self, residual: Floats, rows: Floats) -> Floats:
        """[B, n]: exp(slope (f - mean f)), the slope from log |residual| and worth ten rows of no growth.

        Noise that depends on the mixture: marin-community/marin#2345 has .0016 at the natural mixture and .041 at one
        domain alone; on RegMix the residuals of the worst fifth are 5 times those of the best.
        """
        fitted = (residual + self.targets) * self.used
        centred = (fitted - (fitted.sum(axis=1) / rows)[:, None]) * self.used
        size = np.log(np.abs(residual) + 0.1 * self.noise[:, None] * self.spread)
        slope = (centred * size).sum(axis=1) / ((centred**2).sum(axis=1) + 10)
        return np.asarray(np.exp(np.clip(slope, -0.7, 0.7)[:, None] * np.clip(centred, -3, 3)))
