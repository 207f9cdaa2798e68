"""Where a loss is asked for: a mixture, and the scale it is trained at. Domains go by name, never by position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SUM_TOLERANCE = 0.005
"""A row of weights may miss 1 by this much and is then scaled to it: published tables hold three decimals of 17."""


class MixingError(ValueError):
    """What cannot be used as given: one line that says where, what is wrong, and what would be right."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Points:
    """n mixtures of m domains, each at a scale.

    weights: [n, m], at least 0, rows sum to 1.
    parameters, tokens: [n], N and D of the run; NaN where unknown.
    unique_tokens: [n, m], tokens of a domain that the run can see; NaN where unknown, inf where without end.
    """

    domains: tuple[str, ...]
    weights: Floats
    parameters: Floats
    tokens: Floats
    unique_tokens: Floats

    @classmethod
    def of(
        cls,
        domains: Sequence[str],
        weights: Any,
        *,
        parameters: float | Floats = np.nan,
        tokens: float | Floats = np.nan,
        unique_tokens: float | Floats | Mapping[str, float] = np.nan,
    ) -> Points:
        """Points of rows of weights ([n, m], or one row), all at one scale or each at its own.

        Raises MixingError where a domain stands twice, or a row has a weight below 0, one that is no number, or a sum
        that misses 1 by more than SUM_TOLERANCE.
        """
        names = tuple(domains)
        rows = simplex_rows(names, np.atleast_2d(np.asarray(weights, np.float64)))
        if isinstance(unique_tokens, Mapping):
            unique_tokens = np.array([unique_tokens.get(name, np.nan) for name in names], np.float64)
        count = len(rows)
        return cls(
            domains=names,
            weights=rows,
            parameters=np.broadcast_to(np.asarray(parameters, np.float64), (count,)),
            tokens=np.broadcast_to(np.asarray(tokens, np.float64), (count,)),
            unique_tokens=np.broadcast_to(np.asarray(unique_tokens, np.float64), rows.shape),
        )

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def epochs(self) -> Floats:
        """[n, m]: how often each domain's tokens are seen; NaN where tokens or unique tokens are unknown."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.weights * self.tokens[:, None] / self.unique_tokens)

    def rows(self, chosen: Any) -> Points:
        """Some of them: a mask, indices or a slice."""
        return Points(
            domains=self.domains,
            weights=self.weights[chosen],
            parameters=self.parameters[chosen],
            tokens=self.tokens[chosen],
            unique_tokens=self.unique_tokens[chosen],
        )

    def at(self, weights: Floats) -> Points:
        """Other mixtures ([n, m]) at the scale of the first of these points. Weights are taken as they are."""
        count = len(weights)
        return Points(
            domains=self.domains,
            weights=weights,
            parameters=np.broadcast_to(self.parameters[:1], (count,)),
            tokens=np.broadcast_to(self.tokens[:1], (count,)),
            unique_tokens=np.broadcast_to(self.unique_tokens[:1], weights.shape),
        )

    def aligned(self, domains: Sequence[str]) -> Points:
        """The same points with the domains in another order. Raises MixingError where the names differ."""
        names = tuple(domains)
        if names == self.domains:
            return self
        check_same_names(self.domains, names)
        order = [self.domains.index(name) for name in names]
        return Points(
            domains=names,
            weights=self.weights[:, order],
            parameters=self.parameters,
            tokens=self.tokens,
            unique_tokens=self.unique_tokens[:, order],
        )


def simplex_rows(domains: Sequence[str], weights: Floats, where: str = "weights") -> Floats:
    """Checked rows of weights, each scaled to sum to 1 within rounding. Raises MixingError as Points.of does."""
    twice = sorted({name for name in domains if list(domains).count(name) > 1})
    if twice:
        raise MixingError(f"{where}: the domain {twice[0]!r} stands twice; give each domain one column")
    if not domains:
        raise MixingError(f"{where}: no domain; give at least one")
    if weights.ndim != 2 or weights.shape[1] != len(domains):
        raise MixingError(f"{where}: shape {weights.shape} for {len(domains)} domains; give a column a domain")
    sums = weights.sum(axis=1)
    bad = np.flatnonzero(~(np.isfinite(weights).all(axis=1) & (weights >= 0).all(axis=1)))
    if len(bad):
        column = int(np.flatnonzero(~(weights[bad[0]] >= 0) | ~np.isfinite(weights[bad[0]]))[0])
        value = weights[bad[0], column]
        raise MixingError(f"{where}: row {bad[0] + 1}: {domains[column]} is {value}; a weight is a number of 0 or more")
    off = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
    if len(off):
        raise MixingError(f"{where}: row {off[0] + 1}: sums to {sums[off[0]]:.4f}; the weights of a mixture sum to 1")
    return np.asarray(weights / sums[:, None])


def check_same_names(held: Iterable[str], asked: Iterable[str]) -> None:
    """Raises MixingError that names what is missing and what is unknown."""
    have, want = set(held), set(asked)
    if have != want:
        missing, unknown = sorted(have - want), sorted(want - have)
        parts = [f"missing {', '.join(missing)}"] if missing else []
        parts += [f"unknown {', '.join(unknown)}"] if unknown else []
        raise MixingError(f"domains: {'; '.join(parts)}; the domains are {', '.join(sorted(have))}")
