"""A plain law that fits in a millisecond, runs of a world that it cannot quite tell, and the published runs."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pytest

from mixing.laws import LAWS
from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, Points

DOMAINS = ("code", "prose", "web")
SMALL = 0.01


@dataclass(frozen=True, kw_only=True, eq=False)
class Ridge(Law):
    """Ridge regression on weights and their logarithms."""

    name: ClassVar[str] = "ridge"
    equation: ClassVar[str] = "L = c + b.w + a.log(w + e)"
    source: ClassVar[str] = "for tests"
    domains: tuple[str, ...]
    metrics: tuple[str, ...]
    constants: Floats

    @classmethod
    def fit(cls, observations: Observations, *, seed: int = 0) -> Self:
        told = []
        for values in observations.values.T:
            known = np.isfinite(values)
            rows = features(observations.weights[known])
            pull = 1e-3 * np.eye(rows.shape[1])
            pull[0, 0] = 1e-9
            told.append(np.linalg.solve(rows.T @ rows + pull, rows.T @ values[known]))
        return cls(domains=observations.domains, metrics=observations.metrics, constants=np.array(told))

    def mean(self, points: Points) -> Floats:
        return np.asarray(features(points.weights) @ self.constants.T)

    def gradient(self, points: Points) -> Floats:
        count = len(self.domains)
        by_log = self.constants[None, :, 1 + count :] / (points.weights[:, None] + SMALL)
        return np.asarray(self.constants[None, :, 1 : 1 + count] + by_log)


def features(weights: Floats) -> Floats:
    return np.hstack([np.ones((len(weights), 1)), weights, np.log(weights + SMALL)])


@pytest.fixture(autouse=True)
def ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("laws_for_tests")
    module.Ridge = Ridge  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(LAWS, "ridge", "laws_for_tests:Ridge")


World = Callable[..., Observations]


@pytest.fixture
def world() -> World:
    """Runs of a power law with noise: metrics of different sizes, each of its own domain and a bit of the others."""

    def runs(count: int, *, seed: int = 0, noise: float = 0.02, domains: tuple[str, ...] = DOMAINS) -> Observations:
        random = np.random.default_rng(seed)
        weights = random.dirichlet(np.ones(len(domains)), count)
        helps = 0.15 + np.eye(len(domains))
        clean = 1.5 + (weights @ helps) ** -0.4
        values = (clean + noise * random.standard_normal(clean.shape)) * np.arange(1, len(domains) + 1)
        return Observations.of(Points.of(domains, weights), [f"{name} loss" for name in domains], values)

    return runs


@pytest.fixture(scope="session")
def regmix(shared: Path) -> Callable[[str], Observations]:
    """The published runs: `train_1m`, `test_1m`, `test_60m`."""

    def rows(which: str) -> Observations:
        part, size = which.split("_")
        folder = shared / "mixing" / "regmix"
        weights = np.genfromtxt(folder / f"{part}_mixture_{size}.csv", delimiter=",", names=True)
        losses = np.genfromtxt(folder / f"{part}_pile_loss_{size}.csv", delimiter=",", names=True, deletechars="")
        domains = [name.removeprefix("train_the_pile_") for name in weights.dtype.names[1:]]
        metrics = [name.removeprefix("metric/the_pile_").removesuffix("_val_loss") for name in losses.dtype.names[1:]]
        points = Points.of(domains, np.array([list(row)[1:] for row in weights]))
        return Observations.of(points, metrics, np.array([list(row)[1:] for row in losses]))

    return rows
