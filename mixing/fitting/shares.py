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

POOLED_ROWS = 32
"""Errors pooled over metrics count as so many rows beside a metric's own: shares by metric settle with the rows. Chosen
on RegMix's training rows (n of 512 to fit, the others to judge): 16 to 64 are alike, 0 loses at n=32, all at n=256."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """shares: [l, k], columns sum to 1. held_out: [f, l, k], those found without the errors of fold f."""

    shares: Floats
    held_out: Floats


def stack(errors: Floats, folds: npt.NDArray[np.int64]) -> Shares:
    """Non-negative shares that sum to 1 and leave the least error, by metric, drawn to those of all metrics.

    errors: [l, n, k], of l laws, each finite or NaN where the metric was not measured (for all laws alike).
    Source: stacking, Wolpert 1992, Breiman 1996 (non-negative); here with a ridge that pulls to equal shares, and with
    rows that all laws miss counting less, so that a few odd runs do not decide.
    """
    laws, _, metrics = errors.shape
    if laws == 1:
        return Shares(shares=np.ones((1, metrics)), held_out=np.ones((int(folds.max()) + 1, 1, metrics)))
    known: npt.NDArray[np.bool_] = np.asarray(np.isfinite(errors).all(axis=0))
    weighted = np.where(known, errors, 0.0) * _row_weights(errors, known)
    products, counts = zip(
        *[(_products(weighted[:, folds == f]), known[folds == f].sum(axis=0)) for f in range(int(folds.max()) + 1)],
        strict=True,
    )
    total, count = np.sum(products, axis=0), np.sum(counts, axis=0)
    held_out = [_shares(total - own, count - mine) for own, mine in zip(products, counts, strict=True)]
    return Shares(shares=_shares(total, count), held_out=np.stack(held_out))


def _row_weights(errors: Floats, known: npt.NDArray[np.bool_]) -> Floats:
    """[n, k], about 1 over the square root of how far the two nearest laws miss a row: between squares and sizes."""
    misses = np.sort(np.abs(np.where(known, errors, 0.0)), axis=0)[:2].mean(axis=0)
    usual = np.array([np.median(column[inside]) for column, inside in zip(misses.T, known.T, strict=True)])
    size = np.hypot(misses, usual)
    return np.asarray((usual / np.where(usual > 0, size, 1.0)) ** 0.5 if usual.any() else np.ones_like(size))


def _products(errors: Floats) -> Floats:
    """[k, l, l]: sums over rows of products of two laws' errors."""
    return np.asarray(np.einsum("lnk,mnk->klm", errors, errors))


def _shares(products: Floats, count: Floats) -> Floats:
    """[l, k] of products [k, l, l] over count [k] rows."""
    own = np.einsum("kll->kl", products)
    unit = np.maximum(own.min(axis=1), LEAST_RATIO * own.max(axis=1))
    unit[unit == 0] = 1.0
    scaled = products / unit[:, None, None]
    pooled = scaled.mean(axis=0)
    sizes = np.sqrt(np.einsum("kll->kl", scaled)).mean(axis=0)
    keep = np.flatnonzero(sizes <= CLEARLY_WORSE * sizes.min())
    shares = np.zeros((products.shape[1], len(products)))
    for metric, matrix in enumerate(scaled):
        mixed = (count[metric] * matrix + POOLED_ROWS * pooled) / (count[metric] + POOLED_ROWS)
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
