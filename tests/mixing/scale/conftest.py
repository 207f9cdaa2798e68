"""Made runs for tests of scale: losses that fall with tokens of two kinds of domain, at several sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mixing.observations.observations import Observations
from mixing.observations.points import Points

Runs = Callable[..., Observations]


@pytest.fixture
def runs() -> Runs:
    """runs(sizes, mixtures=, seed=, noise=): each mixture of three domains at each size, twenty tokens a parameter."""

    def made(sizes: tuple[float, ...], mixtures: int = 16, seed: int = 0, noise: float = 0.0) -> Observations:
        random = np.random.default_rng(seed)
        weights = np.tile(random.dirichlet(np.ones(3), mixtures), (len(sizes), 1))
        parameters = np.repeat(sizes, mixtures)
        points = Points.of(("a", "b", "c"), weights, parameters=parameters, tokens=20 * parameters)
        helps = np.stack([0.3 + weights[:, 0] ** 0.5, 0.3 + weights[:, 2] ** 0.5], axis=1)
        losses = helps**-0.4 + (8 * helps**-0.2) * parameters[:, None] ** -0.15 + 40 * points.tokens[:, None] ** -0.2
        losses *= np.exp(noise * random.normal(size=losses.shape))
        return Observations.of(points, ("x", "y"), losses)

    return made
