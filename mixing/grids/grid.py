"""Domains cut by an axis, as domains of their own: web@high, web@low (quality), web@copies:2 (repeats), web@phase1.

A cell's name is DOMAIN@LEVEL, so a grid needs no table beside it: laws, constraints and optima see plain domains, and a
grid folds their weights back. An axis may be laid over another (web@high@phase2): a grid always cuts by the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np

from mixing.observations.points import Floats, MixingError, by_name, simplex_rows

MARK: Final = "@"


@dataclass(frozen=True, kw_only=True)
class Grid:
    """cells: (domain, level) each; a domain that is not cut has level None and keeps its name.
    levels: every level in the axis' order, worst first where it is one of quality.
    """

    cells: tuple[tuple[str, str | None], ...]
    levels: tuple[str, ...]

    @classmethod
    def of(cls, domains: Sequence[str], levels: Sequence[str] | Mapping[str, Sequence[str]]) -> Grid:
        """A grid of domains x levels; or with levels by domain, where those left out are not cut.

        Raises MixingError for a domain or level that stands twice, an unknown domain, or a level with the mark in it.
        """
        told = dict(levels) if isinstance(levels, Mapping) else {name: tuple(levels) for name in domains}
        for name, some in told.items():
            if name not in domains:
                raise MixingError(f"levels: no domain {name!r}; the domains are {', '.join(domains)}")
            if not some:
                raise MixingError(f"levels: none of {name}; give one or more, or leave {name} out")
        cells = [(name, level) for name in domains for level in told.get(name, (None,))]
        return cls(cells=tuple(cells), levels=tuple(dict.fromkeys(level for some in told.values() for level in some)))

    @classmethod
    def parse(cls, names: Sequence[str], levels: Sequence[str] | None = None) -> Grid:
        """The grid that names of cells tell, in their order. levels: their order, where it is not that of the names."""
        cells = [_cell(name) for name in names]
        found = tuple(dict.fromkeys(level for _, level in cells if level is not None))
        return cls(cells=tuple(cells), levels=found if levels is None else tuple(levels))

    def __post_init__(self) -> None:
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise MixingError(f"grid: {twice[0]!r} stands twice; give each domain and level once")
        for level in self.levels:
            if not level or MARK in level:
                raise MixingError(f"levels: {level!r} is empty or holds {MARK!r}; give a plain name")
        unknown = [level for _, level in self.cells if level is not None and level not in self.levels]
        if unknown:
            raise MixingError(f"levels: no {unknown[0]!r}; they are {', '.join(self.levels)}")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """[m] domains as laws see them."""
        return tuple(name if level is None else f"{name}{MARK}{level}" for name, level in self.cells)

    @cached_property
    def domains(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name, _ in self.cells))

    @cached_property
    def domain_matrix(self) -> Floats:
        """[domains, m] of 0 and 1: `weights @ grid.domain_matrix.T` are the weights by domain."""
        return np.array([[float(name == cell) for cell, _ in self.cells] for name in self.domains])

    @cached_property
    def level_matrix(self) -> Floats:
        """[levels, m] of 0 and 1; the columns of domains that are not cut are 0."""
        return np.array([[float(level == cell) for _, cell in self.cells] for level in self.levels]).reshape(
            len(self.levels), len(self.cells)
        )

    def by_domain(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Weights of cells, by domain. Raises MixingError for a name that is no cell."""
        told = self.domain_matrix @ by_name(self.names, weights, where="weights", missing=0.0)
        return dict(zip(self.domains, told.tolist(), strict=True))

    def by_level(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Weights of cells, by level, over all domains that are cut."""
        told = self.level_matrix @ by_name(self.names, weights, where="weights", missing=0.0)
        return dict(zip(self.levels, told.tolist(), strict=True))

    def levels_of(self, domain: str) -> tuple[str, ...]:
        """The levels of a domain, in the axis' order; () where it is not cut."""
        held = {level for name, level in self.cells if name == domain}
        return tuple(level for level in self.levels if level in held)

    def build(self, weights: Mapping[str, float], shares: Mapping[str, Any]) -> dict[str, float]:
        """Weights of cells from weights by domain and the shares of levels within each.

        shares: {domain: {level: share or tokens}}, or {cell: tokens}; scaled to 1 within each domain.
        Raises MixingError where a domain's shares are left out, negative or all 0.
        """
        names = self.domains
        whole = simplex_rows(names, by_name(names, weights, where="weights", missing=0.0)[None, :])[0]
        flat = by_name(self.names, _flat(shares), where="shares")
        flat = np.where([level is None for _, level in self.cells], 1.0, flat)
        if not (flat >= 0).all() or not np.isfinite(flat).all():
            at = int(np.flatnonzero(~((flat >= 0) & np.isfinite(flat)))[0])
            raise MixingError(f"shares: {self.names[at]} has {flat[at]}; give each cell tokens or a share, 0 or more")
        sums = self.domain_matrix @ flat
        empty = [name for name, total in zip(names, sums, strict=True) if total <= 0]
        if empty:
            raise MixingError(f"shares: those of {empty[0]} sum to 0; give one of its levels some")
        spread = flat * (self.domain_matrix.T @ (whole / sums))
        return dict(zip(self.names, spread.tolist(), strict=True))

    def ordered_rows(self, unique_tokens: Mapping[str, float] | None = None) -> tuple[Floats, Floats, tuple[str, ...]]:
        """Better is never seen less often than worse: rows [r, m], limits [r] and names for rows @ w <= limits.

        Two neighbouring levels of a domain make a row. With unique tokens epochs rise with the level, w_low / U_low <=
        w_high / U_high; without, weights do. A row is scaled so that its largest entry is 1. Raises MixingError where a
        cell's unique tokens are not told.
        """
        counts = np.ones(len(self.names))
        if unique_tokens is not None:
            counts = by_name(self.names, unique_tokens, where="unique_tokens")
        place = {cell: at for at, cell in enumerate(self.cells)}
        rows, names = [], []
        for domain in self.domains:
            held = self.levels_of(domain)
            for low, high in pairwise(held):
                worse, better = place[domain, low], place[domain, high]
                for at in (worse, better):
                    if not 0 < counts[at] < np.inf:
                        told = f"{self.names[at]} has {counts[at]}"
                        raise MixingError(f"unique_tokens: {told}; an order of epochs needs a finite number above 0")
                row = np.zeros(len(self.names))
                row[worse], row[better] = 1 / counts[worse], -1 / counts[better]
                rows.append(row / np.abs(row).max())
                names.append(f"ordered.{domain}.{low}<={high}")
        return np.array(rows).reshape(len(rows), len(self.names)), np.zeros(len(rows)), tuple(names)


def _cell(name: str) -> tuple[str, str | None]:
    domain, mark, level = name.rpartition(MARK)
    return (domain, level) if mark and domain else (name, None)


def _flat(shares: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, told in shares.items():
        if isinstance(told, Mapping):
            found |= {f"{name}{MARK}{level}": float(share) for level, share in told.items()}
        else:
            found[name] = float(told)
    return found
