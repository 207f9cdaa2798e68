"""Maximum a posteriori of positive equations in log-loss: Levenberg-Marquardt with Huber's loss, many fits at once.

An equation tells, for a batch of b parameter vectors, its value and its Jacobian at n points; metrics and starts are
rows of that batch, so that a fit of eight metrics from three starts is a handful of stacked matrix products.

Source: loss in log space with Huber's delta 1e-3 .. .02 is the habit of scaling laws (Hoffmann 2022, arXiv:2203.15556;
Shukor 2025, arXiv:2507.09404); the delta of .003 is the one that the published baselines here were measured with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mixing.observations.points import Floats

DELTA = 0.003
"""Residuals of log-loss beyond this count by their size, not its square; more where the data are noisier."""

SIGMA = 0.004
"""Deviation of log-loss that a first fit assumes; what is left over then says what it is."""

DELTA_IN_SIGMAS = DELTA / SIGMA
STARTS, SCREENED, STEPS = 6, 40, 200
"""Starts, steps that each may take before the best is chosen, and steps that the best may take."""

Equation = Callable[[Floats], tuple[Floats, Floats]]
"""theta [b, p] -> values [b, n] above 0, and their derivatives [b, n, p]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """Normal, independent: mean [k, p] (a row a metric), deviation [p]; spread [p]: how far starts differ."""

    mean: Floats
    deviation: Floats
    spread: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """theta: [k, p]. sigma: [k], robust deviation of what is left over, in log-loss."""

    theta: Floats
    sigma: Floats


def refined(equation: Equation, logs: Floats, prior: Prior, start: Fit) -> Floats:
    """theta [b, p] of rows of logs [b, n] from one start each, its sigma kept: for fits that differ by a few rows."""
    return _descend(equation, start.theta, logs, prior, start.sigma, steps=SCREENED)[0]


def maximum_a_posteriori(equation: Equation, logs: Floats, prior: Prior, *, seed: int, starts: int = STARTS) -> Fit:
    """The best of several starts for each row of logs ([k, n], NaN where not measured).

    The first start is the prior's mean, the others lie about it. After them the deviation of the data is read off the
    residuals and the best is fitted on with it, so that data of any noise meet the prior with their right weight.
    """
    metrics, size = prior.mean.shape
    noise = np.random.default_rng(seed).normal(size=(starts, size)) * prior.spread
    noise[0] = 0.0
    first = (prior.mean[:, None, :] + noise).reshape(-1, size)
    wide = Prior(mean=np.repeat(prior.mean, starts, axis=0), deviation=prior.deviation, spread=prior.spread)
    found, costs = _descend(
        equation, first, np.repeat(logs, starts, axis=0), wide, np.full(len(first), SIGMA), steps=SCREENED
    )
    best = np.argmin(costs.reshape(metrics, starts), axis=1)
    theta = found.reshape(metrics, starts, size)[np.arange(metrics), best]
    sigma = _left_over(equation, theta, logs)
    theta, _ = _descend(equation, theta, logs, prior, sigma, steps=STEPS)
    return Fit(theta=theta, sigma=_left_over(equation, theta, logs))


def _left_over(equation: Equation, theta: Floats, logs: Floats) -> Floats:
    """[k] 1.48 times the median absolute residual, at least a tenth of SIGMA: a fit through few rows leaves nothing."""
    residuals = np.abs(np.log(equation(theta)[0]) - logs)
    typical = np.array([np.median(row[np.isfinite(row)]) if np.isfinite(row).any() else 0.0 for row in residuals])
    return np.asarray(np.maximum(1.4826 * typical, 0.1 * SIGMA))


def _descend(
    equation: Equation, theta: Floats, logs: Floats, prior: Prior, sigma: Floats, *, steps: int
) -> tuple[Floats, Floats]:
    """theta [b, p] at a minimum near where it was, and the cost [b] there. Rows stop on their own."""
    theta, precision = theta.copy(), 1 / prior.deviation**2
    delta = np.maximum(DELTA, DELTA_IN_SIGMAS * sigma)[:, None]
    share = np.where(np.isfinite(logs), 1.0, 0.0) / sigma[:, None] ** 2
    target = np.where(np.isfinite(logs), logs, 0.0)

    def state(rows: npt.NDArray[np.intp], at: Floats) -> tuple[Floats, Floats, Floats]:
        """Cost [b], gradient [b, p] and the Gauss-Newton matrix [b, p, p]."""
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            value, jacobian = equation(at)
            left = np.log(value) - target[rows]
            size, edge = np.abs(left), delta[rows]
            huber = np.where(size <= edge, 0.5 * left**2, edge * (size - 0.5 * edge))
            off = at - prior.mean[rows]
            cost = (share[rows] * huber).sum(axis=1) + 0.5 * (precision * off**2).sum(axis=1)
            weight = share[rows] * np.where(size <= edge, 1.0, edge / np.maximum(size, 1e-300))
            slope = jacobian / value[..., None]
            scaled = slope * weight[..., None]
            pull = np.matmul(scaled.transpose(0, 2, 1), left[..., None])[..., 0] + precision * off
            bend = np.matmul(scaled.transpose(0, 2, 1), slope)
        bend[:, np.arange(len(precision)), np.arange(len(precision))] += precision
        return np.where(np.isfinite(cost), cost, np.inf), pull, bend

    active = np.arange(len(theta))
    cost, pull, bend = state(active, theta)
    damping, calm = np.full(len(theta), 1e-2), np.zeros(len(theta), np.int64)
    for _ in range(steps):
        held = bend[active] * (1 + damping[active, None, None] * np.eye(len(precision)))
        step = np.clip(-np.linalg.solve(held, pull[active][..., None])[..., 0], -2.0, 2.0)
        tried, new_pull, new_bend = state(active, theta[active] + step)
        better = (tried < cost[active]) & np.isfinite(new_bend).all(axis=(1, 2))
        gain = np.where(better, cost[active] - np.where(better, tried, 0.0), np.inf)
        chosen = active[better]
        theta[chosen] += step[better]
        pull[chosen], bend[chosen] = new_pull[better], new_bend[better]
        damping[active] = np.where(better, damping[active] * 0.3, damping[active] * 4).clip(1e-9, None)
        calm[active] = np.where(gain < 1e-6 * (1 + np.abs(cost[active])), calm[active] + 1, 0)
        cost[chosen] = tried[better]
        active = active[(calm[active] < 3) & (damping[active] < 1e7)]
        if not len(active):
            break
    return theta, cost
