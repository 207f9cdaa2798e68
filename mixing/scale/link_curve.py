"""Curves from losses to a bounded or unbounded metric, monotone in each loss, fitted by robust least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mixing.observations.points import Floats

Shape = Literal["sigmoid", "power"]

SOFT = 1.5
"""Residuals beyond so many of their own deviations count by their size (soft L1)."""

RIDGE = 3e-3
"""Of coefficients against residuals: losses that always move together share alike."""

WALL = 10.0
"""How hard the top of a sigmoid is held below its bound."""

RATES, FLOORS = (0.3, 1.0, 2.0), (0.02, 0.5)


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """theta: low, height, offset, and a coefficient a loss. centre, scale: [p] that losses are counted in.

    covariance: of theta, from the residuals.
    """

    shape: Shape
    rising: bool
    theta: Floats
    centre: Floats
    scale: Floats
    covariance: Floats

    def at(self, losses: Floats) -> tuple[Floats, Floats, Floats]:
        """Values [n], their derivatives by theta [n, 3 + p] and by each loss [n, p], of losses [n, p]."""
        inputs = standard(losses, self.shape, self.centre, self.scale)
        value, jacobian, by_z = curve(self.theta, inputs, self.shape, self.rising)
        inner = 1 / losses if self.shape == "power" else np.ones_like(losses)
        return value, jacobian, by_z[:, None] * self.theta[3:] / self.scale * inner


def standard(losses: Floats, shape: Shape, centre: Floats, scale: Floats) -> Floats:
    return np.asarray(((np.log(losses) if shape == "power" else losses) - centre) / scale)


def curve(theta: Floats, inputs: Floats, shape: Shape, rising: bool) -> tuple[Floats, Floats, Floats]:
    """Values [n], Jacobian by low, height, offset and coefficients [n, 3 + p], derivative by z [n]."""
    low, height, offset = theta[:3]
    z = inputs @ theta[3:] - offset
    sign = -1.0 if rising else 1.0
    if shape == "sigmoid":
        part = 1 / (1 + np.exp(np.clip(-sign * z, -500, 500)))
        slope = sign * part * (1 - part)
    else:
        part = np.exp(np.clip(sign * z, -500, 500))
        slope = sign * part
    by_z = height * slope
    jacobian = np.column_stack([np.ones_like(z), part, -by_z, by_z[:, None] * inputs])
    return low + height * part, jacobian, by_z


def fit_curve(seen: Floats, losses: Floats, shape: Shape, *, rising: bool, bounds: tuple[float, float]) -> Curve:
    """Robust least squares from a few starts, coefficients at least 0. seen [n], losses [n, p]."""
    inputs = np.log(losses) if shape == "power" else losses
    centre, scale = inputs.mean(axis=0), inputs.std(axis=0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    problem = _Problem(seen=seen, inputs=(inputs - centre) / scale, shape=shape, rising=rising, bounds=bounds)
    tried = [problem.solved(rate, floor) for rate in RATES for floor in FLOORS]
    theta = min(tried, key=problem.size)
    return Curve(
        shape=shape, rising=rising, theta=theta, centre=centre, scale=scale, covariance=problem.covariance(theta)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Problem:
    """Residuals in deviations of the metric; behind the n rows' a ridge a loss, and the wall."""

    seen: Floats
    inputs: Floats
    shape: Shape
    rising: bool
    bounds: tuple[float, float]

    def residuals(self, theta: Floats) -> Floats:
        told = (curve(theta, self.inputs, self.shape, self.rising)[0] - self.seen) / self._width
        over = max(theta[0] + theta[1] - self.bounds[1], 0.0) if self.shape == "sigmoid" else 0.0
        return np.concatenate([told, RIDGE * len(self.seen) ** 0.5 * theta[3:], [WALL * over / self._width]])

    def jacobian(self, theta: Floats) -> Floats:
        rows = curve(theta, self.inputs, self.shape, self.rising)[1] / self._width
        count = self.inputs.shape[1]
        ridge = np.hstack([np.zeros((count, 3)), np.eye(count) * RIDGE * len(self.seen) ** 0.5])
        wall = np.zeros((1, count + 3))
        if self.shape == "sigmoid" and theta[0] + theta[1] > self.bounds[1]:
            wall[0, :2] = WALL / self._width
        return np.vstack([rows, ridge, wall])

    def solved(self, rate: float, floor: float) -> Floats:
        """theta from one start: once with a guess of the size of residuals, then with what they are."""
        from scipy.optimize import least_squares

        count = self.inputs.shape[1]
        low, high = self.bounds if self.shape == "sigmoid" else (-np.inf, np.inf)
        least = np.concatenate([[low, 1e-9 * self._width, -np.inf], np.zeros(count)])
        most = np.concatenate([[high, np.inf, np.inf], np.full(count, np.inf)])
        theta = np.concatenate([_start(self.seen, self.shape, self.bounds, floor), np.full(count, rate / count)])
        reach = 0.3
        for _ in range(2):
            found: Any = least_squares(
                self.residuals, np.clip(theta, least + 1e-9, most), jac=self.jacobian, bounds=(least, most),
                loss="soft_l1", f_scale=reach, x_scale="jac", max_nfev=60,
            )  # fmt: skip
            theta = np.asarray(found.x)
            left = np.abs(self.residuals(theta)[: len(self.seen)])
            reach = SOFT * max(1.4826 * float(np.median(left)), 1e-3)
        return theta

    def size(self, theta: Floats) -> float:
        return float(np.abs(self.residuals(theta)[: len(self.seen)]).sum())

    def covariance(self, theta: Floats) -> Floats:
        rows, count = self.jacobian(theta), len(self.seen)
        noise = float((self.residuals(theta)[:count] ** 2).sum()) / max(count - len(theta), 1)
        return np.asarray(np.linalg.pinv(rows.T @ rows, rcond=1e-8, hermitian=True) * noise)

    @property
    def _width(self) -> float:
        return float(np.std(self.seen))


def _start(seen: Floats, shape: Shape, bounds: tuple[float, float], floor: float) -> Floats:
    """Low, height and offset: from a little below the smallest value to a little above the largest."""
    reach = float(np.ptp(seen))
    low = float(seen.min()) - floor * reach
    if shape == "sigmoid":
        low = max(low, bounds[0])
        return np.array([low, min(float(seen.max()) + floor * reach, bounds[1]) - low, 0.0])
    return np.array([low, float(np.median(seen)) - low, 0.0])
