"""Which rows are held out together, and in which fold: by run and by mixture, never by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mixing.observations.observations import Observations
from mixing.observations.points import Floats

SAME_DIGITS = 9
"""Weights that agree to so many decimals are one mixture: what is left is the rounding of sums in another order."""

MOST_FOLDS = 10
LEAVE_ONE_OUT_GROUPS = 12
"""Up to so many groups each is a fold of its own."""


def canonical(observations: Observations) -> Observations:
    """The same rows in an order that depends on nothing but what they hold: domains by name, rows by their numbers.

    Whatever is fitted to this is the same however rows and domains came.
    """
    aligned = replace(observations, points=observations.points.aligned(sorted(observations.domains)))
    return aligned.rows(_canonical_order(observations))


def _canonical_order(observations: Observations) -> npt.NDArray[np.intp]:
    """Rows by mixture, then scale, seed and values; runs' names only break ties."""
    points = observations.points.aligned(sorted(observations.domains))
    keys = [
        *_rounded(observations).T,
        *np.nan_to_num(np.column_stack([points.parameters, points.tokens, points.unique_tokens]), nan=-1.0).T,
        observations.seeds,
        *np.nan_to_num(observations.values, nan=np.inf).T,
        _numbered(observations.runs),
    ]
    return np.lexsort(keys[::-1])


def _rounded(observations: Observations) -> Floats:
    """[n, m]: weights that are equal where mixtures are, domains by name."""
    return np.round(observations.points.aligned(sorted(observations.domains)).weights, SAME_DIGITS) + 0.0


def _numbered(names: Sequence[str]) -> npt.NDArray[np.int64]:
    return np.asarray(np.unique(np.asarray(names, np.str_), return_inverse=True)[1], np.int64)


def held_together(observations: Observations) -> npt.NDArray[np.int64]:
    """[n]: a number for each row; rows of one number share a run or a mixture, directly or through other rows.

    Where all rows are of one mixture there is nothing to hold out but runs, and runs it is.
    """
    names = _numbered(observations.runs)
    mixtures = np.unique(_rounded(observations), axis=0, return_inverse=True)[1].reshape(-1)
    if mixtures.max(initial=0) == 0:
        return names
    group = np.asarray(mixtures, np.int64)
    while True:
        least = np.full(names.max() + 1, len(names), np.int64)
        np.minimum.at(least, names, group)
        lower = np.full(mixtures.max() + 1, len(names), np.int64)
        np.minimum.at(lower, mixtures, least[names])
        if (lower[mixtures] == group).all():
            return np.asarray(np.unique(group, return_inverse=True)[1], np.int64)
        group = lower[mixtures]


def folds(observations: Observations, *, seed: int = 0, count: int | None = None) -> npt.NDArray[np.int64]:
    """[n]: the fold of each row, for `Law.held_out`; rows of a run or of a mixture are in one.

    Folds hold the same rows (near enough) whatever the order of rows and domains. count: how many; as a rule each group
    is its own up to 12 groups, and 10 folds beyond.
    """
    groups = held_together(observations)
    number = int(groups.max(initial=0)) + 1
    if count is None:
        count = number if number <= LEAVE_ONE_OUT_GROUPS else MOST_FOLDS
    count = max(1, min(count, number))
    _, first = np.unique(groups[_canonical_order(observations)], return_index=True)
    numbered = np.argsort(np.argsort(first))[groups]  # by content, so that a number does not tell where its rows stood
    sizes = np.bincount(numbered)
    filled, fold_of = np.zeros(count, np.int64), np.zeros(number, np.int64)
    for group in np.random.default_rng([seed, number]).permutation(number):
        fold_of[group] = int(np.argmin(filled))
        filled[fold_of[group]] += sizes[group]
    return fold_of[numbered]
