"""Shares of laws in their average, from what each told of rows that it had not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mixing.observations.points import Floats

RIDGE = 0.03
"""Pull to equal shares: of the mean squared error of the best law. Settles laws that err alike (measured on RegMix)."""

CLEARLY_WORSE = 2.0
"""A law whose error is so many times the best law's has no share (root mean square, mean over metrics)."""

LEAST_SHARE = 0.02
LEAST_RATIO = 1e-12
"""Of squared errors: a law that errs less than that against another is exact."""

POOLING = (0.0, 1.0, 4.0, np.inf)
"""How many times a metric's own errors the pooled ones weigh in its shares: from 0, by metric, to inf, one share for
all. Cross-validation over the folds says which."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """shares: [l, k], columns sum to 1. held_out: [f, l, k], those found without the errors of fold f. pooling: which
    of POOLING was chosen."""

    shares: Floats
    held_out: Floats
    pooling: float


def stack(errors: Floats, folds: npt.NDArray[np.int64], *, poolings: tuple[float, ...] = POOLING) -> Shares:
    """Non-negative shares that sum to 1 and leave the least squared error, shrunk to equal shares.

    errors: [l, n, k], of l laws, each finite or NaN where the metric was not measured (for all laws alike).
    Source: stacking, Wolpert 1992, Breiman 1996 (non-negative); here with a ridge that pulls to equal shares.
    """
    laws, _, metrics = errors.shape
    if laws == 1:
        return Shares(shares=np.ones((1, metrics)), held_out=np.ones((int(folds.max()) + 1, 1, metrics)), pooling=0.0)
    products = _products(errors, folds)
    total = products.sum(axis=0)
    best = np.inf, poolings[0]
    chosen = np.zeros((len(products), laws, metrics))
    for pooling in poolings:
        found = np.stack([_shares(total - own, pooling) for own in products])
        left = np.einsum("flk,fklm,fmk->k", found, products, found)
        floor = np.einsum("kll->kl", total)
        floor = np.maximum(floor.min(axis=1), LEAST_RATIO * floor.max(axis=1))
        score = float(np.mean(left / np.where(floor > 0, floor, 1.0)))
        if score < best[0] - 1e-12:
            best, chosen = (score, pooling), found
    return Shares(shares=_shares(total, best[1]), held_out=chosen, pooling=best[1])


def _products(errors: Floats, folds: npt.NDArray[np.int64]) -> Floats:
    """[f, k, l, l]: sums of products of two laws' errors, by fold and metric."""
    known = np.where(np.isfinite(errors), errors, 0.0)
    count = int(folds.max()) + 1
    return np.stack([np.einsum("lnk,mnk->klm", known[:, folds == f], known[:, folds == f]) for f in range(count)])


def _shares(products: Floats, pooling: float) -> Floats:
    """[l, k] of products [k, l, l]."""
    own = np.einsum("kll->kl", products)
    unit = np.maximum(own.min(axis=1), LEAST_RATIO * own.max(axis=1))
    unit[unit == 0] = 1.0
    scaled = products / unit[:, None, None]
    pooled = scaled.mean(axis=0)
    laws = products.shape[1]
    good = np.sqrt(np.einsum("kll->kl", scaled)).mean(axis=0)
    keep = np.flatnonzero(good <= CLEARLY_WORSE * good.min())
    shares = np.zeros((laws, len(products)))
    if np.isinf(pooling):
        shares[keep] = _least(pooled[np.ix_(keep, keep)])[:, None]
        return shares
    for metric, matrix in enumerate(scaled):
        mixed = (matrix + pooling * pooled) / (1 + pooling)
        shares[keep, metric] = _least(mixed[np.ix_(keep, keep)])
    return shares


def _least(matrix: Floats) -> Floats:
    """a >= 0 with sum 1 and the least a' (matrix + RIDGE) a; small shares go to the others.

    x >= 0 with the least x'Mx/2 - sum x is a times a factor (their conditions of optimality are the same), and that is
    a least-squares problem with bounds of Cholesky's factor.
    """
    from scipy.linalg import solve_triangular
    from scipy.optimize import nnls

    if len(matrix) == 1:
        return np.ones(1)
    regular = matrix + RIDGE * np.eye(len(matrix)) * max(np.diag(matrix).min(), LEAST_RATIO)
    upper = np.linalg.cholesky(regular).T
    found = nnls(upper, solve_triangular(upper, np.ones(len(matrix)), trans="T"))[0]
    shares = found / found.sum()
    shares = np.where(shares < LEAST_SHARE, 0.0, shares)
    return np.asarray(shares / shares.sum())
