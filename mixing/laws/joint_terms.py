"""A sum of positive terms over many parameter vectors at once: what the equations of joint laws are written in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mixing.observations.points import Floats, Points

FLOOR = 1e-6
"""A weight's power goes on as a straight line below this, so that slopes stay finite at a weight of 0."""


class Constant(NamedTuple):
    """One number that a law learns: the prior of its inner value, and how that becomes the number told.

    mean, deviation: of the inner value, where losses are counted in units of their median.
    kind: "exp" (above 0), "unit" (0 to 1, logistic) or "free". spread: how far the starts of a fit differ.
    """

    name: str
    mean: float
    deviation: float
    kind: str = "exp"
    spread: float = 0.6


class Inputs(NamedTuple):
    """What an equation is of: weights [n, m]; log N and log D [n] about the centre; the points that they are of."""

    weights: Floats
    log_parameters: Floats
    log_tokens: Floats
    points: Points


class Batch:
    """b parameter vectors at n points: terms are added by their logarithm, derivatives gather.

    theta [b, p], laid out as the scalars, then a block of m for each of its blocks.
    """

    def __init__(self, scalars: Sequence[Constant], blocks: Sequence[Constant], theta: Floats, inputs: Inputs) -> None:
        self.inputs, self.theta = inputs, theta
        self.scalars = {constant.name: place for place, constant in enumerate(scalars)}
        count, domains = len(scalars), inputs.weights.shape[1]
        self.places = {
            block.name: slice(count + number * domains, count + (number + 1) * domains)
            for number, block in enumerate(blocks)
        }
        rows, points = len(theta), len(inputs.weights)
        self.value = np.zeros((rows, points))
        self.jacobian = np.zeros((rows, points, theta.shape[1]))
        self.by_weight = np.zeros((rows, points, domains))

    def scalar(self, name: str) -> Floats:
        """[b, 1]: the inner value of a scalar."""
        place = self.scalars[name]
        return np.asarray(self.theta[:, place : place + 1])

    def block(self, name: str) -> Floats:
        """[b, 1, m]: the inner values of a block."""
        return np.asarray(self.theta[:, None, self.places[name]])

    def add(self, logarithm: Floats, by: dict[str, Floats], by_weight: Floats | None = None) -> None:
        """Add exp(logarithm) ([b, n]); by: its logarithm's derivatives, [b, n] by scalar and [b, n, m] by block."""
        term = np.exp(logarithm)
        self.value += term
        for name, slope in by.items():
            if name in self.scalars:
                self.jacobian[..., self.scalars[name]] += term * slope
            else:
                self.jacobian[..., self.places[name]] += term[..., None] * slope
        if by_weight is not None:
            self.by_weight += term[..., None] * by_weight

    def powers(self, exponent: Floats) -> tuple[Floats, Floats, Floats]:
        """w^g, its derivative by w over it, by g over it; exponent [b, 1, m or 1] in 0..1. A line below FLOOR."""
        weights = self.inputs.weights[None]
        small = weights < FLOOR
        held = np.maximum(weights, FLOOR)
        logs = np.log(held)
        power = np.exp(exponent * logs)
        by_weight = np.broadcast_to(exponent / held, power.shape)
        by_exponent = np.broadcast_to(logs, power.shape)
        if small.any():
            ratio = weights / FLOOR
            line = np.where(small, 1 - exponent + exponent * ratio, 1.0)
            by_weight = by_weight / line
            by_exponent = np.where(small, logs + (ratio - 1) / line, logs)
            power = power * line
        return power, by_weight, by_exponent
