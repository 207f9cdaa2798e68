"""What a mixture must keep to, by name, as a recipe says it; and the polytope that it is for given domains."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from mixing.observations.points import Floats, MixingError, simplex_rows
from mixing.optimum.polytope import Polytope

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Unique = Annotated[float, Field(ge=0, allow_inf_nan=True)]
Increase = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Group:
    """Domains that share a floor and a ceiling of their sum."""

    domains: Annotated[tuple[str, ...], Field(min_length=1)]
    floor: Share = 0.0
    ceiling: Share = 1.0


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Constraints:
    """Limits of a mixture; every domain and metric goes by name, and what is left out is free.

    floors, ceilings: {domain: share}, the least and the most of a domain.
    groups: {name: {domains, floor, ceiling}}, the same of the sum of several.
    prior: the mixture that changes are measured from, {domain: share} (left out is 0), or "natural": each domain's
        part of all unique tokens.
    max_ratio: a domain's share is at most so many times the prior's; one number, or by domain.
    max_change: total variation distance from the prior, the share of tokens that changes domain, 0 to 1.
    tokens: length of the target run. unique_tokens: {domain: tokens} there are; .inf where without end.
    max_epochs: a domain is seen at most so often, w <= epochs * unique_tokens / tokens; one number, or by domain. None
        for no cap: up to 4 epochs are worth about as much as fresh tokens (arXiv:2305.16264), more are worth less, and
        a scarce domain inside a mixture bears 15 to 20 (arXiv:2605.12715).
    min_entropy, max_kl: nats; entropy of the mixture, and its Kullback-Leibler divergence from the prior.
    no_regression: by how much a metric may rise above its prediction at `baseline`; {metric: increase}, or one number
        for all. 0 is "no worse", a negative number asks for a gain.
    baseline: that mixture; the prior where it is left out.
    """

    floors: dict[str, Share] = Field(default_factory=dict)
    ceilings: dict[str, Share] = Field(default_factory=dict)
    groups: dict[str, Group] = Field(default_factory=dict)
    prior: dict[str, Share] | Literal["natural"] | None = None
    max_ratio: Positive | dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None = None
    max_change: Share | None = None
    tokens: Positive | None = None
    unique_tokens: dict[str, Unique] = Field(default_factory=dict)
    max_epochs: Positive | dict[str, Positive] | None = None
    min_entropy: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    max_kl: Positive | None = None
    no_regression: Increase | dict[str, Increase] | None = None
    baseline: dict[str, Share] | None = None

    def polytope(self, domains: Iterable[str]) -> Polytope:
        """The linear constraints of mixtures of these domains.

        min_entropy, max_kl and no_regression are not linear: optimize() keeps them besides.

        Raises MixingError where a name is unknown, something needed is left out, or no mixture keeps all of them; it
        names what clashes.
        """
        names = tuple(domains)
        prior = self.prior_weights(names)
        count = len(names)
        lower, upper = np.zeros(count), np.ones(count)
        lower_names, upper_names = [""] * count, [""] * count
        for name, share in self.floors.items():
            where = known(names, name, "floors")
            lower[where], lower_names[where] = share, f"floors.{name}"
        for kind, caps in (
            ("ceilings", self.ceilings),
            ("max_ratio", self._ratio_caps(names, prior)),
            ("max_epochs", self._epoch_caps(names)),
        ):
            for name, share in caps.items():
                where = known(names, name, kind)
                if share < upper[where]:
                    upper[where], upper_names[where] = share, f"{kind}.{name}"
        rows, limits, row_names = self._group_rows(names)
        if self.max_change is not None and prior is None:
            raise MixingError("max_change: measured from what; give prior, {domain: share} or natural")
        found = Polytope(
            domains=names,
            lower=lower,
            upper=upper,
            rows=rows,
            limits=limits,
            names=row_names,
            lower_names=tuple(lower_names),
            upper_names=tuple(upper_names),
            prior=prior if self.max_change is not None else None,
            change=1.0 if self.max_change is None else self.max_change,
        )
        found.check()
        return found

    def prior_weights(self, domains: tuple[str, ...]) -> Floats | None:
        """[m]: the prior, or None. Raises MixingError on unknown domains and where tokens it needs are not told."""
        if self.prior is None:
            return None
        if self.prior == "natural":
            return self.natural(domains, "prior: natural")
        return mixture_row(domains, self.prior, "prior")

    def natural(self, domains: tuple[str, ...], where: str = "natural") -> Floats:
        """[m]: each domain's part of all unique tokens. Raises MixingError where they are not told of each."""
        tokens = np.array([self.unique_tokens.get(name, np.nan) for name in domains])
        for name, value in zip(domains, tokens, strict=True):
            if not np.isfinite(value):
                raise MixingError(f"{where}: needs unique_tokens of {name}, a finite number")
        for name in self.unique_tokens:
            known(domains, name, "unique_tokens")
        if not tokens.sum() > 0:
            raise MixingError(f"{where}: unique_tokens are all 0; give the tokens there are of each domain")
        return np.asarray(tokens / tokens.sum())

    def baseline_weights(self, domains: tuple[str, ...]) -> Floats:
        """[m]: what no_regression compares with. Raises MixingError where neither baseline nor prior is given."""
        if self.baseline is not None:
            return mixture_row(domains, self.baseline, "baseline")
        prior = self.prior_weights(domains)
        if prior is None:
            raise MixingError("no_regression: compared with what; give baseline or prior")
        return prior

    def unique(self, domains: tuple[str, ...]) -> Floats:
        """[m]: unique tokens of each domain, NaN where they are not told."""
        for name in self.unique_tokens:
            known(domains, name, "unique_tokens")
        return np.array([self.unique_tokens.get(name, np.nan) for name in domains], np.float64)

    def epochs_allowed(self, domains: tuple[str, ...]) -> dict[str, float]:
        """The cap of each domain that has one."""
        if self.max_epochs is None:
            return {}
        return dict(self.max_epochs) if isinstance(self.max_epochs, dict) else dict.fromkeys(domains, self.max_epochs)

    def _ratio_caps(self, domains: tuple[str, ...], prior: Floats | None) -> dict[str, float]:
        if self.max_ratio is None:
            return {}
        if prior is None:
            raise MixingError("max_ratio: times what; give prior, {domain: share} or natural")
        ratios = self.max_ratio if isinstance(self.max_ratio, dict) else dict.fromkeys(domains, self.max_ratio)
        return {name: float(ratio * prior[known(domains, name, "max_ratio")]) for name, ratio in ratios.items()}

    def _epoch_caps(self, domains: tuple[str, ...]) -> dict[str, float]:
        unique = self.unique(domains)
        if self.max_epochs is None:
            return {}
        if self.tokens is None:
            raise MixingError("max_epochs: of a run of what length; give tokens")
        caps = {}
        for name, most in self.epochs_allowed(domains).items():
            there = unique[known(domains, name, "max_epochs")]
            if np.isnan(there):
                raise MixingError(f"max_epochs: needs unique_tokens of {name}; give them, or .inf where without end")
            caps[name] = float(most * there / self.tokens)
        return caps

    def _group_rows(self, domains: tuple[str, ...]) -> tuple[Floats, Floats, tuple[str, ...]]:
        rows, limits, names = [], [], []
        for name, group in self.groups.items():
            row = np.zeros(len(domains))
            for domain in group.domains:
                row[known(domains, domain, f"groups.{name}")] = 1
            if group.floor > 0:
                rows.append(-row)
                limits.append(-group.floor)
                names.append(f"groups.{name}.floor")
            if group.ceiling < 1:
                rows.append(row)
                limits.append(group.ceiling)
                names.append(f"groups.{name}.ceiling")
        return np.array(rows).reshape(-1, len(domains)), np.array(limits, np.float64), tuple(names)


def known(names: tuple[str, ...], name: str, where: str, what: str = "domain") -> int:
    """The place of a name. Raises MixingError with the nearest name where it is unknown."""
    if name in names:
        return names.index(name)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    told = f"did you mean {near[0]!r}?" if near else f"the {what}s are {', '.join(names)}"
    raise MixingError(f"{where}: no {what} {name!r}; {told}")


def mixture_row(domains: tuple[str, ...], shares: Mapping[str, float], where: str) -> Floats:
    """[m]: a mixture told by name, scaled to sum to 1. Raises MixingError where it is none of these domains."""
    row = np.zeros(len(domains))
    for name, share in shares.items():
        row[known(domains, name, where)] = share
    return np.asarray(simplex_rows(domains, row[None, :], where)[0])
