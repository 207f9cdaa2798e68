"""What the loop stands on: the domains, how many tokens there are of each, and a folder that belongs to them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Self

from mixing.loop.rounds import OWN
from mixing.loop.settings import Swarm
from mixing.observations.points import MixingError
from shards.store import filesystem, is_local, join, read_json, write_json

GROUND, LOCK = "ground.json", ".mixing"
REPEATED: Final = ("target_tokens", "target_unique_tokens", "target_epochs")
FORMAT: Final = 1


@dataclass(frozen=True, kw_only=True)
class Ground:
    """available: tokens of each domain that can be trained on (inf without end, NaN unknown), in the order of names.

    digest: of the token shards; None where there are none.
    """

    available: Mapping[str, float]
    digest: str | None = None

    @classmethod
    def of(cls, tokens: Sequence[str], available: Mapping[str, float] | None, *, held_out: float) -> Self:
        """Of token shards (what is not held out), or of domains as they are told, or both (what is told goes first).

        Raises MixingError where neither is given, or a domain's name is one that tables need.
        """
        found: dict[str, float] = {}
        digest = None
        if tokens:
            from train import Plan, TokenShards

            shards = TokenShards.open(list(tokens))
            digest = shards.digest
            plan = Plan.new(shards, sequence_tokens=2, batch_sequences=1, seed=0, held_out=held_out)
            found = {domain: float(count) for domain, count in plan.tokens.items()}
        for domain, count in (available or {}).items():
            if tokens and domain not in found:
                raise MixingError(f"available: no domain {domain!r}; the tokens have {', '.join(sorted(found))}")
            found[domain] = float(count)
        if not found:
            raise MixingError("tokens: none; name folders of token shards, or say what is available of each domain")
        taken = sorted(set(found) & set(OWN))
        if taken:
            raise MixingError(f"domains: {taken[0]!r} is a column of tables of mixtures; give the domain another name")
        return cls(available=dict(sorted(found.items())), digest=digest)

    @property
    def domains(self) -> tuple[str, ...]:
        return tuple(self.available)

    def settle(self, out: str, swarm: Swarm | None = None) -> None:
        """Make the folder this ground's, and its proxies' settings the swarm's. Raises MixingError where it is
        another's: runs that measure something else belong in another folder."""
        now: dict[str, Any] = {"format": FORMAT, "domains": list(self.domains), "tokens": self.digest}
        if swarm is not None:
            from train.proxies.settings import shared_settings

            told = shared_settings(swarm.on(({"any": 1.0},)))
            now["proxies"] = {name: value for name, value in told.items() if name not in REPEATED}
            now["repeated"] = {name: told[name] for name in REPEATED}
        before = read_json(join(out, GROUND))
        if before is None:
            write_json(join(out, GROUND), now)
            return
        what = "other domains" if before.get("domains") != now["domains"] else None
        what = what or ("other tokens" if before.get("tokens") != now["tokens"] else None)
        held, asked = before.get("proxies") or {}, now.get("proxies") or {}
        for name in sorted(set(held) & set(asked)):
            if what is None and held[name] != asked[name]:
                what = f"proxies with {name} {held[name]}, not {asked[name]}"
        if what is not None:
            raise MixingError(
                f"out: the runs in {out} are of {what}; use another out, and name {join(out, 'observations.parquet')} "
                "under observations to start from them"
            )

    @staticmethod
    def repeated(out: str) -> dict[str, Any]:
        """How the proxies of a folder repeat domains, which all of them share: settings of Proxies."""
        return dict((read_json(join(out, GROUND)) or {}).get("repeated") or {})


@contextmanager
def alone(out: str) -> Iterator[None]:
    """Hold OUT for this loop, by a lock that ends with the process. Raises MixingError where another holds it."""
    import fcntl

    if not is_local(out):
        raise MixingError(f"out: {out} is no local folder; work in one, and copy it when it is done")
    folder = filesystem(out)[1]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, LOCK), "ab") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise MixingError(f"out: another loop works in {out}; wait for it, or use another folder") from None
        yield
