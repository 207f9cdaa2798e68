"""Feasible mixtures to choose runs from: samples around the natural one, evenly over what is feasible, and corners.

Nothing here rejects samples: with 17 domains only a third of Dirichlet samples meet caps of four times each share
(measured on RegMix), and fewer with more domains. A sample outside is pulled towards the middle until it is inside.
"""

from __future__ import annotations

import numpy as np

from mixing.observations.points import Floats
from mixing.optimum.polytope import Polytope

TEMPERATURES = (1.0, 2.0, 4.0)
"""Shares of the natural mixture are raised to 1/T: T = 1 keeps them, larger ones come near to uniform."""
CONCENTRATIONS = (0.5, 2.0, 8.0)
"""Dirichlet parameters sum to this many times the number of domains: small ones sample near the edges."""
SOFTENED = (0.75, 0.5)
"""Corners stand among the candidates at these shares, the rest being the natural mixture: a domain alone is noisy."""


def sampled(polytope: Polytope, natural: Floats, count: int, seed: int) -> Floats:
    """About `count` feasible mixtures [c, m], the natural one (as near as is feasible) first."""
    rng = np.random.default_rng(seed)
    base = polytope.project(natural)[None]
    corners = np.concatenate([share * polytope.vertices + (1 - share) * base for share in SOFTENED])
    each = max(count // (2 * len(TEMPERATURES) * len(CONCENTRATIONS)), 1)
    around = [near_to(natural, heat, dense, each, rng) for heat in TEMPERATURES for dense in CONCENTRATIONS]
    even = polytope.sample(max(count // 2, 1), seed=seed)
    return once(np.concatenate([base, corners, pulled(polytope, np.concatenate(around)), even]))


def near_to(natural: Floats, temperature: float, concentration: float, count: int, rng: np.random.Generator) -> Floats:
    """[count, m]: Dirichlet samples whose mean is the natural mixture at a temperature."""
    floor = natural[natural > 0].min() / 10
    shares = np.maximum(natural, floor) ** (1 / temperature)
    shape = shares / shares.sum() * concentration * len(shares)
    drawn = rng.standard_gamma(np.broadcast_to(shape, (count, len(shape)))) + 1e-12
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def pulled(polytope: Polytope, weights: Floats) -> Floats:
    """Rows of weights [n, m] on the simplex, each moved towards the middle of the polytope until it is in it."""
    middle = polytope.centre()
    # A flat polytope (fixed domains, ties between them) lacks some directions: they are left out first.
    _, sizes, directions = np.linalg.svd(polytope.vertices - middle, full_matrices=False)
    spanned = directions[sizes > 1e-9]
    steps = (weights - middle) @ spanned.T @ spanned
    reach = np.minimum(polytope.reach(np.broadcast_to(middle, weights.shape), steps), 1)
    return np.asarray(np.clip(middle + reach[:, None] * steps, polytope.lower, polytope.upper))


def about(polytope: Polytope, weights: Floats, spread: float, count: int, seed: int) -> Floats:
    """[count, m]: feasible mixtures near one ([m]), in all directions of sqrt(w): refinement around a good one."""
    rng = np.random.default_rng(seed)
    roots = np.abs(np.sqrt(weights) + spread * rng.standard_normal((count, len(weights))) / np.sqrt(len(weights)))
    return once(pulled(polytope, roots**2 / (roots**2).sum(axis=1, keepdims=True)))


def once(weights: Floats) -> Floats:
    """Distinct rows, in the order they came."""
    _, first = np.unique(weights.round(9), axis=0, return_index=True)
    return np.asarray(weights[np.sort(first)])


def rounded(polytope: Polytope, weights: Floats, decimals: int = 4) -> Floats:
    """Rows of weights in steps of 10^-decimals that still sum to 1 and meet the constraints; as they were elsewhere."""
    unit = 10**decimals
    low, high = np.ceil(polytope.lower * unit - 1e-6), np.floor(np.minimum(polytope.upper, 1) * unit + 1e-6)
    if (low > high).any() or low.sum() > unit or high.sum() < unit:
        return weights
    whole = np.clip(np.floor(weights * unit + 1e-6), low, high)
    for row, exact in zip(whole, weights * unit, strict=True):
        while (left := round(unit - row.sum())) != 0:
            step = np.sign(left)
            room = row < high if step > 0 else row > low
            gain = np.where(room, step * (exact - row), -np.inf)
            row[np.argsort(-gain, kind="stable")[: min(abs(left), int(room.sum()))]] += step
    neat = whole / unit
    return np.asarray(np.where(polytope.contains(neat)[:, None], neat, weights))
