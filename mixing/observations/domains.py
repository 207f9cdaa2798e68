"""Domains split, merged, renamed and added after runs were made, so that no run is thrown away.

A run that knew only the whole of what is split now saw its parts in their natural shares; one that knew the parts saw
the whole with the sum of their weights. Both are exact for what the run was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points


def split(observations: Observations, domain: str, parts: Mapping[str, float]) -> Observations:
    """Runs with `domain` as runs with its parts, which share its weight and unique tokens in proportion to `parts`.

    parts: tokens of each part (or shares), above 0. Where a part is a domain already (swarms with and without the
    split, pooled), what the whole gives is added to it.
    Raises MixingError for an unknown domain, no part, or a share that is not above 0.
    """
    _known(observations, (domain,))
    _shares(domain, parts)
    total = sum(parts.values())
    points = observations.points
    weights, unique = _columns(points)
    whole, whole_unique = weights.pop(domain), unique.pop(domain)
    shared, shared_unique = dict(weights), dict(unique)
    for name, amount in parts.items():
        gain, gain_unique = whole * amount / total, whole_unique * amount / total
        if name in weights:
            # A row that had both the whole and the part can see the tokens of both; one without the whole its own.
            gain_unique = np.where(whole > 0, np.nan_to_num(unique[name]) + gain_unique, unique[name])
        shared[name] = weights.get(name, 0.0) + gain
        shared_unique[name] = gain_unique
    order = [part for name in points.domains for part in (parts if name == domain else (name,))]
    return _with(observations, list(dict.fromkeys(order)), shared, shared_unique)


def merge(observations: Observations, domains: Sequence[str], into: str) -> Observations:
    """Runs with several domains as runs with one that has their weights' sum.

    Its unique tokens are those of the domains that the run took from (all of them where it took from none). Laws then
    cannot tell the domains apart: runs that differ only in how they share it out look like replicates.
    Raises MixingError for an unknown domain, fewer than two, or a name that another domain has.
    """
    names = tuple(dict.fromkeys(domains))
    _known(observations, names)
    if len(names) < 2:
        raise MixingError(f"merge: {', '.join(names) or 'no domain'} alone; give two or more")
    _free(observations, into, except_for=names)
    weights, unique = _columns(observations.points)
    unique[into] = _seen_by(weights, unique, names)
    weights[into] = np.sum([weights[name] for name in names], axis=0)
    order = [into if name in names else name for name in observations.domains]
    return _with(observations, list(dict.fromkeys(order)), weights, unique)


def rename(observations: Observations, names: Mapping[str, str]) -> Observations:
    """Domains under other names, {old: new}. Raises MixingError for an unknown one, or a name that two would have."""
    _known(observations, tuple(names))
    told = tuple(names.get(name, name) for name in observations.domains)
    twice = [name for name in told if told.count(name) > 1]
    if twice:
        raise MixingError(f"rename: two domains would be {twice[0]!r}; use merge to make them one")
    return replace(observations, points=replace(observations.points, domains=told))


def add(observations: Observations, domain: str, *, unique_tokens: float = np.nan) -> Observations:
    """A domain that no run had, with weight 0 in all of them. Raises MixingError where it is there already."""
    _free(observations, domain)
    weights, unique = _columns(observations.points)
    weights[domain] = np.zeros(len(observations))
    unique[domain] = np.full(len(observations), unique_tokens)
    return _with(observations, [*observations.domains, domain], weights, unique)


def _seen_by(weights: Mapping[str, Floats], unique: Mapping[str, Floats], names: Sequence[str]) -> Floats:
    """[n] unique tokens of the domains with weight; of all of them where none has some."""
    taken = np.stack([weights[name] for name in names], axis=1) > 0
    taken |= ~taken.any(axis=1, keepdims=True)
    return np.asarray(np.where(taken, np.stack([unique[name] for name in names], axis=1), 0.0).sum(axis=1))


def _columns(points: Points) -> tuple[dict[str, Floats], dict[str, Floats]]:
    weights = {name: points.weights[:, at] for at, name in enumerate(points.domains)}
    return weights, {name: points.unique_tokens[:, at] for at, name in enumerate(points.domains)}


def _with(
    observations: Observations, order: Sequence[str], weights: Mapping[str, Floats], unique: Mapping[str, Floats]
) -> Observations:
    points = replace(
        observations.points,
        domains=tuple(order),
        weights=np.stack([weights[name] for name in order], axis=1),
        unique_tokens=np.stack([unique[name] for name in order], axis=1),
    )
    return replace(observations, points=points)


def _known(observations: Observations, names: Sequence[str]) -> None:
    for name in names:
        if name not in observations.domains:
            raise MixingError(f"domains: no {name!r}; there are {', '.join(observations.domains)}")


def _free(observations: Observations, name: str, except_for: Sequence[str] = ()) -> None:
    if name in observations.domains and name not in except_for:
        raise MixingError(f"domains: {name!r} is one already; give another name")


def _shares(domain: str, parts: Mapping[str, float]) -> None:
    if not parts:
        raise MixingError(f"split: no part of {domain}; give {{part: tokens}}")
    for name, amount in parts.items():
        if not 0 < amount < float("inf"):
            raise MixingError(f"split: {name} has {amount} of {domain}; give tokens or a share above 0")
