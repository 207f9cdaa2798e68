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

        Raises MixingError where a domain stands twice, a row has a weight below 0, one that is no number, or a sum
        that misses 1 by more than SUM_TOLERANCE, a scale is 0 or less, or unique tokens name an unknown domain.
        """
        names = tuple(domains)
        rows = simplex_rows(names, np.atleast_2d(np.asarray(weights, np.float64)))
        if isinstance(unique_tokens, Mapping):
            unique_tokens = by_name(names, unique_tokens, where="unique_tokens")
        count = len(rows)
        return cls(
            domains=names,
            weights=rows,
            parameters=_positive("parameters", parameters, (count,)),
            tokens=_positive("tokens", tokens, (count,)),
            unique_tokens=_positive("unique_tokens", unique_tokens, rows.shape, or_zero=True),
        )

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def epochs(self) -> Floats:
        """[n, m]: how often each domain's tokens are seen; NaN where tokens or unique tokens are unknown, 0 where the
        weight is 0, inf where a domain with weight has no token."""
        with np.errstate(divide="ignore", invalid="ignore"):
            seen = self.weights * self.tokens[:, None] / self.unique_tokens
        return np.asarray(np.where(self.weights == 0, 0.0, seen))

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


def by_name(domains: Sequence[str], values: Mapping[str, float], *, where: str, missing: float = np.nan) -> Floats:
    """[m] values in the order of domains. Raises MixingError for a name that is no domain."""
    unknown = sorted(set(values) - set(domains))
    if unknown:
        raise MixingError(f"{where}: no domain {unknown[0]!r}; the domains are {', '.join(domains)}")
    return np.array([values.get(name, missing) for name in domains], np.float64)


def simplex_rows(
    domains: Sequence[str], weights: Floats, where: str = "weights", places: Sequence[str] | None = None
) -> Floats:
    """Checked rows of weights, each scaled to sum to 1 within rounding. Raises MixingError as Points.of does.

    where, places: what a message calls the table and each of its rows ("row 1" and so on).
    """

    def place(row: int) -> str:
        return f"{where}: {places[row]}" if places is not None else f"{where}: row {row + 1}"

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
        raise MixingError(f"{place(bad[0])}: {domains[column]} is {value}; a weight is a number of 0 or more")
    off = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
    if len(off):
        raise MixingError(f"{place(off[0])}: sums to {sums[off[0]]:.4f}; the weights of a mixture sum to 1")
    return np.asarray(weights / sums[:, None])


def check_same_names(held: Iterable[str], asked: Iterable[str]) -> None:
    """Raises MixingError that names what is missing and what is unknown."""
    have, want = set(held), set(asked)
    if have != want:
        missing, unknown = sorted(have - want), sorted(want - have)
        parts = [f"missing {', '.join(missing)}"] if missing else []
        parts += [f"unknown {', '.join(unknown)}"] if unknown else []
        raise MixingError(f"domains: {'; '.join(parts)}; the domains are {', '.join(sorted(have))}")


def _positive(what: str, values: Any, shape: tuple[int, ...], *, or_zero: bool = False) -> Floats:
    """Values in their whole shape. Raises MixingError where one is below 0, or 0 where that means nothing."""
    told = np.asarray(values, np.float64)
    try:
        whole = np.broadcast_to(told, shape)
    except ValueError:
        raise MixingError(f"{what}: shape {told.shape}; give one for all, or {' x '.join(map(str, shape))}") from None
    bad = (whole < 0) if or_zero else (whole <= 0) | np.isposinf(whole)
    if bad.any():
        asked = "0 or more" if or_zero else "a number above 0"
        raise MixingError(f"{what}: {whole[bad][0]:g}; give {asked}, or NaN where it is unknown")
    return whole
