"""`gristmill mix propose [TABLE...]`: which mixtures to try next, as CSV that `gristmill train proxies` takes."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from typing import Any

from jobs.errors import UserError
from jobs.verbs.mix import asked

NONLINEAR = ("min_entropy", "max_kl", "no_regression")


def run(
    tables: Sequence[str],
    *,
    domains: str | None = None,
    n: int = 8,
    losses: str | None = None,
    only: Sequence[str] = (),
    settings: str | None = None,
    sets: Sequence[str] = (),
    json: bool = False,
) -> int:
    """Print a row a mixture. Where there are tables, say what ten more runs are worth on stderr."""
    from pyarrow import csv

    from mixing.design import propose, worth

    names = [name.strip() for name in domains.split(",") if name.strip()] if domains else []
    if not tables and not names:
        raise UserError("propose: give tables of observations, or --domains A,B,C where there are none yet")
    if tables and names:
        raise UserError("--domains: the tables name the domains; give one or the other")
    made = asked.settings_of(settings, sets)
    standing = asked.standing(made, asked.read(tables, losses, only)) if tables else None
    known: Any = names if standing is None else standing.rows
    constraints = made.bound(dict.fromkeys(known if standing is None else standing.domains, float("nan")))
    given: dict[str, Any] = {"constraints": constraints, "seed": made.seed}
    if standing is not None:
        given |= {"law": standing.law, "objective": standing.objective}
    table = propose(known, n, method=made.method, **given)
    nonlinear = [name for name in NONLINEAR if getattr(constraints, name) is not None]
    if nonlinear:
        print(f"constraints: {', '.join(nonlinear)}: of the optimum: proposals do not keep to it", file=sys.stderr)
    if json:
        print(json_format.dumps(table.to_pylist(), indent=1))
    else:
        sys.stdout.flush()
        csv.write_csv(table.drop_columns(["why"]), sys.stdout.buffer)
    if standing is not None:
        print(worth(known, **given).why, file=sys.stderr)
    return 0
