"""What to minimise, said by patterns of metrics' names, since the domains are known only when tokens are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase

from pydantic import ConfigDict, model_validator
from pydantic.dataclasses import dataclass

from mixing.observations.points import MixingError

HELD_OUT = "loss/"
"""How the metric begins that a domain's held-out text is measured with: nats a token, `loss/DOMAIN`."""
BY_LANGUAGE = "/language/"


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Goal:
    """The objective: a weighted mean of metrics, or the worst of them. Lower is better.

    metrics: names or patterns (`loss/*`, `bits_per_byte/code`), each with a share or all alike; a share below 0 is of a
        metric that rises as things get better. A pattern's share is of all that it matches together; `*` does not match
        metrics by language unless the pattern says `language`. Nothing is each domain's held-out loss, alike.
    worst: minimise the largest of them instead of their mean; shares are then factors.
    """

    metrics: dict[str, float] | tuple[str, ...] = ()
    worst: bool = False

    @model_validator(mode="after")
    def _whole(self) -> Goal:
        if isinstance(self.metrics, dict) and not any(self.metrics.values()):
            raise ValueError("metrics: all have share 0; give at least one a share")
        return self

    def shares(self, domains: Iterable[str], measured: Iterable[str]) -> dict[str, float]:
        """Share of each metric by name; shares of a mean add up to 1 in size. Raises MixingError where a pattern
        matches nothing that was measured."""
        known = sorted(measured)
        given = self.metrics or tuple(f"{HELD_OUT}{domain}" for domain in sorted(domains))
        asked = given if isinstance(given, dict) else dict.fromkeys(given, 1.0)
        found: dict[str, float] = {}
        for pattern, share in asked.items():
            names = [name for name in known if matches(pattern, name)]
            if not names:
                near = get_close_matches(pattern, known, n=3) or known[:3]
                raise MixingError(f"objective.metrics: nothing measured is {pattern!r}; there are {', '.join(near)}")
            for name in names:
                found[name] = found.get(name, 0.0) + (share if self.worst else share / len(names))
        size = 1.0 if self.worst else sum(abs(share) for share in found.values())
        return {name: share / size for name, share in sorted(found.items()) if share}


def matches(pattern: str, metric: str) -> bool:
    """Whether a metric's name is a pattern's; names that hold signs of patterns are found as they are, too."""
    if metric == pattern:
        return True
    return fnmatchcase(metric, pattern) and (BY_LANGUAGE not in metric or "language" in pattern)
