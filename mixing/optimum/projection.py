"""The nearest point of a polytope of mixtures, by a dual active set.

Source: Goldfarb and Idnani 1983, A numerically stable dual method for solving strictly convex quadratic programs, for
the Hessian 1. It ends after finitely many steps with the exact active set, and asks only for the most violated
constraint: so the distance from a prior needs none of its 2^m rows but those met.
"""

from __future__ import annotations

import numpy as np

from mixing.observations.points import Floats, MixingError
from mixing.optimum.polytope import Polytope

_VIOLATED = 1e-14


def nearest(polytope: Polytope, point: Floats) -> Floats:
    """The feasible mixture nearest to a point ([m]). Raises MixingError where the constraints clash."""
    count = len(point)
    normals = np.ones((1, count))  # what is active; the first row is the sum, which always is
    limits = np.ones(1)
    prices = np.zeros(1)
    at = point - (point.sum() - 1) / count
    for _ in range(100 * (count + len(polytope.rows) + 1)):
        normal, limit, over = _most_violated(polytope, at)
        if over <= _VIOLATED:
            return np.asarray(np.clip(_on(normals, limits, point), polytope.lower, polytope.upper))
        price = 0.0
        while True:
            along = np.linalg.lstsq(normals.T, normal, rcond=None)[0]
            step = normal - normals.T @ along
            bends = float(step @ normal)
            blocking = np.flatnonzero(along[1:] > _VIOLATED) + 1
            ratios = prices[blocking] / along[blocking]
            drop = int(np.argmin(ratios)) if len(blocking) else -1
            until = float(ratios[drop]) if len(blocking) else np.inf
            whole = float(normal @ at - limit) / bends if bends > 1e-12 * float(normal @ normal) else np.inf
            length = min(until, whole)
            if length == np.inf:
                polytope.check()
                return np.asarray(at)  # they clash by rounding alone
            if whole < np.inf:
                at = at - length * step
            prices, price = prices - length * along, price + length
            if length == whole:
                normals, limits = np.vstack([normals, normal]), np.append(limits, limit)
                prices = np.append(prices, price)
                break
            gone = blocking[drop]
            normals = np.delete(normals, gone, axis=0)
            limits, prices = np.delete(limits, gone), np.delete(prices, gone)
    raise MixingError("constraints: the nearest mixture was not found; scale the rows so that no number is huge")


def _on(normals: Floats, limits: Floats, point: Floats) -> Floats:
    """The point nearest to `point` on the active constraints, free of the rounding of all steps before."""
    correction = np.linalg.lstsq(normals, limits - normals @ point, rcond=None)[0]
    return np.asarray(point + correction)


def _most_violated(polytope: Polytope, at: Floats) -> tuple[Floats, float, float]:
    """Normal and limit of the constraint that `at` misses most, and by how much in distance."""
    count = len(at)
    normal, limit, most = np.zeros(count), 0.0, 0.0
    above, below = at - polytope.upper, polytope.lower - at
    if above.max() > most:
        domain = int(np.argmax(above))
        normal, limit, most = np.eye(count)[domain], float(polytope.upper[domain]), float(above[domain])
    if below.max() > most:
        domain = int(np.argmax(below))
        normal, limit, most = -np.eye(count)[domain], -float(polytope.lower[domain]), float(below[domain])
    if len(polytope.rows):
        sizes = np.maximum(np.linalg.norm(polytope.rows, axis=1), 1e-300)
        over = (polytope.rows @ at - polytope.limits) / sizes
        if over.max() > most:
            row = int(np.argmax(over))
            normal, limit, most = polytope.rows[row], float(polytope.limits[row]), float(over[row])
    if polytope.prior is not None:
        more = at > polytope.prior
        over_change = float((at - polytope.prior)[more].sum()) - polytope.change
        if more.any() and over_change / np.sqrt(more.sum()) > most:
            normal = more.astype(np.float64)
            limit, most = polytope.change + float(polytope.prior[more].sum()), over_change / float(np.sqrt(more.sum()))
    return normal, limit, most
