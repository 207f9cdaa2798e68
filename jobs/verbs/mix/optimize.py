"""`gristmill mix optimize TABLE...`: the best mixture under constraints, what each costs, and how flat it is."""

from __future__ import annotations

import json as json_format
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from jobs.errors import UserError
from jobs.verbs import paper
from jobs.verbs.mix import asked

Row = dict[str, Any]


def run(
    tables: Sequence[str],
    *,
    losses: str | None = None,
    only: Sequence[str] = (),
    settings: str | None = None,
    output: str | None = None,
    sets: Sequence[str] = (),
    json: bool = False,
) -> int:
    """Print the mixture and what it follows from; write it to `output`, which train and export take."""
    from mixing.loop import digests
    from mixing.loop.finding import Found
    from mixing.loop.mixture_file import write_mixture
    from mixing.loop.telling import finite

    if output is not None:
        _check_output(output, [*tables, *([losses] if losses else [])])
    made = asked.settings_of(settings, sets)
    standing = asked.standing(made, asked.read(tables, losses, only))
    ground = asked.ground(made, standing.domains)
    found = Found.of(standing.settings, made.bound(ground.available), ground, standing)
    mixture = found.file(digests.answer(made, ground, digests.digest_of(sorted(standing.rows.runs))))
    told = finite({**mixture.to_json(), "optimum": found.optimum.told(), "why": standing.law.why})
    if output is not None:
        write_mixture(mixture, output)
    print(json_format.dumps(told, indent=1) if json else "\n".join(lines(told, made.objective.pessimism)))
    for warning in [*standing.law.warnings, *found.optimum.warnings]:
        print(warning, file=sys.stderr)
    if output is not None:
        print(f"{output}: written; gristmill export takes it as --mixture, train as its weights", file=sys.stderr)
    return 0


def _check_output(output: str, inputs: Sequence[str]) -> None:
    """Refuse to write over anything but a mixture file, before anything is fitted."""
    from mixing.loop import read_mixture
    from mixing.observations import MixingError

    if os.path.isdir(output):
        raise UserError(f"--output {output}: is a folder; name a file in it, as {os.path.join(output, 'mixture.json')}")
    if os.path.exists(output):
        if any(os.path.exists(path) and os.path.samefile(path, output) for path in inputs):
            raise UserError(f"--output {output}: is what is read; name another file")
        try:
            read_mixture(output)
        except MixingError:
            raise UserError(f"--output {output}: holds something else than a mixture; name another file") from None


def lines(told: Row, pessimism: float = 0.0) -> Iterator[str]:
    """The mixture for people: shares with their near-optimal ranges, what binds, what stands beside it."""
    optimum = told["optimum"]
    minimised = f"objective + {pessimism:g} half-widths" if pessimism else "objective"
    ranges, epochs = (optimum["near"] or {}).get("ranges", {}), told["epochs"] or {}
    rows = [
        (
            name,
            round(share, 4),
            "{low:.3f}-{high:.3f}".format(**ranges[name]) if name in ranges else "",
            round(epochs[name], 2) if epochs.get(name) is not None else None,
        )
        for name, share in sorted(told["weights"].items(), key=lambda entry: (-entry[1], entry[0]))
    ]
    yield from paper.table(rows, ("domain", "share", "about as good", "epochs"))
    yield ""
    objective, found = told["objective"], optimum["certificate"]
    value, low, high = (number(objective[key]) for key in ("value", "low", "high"))
    yield f"predicted {value} [{low}, {high}], by {found['method']}"
    yield ""
    beside = [("optimum", optimum["value"], None, "yes"), *_beside(optimum)]
    yield from paper.table(
        [(name, _rounded(value), _rounded(more), keeps) for name, value, more, keeps in beside],
        ("mixture", minimised, "worse by", "allowed"),
    )
    if optimum["prices"]:
        yield ""
        prices = [
            (price["constraint"], price["kind"], _rounded(price["limit"]), _rounded(price["price"]))
            for price in optimum["prices"]
        ]
        yield from paper.table(prices, ("what binds", "", "limit", "gain a unit of it"))
    yield ""
    yield str(told["why"])


def _beside(optimum: Row) -> Iterator[tuple[str, Any, Any, str]]:
    others = [
        *optimum["comparisons"],
        *([{**optimum["unconstrained"], "name": "unconstrained"}] if optimum["unconstrained"] else []),
    ]
    for one in sorted(others, key=lambda one: one["value"] if one["value"] is not None else 0.0):
        yield one["name"], one["value"], one["excess"], "yes" if one["keeps"] else "no"


def number(value: float | None) -> str:
    """A predicted value, or that it is not known."""
    return "?" if value is None else f"{value:.4f}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")
