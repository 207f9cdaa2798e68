"""How far a mixture lies from those that were observed, in units in which observed ones lie within 1 of each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from mixing.observations.points import Floats, Points

INSIDE = 1.0 + 1e-6
UNSEEN_WEIGHT = 1e-6
"""A domain that no run had: asked weights up to this are rounding."""

BLOCK = 1024
"""Mixtures whose distances to all others are held at once."""

SCALE_SLACK = 0.01
"""log N or log D beyond the observed by so much is rounding: parameters are counted with and without embeddings."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Support:
    """What was observed, and how far from the rest the farthest of it lies when it is left out.

    That farthest one sets the unit, for the distance to the nearest mixture and for a weight beyond all others: so a
    mixture drawn as the observed n were falls outside about twice in n + 1, however wide or narrow the design is.

    mixtures: [u, m], distinct. reach: greatest distance (Hellinger) of one of them to its nearest other.
    least, most: [m], range of each domain's weight. margin: greatest excess of an observed weight over all others, in
    weights' spread [m]. scale: (least, most) of log N and of log D, or None where unknown.
    """

    domains: tuple[str, ...]
    mixtures: Floats
    reach: float
    least: Floats
    most: Floats
    margin: float
    spread: Floats
    scale: tuple[tuple[float, float] | None, tuple[float, float] | None]

    @classmethod
    def of(cls, points: Points, *, uses_scale: bool) -> Self:
        mixtures = np.unique(np.round(points.weights, 9), axis=0)
        count = len(mixtures)
        reach = float(_nearest(mixtures, mixtures, np.arange(count)).max()) if count > 1 else 0.0
        spread = mixtures.std(axis=0)
        ranked = np.sort(mixtures, axis=0)
        gaps = (
            np.concatenate([ranked[-1:] - ranked[-2:-1], ranked[1:2] - ranked[:1]]) if count > 1 else np.zeros((1, 1))
        )
        margin = float((gaps / np.where(spread > 0, spread, np.inf)).max())
        scale = [_range(values) if uses_scale else None for values in (points.parameters, points.tokens)]
        return cls(
            domains=points.domains, mixtures=mixtures, reach=reach, least=mixtures.min(axis=0),
            most=mixtures.max(axis=0), margin=margin, spread=spread, scale=(scale[0], scale[1]),
        )  # fmt: skip

    def distance(self, points: Points) -> Floats:
        """[n]: Hellinger distance to the nearest observed mixture, in units of `reach`."""
        return _nearest(points.weights, self.mixtures) / max(self.reach, 1e-9)

    def distances_held_out(self, points: Points, folds: npt.NDArray[np.int64]) -> Floats:
        """[n]: of the observed points themselves, each to the nearest of another fold."""
        return np.minimum(_nearest(points.weights, points.weights, folds), 1.0) / max(self.reach, 1e-9)

    def beyond(self, points: Points) -> Floats:
        """[n, m]: by how much each weight leaves the observed range, as a share of the mixture."""
        return np.maximum(points.weights - self.most, 0.0) + np.maximum(self.least - points.weights, 0.0)

    def excess(self, points: Points) -> Floats:
        """[n]: 0 inside; outside how far beyond the farthest of the observed, in its units."""
        beyond = self.beyond(points)
        slack = np.maximum(self.margin * self.spread, UNSEEN_WEIGHT)
        over = (beyond / slack).max(axis=1)
        return np.asarray(np.maximum(np.maximum(self.distance(points), over) - INSIDE, 0.0))

    def inside(self, points: Points) -> npt.NDArray[np.bool_]:
        """[n]: whether a prediction there stands on observations."""
        return (self.excess(points) <= 0) & ~(self._beyond_scale(points) > 0).any(axis=1)

    def stretch(self, points: Points) -> Floats:
        """[n]: factor of an error beyond the observed N and D: 1 inside, and 1 more for each time that the observed
        range (of logarithms, a doubling at least) is gone beyond.

        On SlimPajama's runs, fitted up to 310M and told at 680M and 937M, 90% intervals hold .94, and .83 without it.
        """
        return np.asarray(1.0 + self._beyond_scale(points).sum(axis=1))

    def _beyond_scale(self, points: Points) -> Floats:
        """[n, 2]: how far N and D lie beyond the observed, in units of its range; 0 inside."""
        beyond = np.zeros((len(points), 2))
        for column, (held, values) in enumerate(zip(self.scale, (points.parameters, points.tokens), strict=True)):
            if held is not None:
                logs = np.log(values)
                away = np.maximum(held[0] - logs, logs - held[1])
                beyond[:, column] = np.where(away > SCALE_SLACK, away / max(held[1] - held[0], np.log(2)), 0.0)
        return beyond

    def warnings(self, points: Points) -> tuple[str, ...]:
        """A line for each way in which points leave the support: the domain, how far the worst goes, and how many."""
        told: list[str] = []
        beyond = self.beyond(points) / np.maximum(self.margin * self.spread, UNSEEN_WEIGHT)
        for column, domain in enumerate(self.domains):
            outside = np.flatnonzero(beyond[:, column] > INSIDE)
            if len(outside):
                worst = points.weights[outside[np.argmax(beyond[outside, column])], column]
                seen = (
                    f"{_plain(self.least[column])} to {_plain(self.most[column])}" if self.most[column] > 0 else "never"
                )
                told.append(f"{domain}: weight {_plain(worst)}, observed {seen} ({_rows(len(outside))}): extrapolated")
        far = np.flatnonzero((self.distance(points) > INSIDE) & ~(beyond > INSIDE).any(axis=1))
        if len(far):
            worst_row = far[np.argmax(self.distance(points)[far])]
            domain, weight, seen_weight = self._what_differs(points.weights[worst_row])
            told.append(
                f"{domain}: weight {_plain(weight)} in a mixture that nothing observed is near; the nearest has "
                f"{_plain(seen_weight)} ({_rows(len(far))}): extrapolated"
            )
        scale = self._beyond_scale(points) > 0
        for column, (name, held) in enumerate(zip(("parameters", "tokens"), self.scale, strict=True)):
            if held is not None and scale[:, column].any():
                low, high = np.exp(held[0]), np.exp(held[1])
                rows = _rows(int(scale[:, column].sum()))
                told.append(f"{name}: beyond the observed {low:.3g} to {high:.3g} ({rows}): extrapolated")
        return tuple(told)

    def _what_differs(self, weights: Floats) -> tuple[str, float, float]:
        """The domain whose weight differs most from the nearest observed mixture's, and both weights."""
        nearest = self.mixtures[_hellinger(weights[None], self.mixtures)[0].argmin()]
        column = int(np.abs(np.sqrt(weights) - np.sqrt(nearest)).argmax())
        return self.domains[column], float(weights[column]), float(nearest[column])


def _nearest(some: Floats, others: Floats, groups: npt.NDArray[np.int64] | None = None) -> Floats:
    """[a]: distance to the nearest of others, of another group where groups ([a], the same of both) are given."""
    found = np.empty(len(some))
    for start in range(0, len(some), BLOCK):  # the whole table of distances of 100,000 runs would take 80 GB
        part = slice(start, start + BLOCK)
        apart = _hellinger(some[part], others)
        if groups is not None:
            apart[groups[part, None] == groups[None, :]] = np.inf
        found[part] = apart.min(axis=1)
    return found


def _hellinger(some: Floats, others: Floats) -> Floats:
    """[a, b]: 0 for equal mixtures, 1 for mixtures without a common domain."""
    return np.asarray(np.sqrt(np.clip(1 - np.sqrt(some) @ np.sqrt(others).T, 0, None)))


def _range(values: Floats) -> tuple[float, float] | None:
    known = values[np.isfinite(values)]
    return (float(np.log(known.min())), float(np.log(known.max()))) if len(known) else None


def _plain(weight: float) -> str:
    return f"{round(weight, 4):g}"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
