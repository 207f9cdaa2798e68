"""The mixtures that constraints allow: a polytope of the simplex, with exact projection, vertices and even samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mixing.observations.points import Floats, MixingError

TOLERANCE = 1e-9
"""By how much a constraint may be missed: the solver's own promise, in units of weight."""

_ROUNDING = 1e-13


@dataclass(frozen=True, kw_only=True, eq=False)
class Polytope:
    """Mixtures w of m domains: sum 1, lower <= w <= upper, rows @ w <= limits, at most `change` away from a prior.

    rows, limits: [r, m], [r]; names: [r], what each row is called where it binds or clashes.
    lower_names, upper_names: [m], what each bound is called; "" for the simplex' own 0 and 1.
    prior, change: the total variation distance (half the sum of absolute differences) from `prior` is at most `change`;
        None for no such limit. It stands apart since it would be 2^m rows.
    """

    domains: tuple[str, ...]
    lower: Floats
    upper: Floats
    rows: Floats
    limits: Floats
    names: tuple[str, ...]
    lower_names: tuple[str, ...] = ()
    upper_names: tuple[str, ...] = ()
    prior: Floats | None = None
    change: float = 1.0

    @classmethod
    def simplex(cls, domains: tuple[str, ...]) -> Polytope:
        """All mixtures of the domains."""
        count = len(domains)
        return cls(
            domains=domains,
            lower=np.zeros(count),
            upper=np.ones(count),
            rows=np.zeros((0, count)),
            limits=np.zeros(0),
            names=(),
        )

    @cached_property
    def plain(self) -> bool:
        """Nothing but bounds: linear programs and projections have closed forms."""
        return len(self.rows) == 0 and self.prior is None

    def excess(self, weights: Floats) -> Floats:
        """[n]: the largest amount by which a constraint is missed at each row ([n, m]); 0 or less where all hold."""
        over = np.maximum((weights - self.upper).max(axis=1), (self.lower - weights).max(axis=1))
        over = np.maximum(over, np.abs(weights.sum(axis=1) - 1))
        if len(self.rows):
            over = np.maximum(over, (weights @ self.rows.T - self.limits).max(axis=1))
        if self.prior is not None:
            over = np.maximum(over, np.maximum(weights - self.prior, 0).sum(axis=1) - self.change)
        return np.asarray(over)

    def contains(self, weights: Any, tolerance: float = TOLERANCE) -> npt.NDArray[np.bool_]:
        """[n]: whether each row ([n, m], or one row) keeps every constraint to the tolerance."""
        rows = np.atleast_2d(np.asarray(weights, np.float64))
        with np.errstate(invalid="ignore"):
            return np.asarray(self.excess(rows) <= tolerance)

    def check(self) -> None:
        """Raises MixingError where no mixture keeps all constraints: it names a smallest set of them that clash."""
        from mixing.optimum.clashes import clash

        told = clash(self)
        if told:
            raise MixingError(f"constraints: no mixture has {' and '.join(told)}; relax one of them")

    def minimise(self, cost: Floats) -> Floats:
        """A vertex with the least cost @ w. Raises MixingError where the constraints clash."""
        if self.plain:
            return self._greedy(cost)
        from mixing.optimum.linear_programs import linear_program

        solved = linear_program(self, cost)
        if solved is None:
            self.check()
            raise MixingError("constraints: they leave no mixture to within 1e-9; relax one of them a little")
        return self.project(solved)

    def _greedy(self, cost: Floats) -> Floats:
        weights = self.lower.copy()
        left = 1 - weights.sum()
        for domain in np.argsort(cost, kind="stable"):
            given = min(left, self.upper[domain] - weights[domain])
            weights[domain] += max(given, 0.0)
            left -= max(given, 0.0)
        if left > TOLERANCE or (self.lower > self.upper + TOLERANCE).any() or left < -TOLERANCE:
            self.check()
        return weights

    @cached_property
    def _by_name(self) -> tuple[Polytope, npt.NDArray[np.int64]]:
        """The same with its domains sorted, and where each of ours stands there: draws must not hang on the order."""
        order = np.argsort(np.array(self.domains), kind="stable")
        if (order == np.arange(len(order))).all():
            return self, order
        names = self.domains
        ordered = replace(
            self,
            domains=tuple(names[place] for place in order),
            lower=self.lower[order],
            upper=self.upper[order],
            rows=self.rows[:, order],
            lower_names=tuple(self.lower_names[place] for place in order) if self.lower_names else (),
            upper_names=tuple(self.upper_names[place] for place in order) if self.upper_names else (),
            prior=None if self.prior is None else self.prior[order],
        )
        return ordered, np.argsort(order)

    @cached_property
    def vertices(self) -> Floats:
        """[v, m]: vertices that reach each domain's least and greatest share, and span all that is feasible."""
        ordered, back = self._by_name
        if ordered is not self:
            return ordered.vertices[:, back]
        found = []
        for unit in np.eye(len(self.domains)):
            found += [self.minimise(unit), self.minimise(-unit)]
        # A parallelogram's extremes by coordinate may lie on its diagonal: look along what they do not span.
        draw = np.random.default_rng(0).standard_normal
        while True:
            spanned = _span(np.array(found))
            direction = draw(len(self.domains))
            direction -= direction.mean()
            direction -= spanned @ (spanned.T @ direction)
            size = float(np.linalg.norm(direction))
            if size < 1e-6 or spanned.shape[1] >= len(self.domains) - 1:
                return np.array(found)
            ends = self.minimise(direction / size), self.minimise(-direction / size)
            if abs((ends[0] - ends[1]) @ direction) / size < TOLERANCE:
                return np.array(found)
            found += ends

    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the greatest feasible share of each domain, [m] each."""
        return self.vertices.min(axis=0), self.vertices.max(axis=0)

    def centre(self) -> Floats:
        """A mixture inside: the mean of the vertices."""
        return self.project(self.vertices.mean(axis=0))

    def project(self, weights: Floats) -> Floats:
        """The nearest feasible mixture to each row ([n, m]), or to one ([m]), by Euclidean distance."""
        rows = np.atleast_2d(np.asarray(weights, np.float64))
        if self.plain:
            near = self._shifted(rows)
        else:
            from mixing.optimum.projection import nearest

            # The bounds alone often are all that binds, and one row of numbers shows it.
            near = self._shifted(rows)
            for number in np.flatnonzero(~(self.excess(near) <= _ROUNDING)):
                near[number] = nearest(self, rows[number])
        return near if np.ndim(weights) == 2 else near[0]

    def _shifted(self, rows: Floats) -> Floats:
        """Projection on bounds and sum: w = clip(x - s) with the s that makes the sum 1, by bisection then exactly."""
        low = (rows - self.upper).min(axis=1) - 1
        high = (rows - self.lower).max(axis=1) + 1
        for _ in range(100):
            shift = (low + high) / 2
            above = np.clip(rows - shift[:, None], self.lower, self.upper).sum(axis=1) > 1
            low, high = np.where(above, shift, low), np.where(above, high, shift)
        near = np.clip(rows - high[:, None], self.lower, self.upper)
        free = (near > self.lower) & (near < self.upper)
        near += np.where(free, ((1 - near.sum(axis=1)) / np.maximum(free.sum(axis=1), 1))[:, None], 0)
        return np.asarray(np.clip(near, self.lower, self.upper))

    def sample(self, count: int, *, seed: int = 0, steps: int | None = None) -> Floats:
        """[count, m]: feasible mixtures, evenly over the polytope by hit and run from scattered starts.

        steps: of each walk; the default is 20 and 4 more a dimension. The same mixtures whatever the domains' order.
        """
        ordered, back = self._by_name
        if ordered is not self:
            return ordered.sample(count, seed=seed, steps=steps)[:, back]
        random = np.random.default_rng(seed)
        vertices = self.vertices
        at = random.dirichlet(np.ones(len(vertices)), count) @ vertices
        spanned = _span(vertices)
        for _ in range((20 + 4 * spanned.shape[1]) if steps is None else steps):
            direction = random.standard_normal((count, spanned.shape[1])) @ spanned.T
            direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
            least, most = -self.reach(at, -direction), self.reach(at, direction)
            at = at + (least + (most - least) * random.random(count))[:, None] * direction
        return self.project(at)

    def reach(self, weights: Floats, directions: Floats) -> Floats:
        """[n]: how far one may go from each feasible row along its direction (whose sum is 0); at least 0."""
        # What is a rounding error of 0 leads nowhere.
        directions = np.where(np.abs(directions).max(axis=1, keepdims=True) > _ROUNDING, directions, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.where(directions > 0, (self.upper - weights) / directions, (self.lower - weights) / directions)
            far = np.where(directions == 0, np.inf, ends).min(axis=1)
            if len(self.rows):
                slope = directions @ self.rows.T
                slack = self.limits - weights @ self.rows.T
                far = np.minimum(far, np.where(slope > 0, slack / slope, np.inf).min(axis=1))
        far = np.where(np.isfinite(far), np.maximum(far, 0), 0.0)
        if self.prior is not None:
            low, high, middle = np.zeros(len(weights)), far, far
            for _ in range(50):
                if (low == high).all():
                    break
                inside = np.maximum(weights + middle[:, None] * directions - self.prior, 0).sum(axis=1) <= self.change
                low, high = np.where(inside, middle, low), np.where(inside, high, middle)
                middle = (low + high) / 2
            far = low
        return np.asarray(far)


def _span(points: Floats) -> Floats:
    """[m, d]: directions the points span, each as long as they reach: a round walk in a flat polytope."""
    _, sizes, directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    kept = sizes > 1e-9
    return np.asarray(directions[kept].T)
