"""What to minimise, said by patterns of metrics' names, since the domains are known only when tokens are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final

from mixing.observations.points import MixingError
from mixing.optimum.objective import Objective

HELD_OUT: Final = "loss/"
"""How the metric begins that a domain's held-out text is measured with: nats a token, `loss/DOMAIN`."""
BY_LANGUAGE: Final = "/language/"


def spelt_out(asked: Objective, domains: Iterable[str], measured: Iterable[str]) -> Objective:
    """The objective with metrics by name.

    Weights and `worst` may name metrics by pattern (`loss/*`); a pattern's share is of all that it matches together,
    and `*` does not match metrics by language unless the pattern says `language`. Where neither is given it is the mean
    of the domains' held-out losses that were measured. Raises MixingError where nothing measured is asked for.
    """
    known = sorted(measured)
    given = asked.weights
    if not given and not asked.worst:
        given = {name: 1.0 for domain in sorted(domains) if (name := f"{HELD_OUT}{domain}") in known}
        if not given:
            told = ", ".join(known) or "no metric has a value"
            raise MixingError(f"objective: no {HELD_OUT}DOMAIN was measured; name others under weights: {told}")
    shares: dict[str, float] = {}
    for pattern, share in given.items():
        names = _matched("objective.weights", pattern, known)
        for name in names:
            shares[name] = shares.get(name, 0.0) + share / len(names)
    worst = dict.fromkeys(name for pattern in asked.worst for name in _matched("objective.worst", pattern, known))
    return replace(asked, weights=dict(sorted(shares.items())), worst=tuple(sorted(worst)))


def matches(pattern: str, metric: str) -> bool:
    """Whether a metric's name is a pattern's; names that hold signs of patterns are found as they are, too."""
    if metric == pattern:
        return True
    return fnmatchcase(metric, pattern) and (BY_LANGUAGE not in metric or "language" in pattern)


def _matched(where: str, pattern: str, known: list[str]) -> list[str]:
    names = [name for name in known if matches(pattern, name)]
    if not names:
        near = get_close_matches(pattern, known, n=3) or known[:3]
        there = f"there are {', '.join(near)}" if near else "no metric has a value"
        raise MixingError(f"{where}: nothing measured is {pattern!r}; {there}")
    return names
