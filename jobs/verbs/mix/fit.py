"""`gristmill mix fit TABLE...`: which laws tell held-out runs best, and how well."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from jobs.verbs import paper
from jobs.verbs.mix import asked

if TYPE_CHECKING:
    from mixing.fitting import Fitted

HEAD = ("law", "held-out error", "explained", "share", "left out because")


def run(
    tables: Sequence[str],
    *,
    losses: str | None = None,
    only: Sequence[str] = (),
    settings: str | None = None,
    sets: Sequence[str] = (),
    json: bool = False,
) -> int:
    """Print a row a law, means over the metrics, and what was chosen and why."""
    law = asked.standing(asked.settings_of(settings, sets), asked.read(tables, losses, only)).law
    if json:
        from mixing.loop.telling import finite

        print(json_format.dumps(finite({"choice": [asdict(one) for one in law.choice], **law.told()}), indent=1))
        return 0
    print("\n".join(paper.table(rows(law), HEAD)))
    print(f"\n{law.why}")
    for warning in [*law.warnings, *_unfit(law)]:
        print(warning, file=sys.stderr)
    return 0


def _unfit(law: Fitted) -> Iterator[str]:
    """What the laws say of themselves, such as trees that cannot split."""
    for one in law.laws:
        for metric, told in one.told().items():
            if isinstance(told, dict) and "warning" in told:
                yield f"{one.name}, {metric}: {told['warning']}"


def rows(law: Fitted) -> list[tuple[Any, ...]]:
    """A row a law, the one with the largest share first."""
    found = []
    for name in dict.fromkeys(choice.law for choice in law.choice):
        mine = [choice for choice in law.choice if choice.law == name]
        means = [sum(getattr(one, key) for one in mine) / len(mine) for key in ("error", "explained", "share")]
        found.append((name, *(round(value, 4) for value in means), next((one.why for one in mine if one.why), "")))
    return sorted(found, key=lambda row: (-row[3], row[0]))
