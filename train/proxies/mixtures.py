"""Mixtures, from settings and files: domains by name, weights that sum to 1, each mixture once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

import xxhash

from train.proxies.mixture_files import listed, read
from train.proxies.settings import Proxies, ProxyError

SUM_TOLERANCE: Final = 1e-3
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")


@dataclass(frozen=True)
class Mixture:
    """weights: of every domain of the tokens, in the order of names; they sum to 1."""

    name: str
    weights: Mapping[str, float]


def mixtures_of(settings: Proxies, domains: Sequence[str]) -> tuple[Mixture, ...]:
    """Every mixture that is asked for, in order; the same weights without a name, given twice, are one.

    Raises ProxyError for what names an unknown domain, does not sum to 1, or gives one name to two mixtures.
    """
    asked: list[tuple[str, str | None, Mapping[str, Any]]] = list(listed("mixtures", settings.mixtures))
    if settings.mixtures_file is not None:
        asked.extend(read(settings.mixtures_file))
    found: dict[str, Mixture] = {}
    for where, name, weights in asked:
        whole = _whole(where, weights, domains)
        made = Mixture(name or name_of(whole), whole)
        if _NAME.fullmatch(made.name) is None:
            raise ProxyError(
                f"{where}: {made.name!r} cannot name a folder; use letters, digits and _ . + -, at most 64"
            )
        if made.name in found and found[made.name].weights != whole:
            raise ProxyError(f"{where}: {made.name!r} already names another mixture; give each a name of its own")
        found[made.name] = made
    if not found:
        raise ProxyError(f"{settings.mixtures_file}: holds no mixture; give at least one row")
    return tuple(found.values())


def name_of(weights: Mapping[str, float]) -> str:
    """A name that follows from the weights above 0 alone, so that adding a domain renames no mixture."""
    told = json.dumps({domain: round(weight, 12) for domain, weight in sorted(weights.items()) if weight > 0})
    return f"mix-{xxhash.xxh3_64_hexdigest(told.encode())[:10]}"


def _whole(where: str, weights: Mapping[str, Any], domains: Sequence[str]) -> dict[str, float]:
    """Weights of all domains, in the order of `domains`, that sum to 1."""
    for domain, weight in weights.items():
        if domain not in domains:
            near = get_close_matches(str(domain), domains, n=1)
            told = f"did you mean {near[0]!r}" if near else f"the tokens have {', '.join(domains)}"
            raise ProxyError(f"{where}: no domain {domain!r}; {told}")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < float("inf"):
            raise ProxyError(f"{where}: weight {weight!r} of {domain!r} is not a number from 0 on")
    total = sum(weights.values())
    if abs(total - 1) > SUM_TOLERANCE:
        raise ProxyError(f"{where}: weights sum to {total:.6g}; they must sum to 1 (within {SUM_TOLERANCE:g})")
    return {domain: float(weights.get(domain, 0.0)) / total for domain in domains}
