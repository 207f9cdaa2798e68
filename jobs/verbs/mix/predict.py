"""`gristmill mix predict TABLE... --at MIXTURE`: the metrics of mixtures, with intervals."""

from __future__ import annotations

import json as json_format
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jobs.errors import UserError
from jobs.verbs import paper
from jobs.verbs.mix import asked

if TYPE_CHECKING:
    from mixing.fitting import Prediction

HEAD = ("mixture", "metric", "predicted", "low", "high")


def run(
    tables: Sequence[str],
    *,
    at: Sequence[str] = (),
    losses: str | None = None,
    only: Sequence[str] = (),
    settings: str | None = None,
    sets: Sequence[str] = (),
    json: bool = False,
) -> int:
    """Print a row a mixture and metric. Raises UserError for mixtures that are none."""
    if not at:
        raise UserError("--at: no mixture; give a mixture file, or domains as --at web=0.7,code=0.3")
    mixtures = {text: mixture_of(text) for text in at}
    standing = asked.standing(asked.settings_of(settings, sets), asked.read(tables, losses, only))
    predicted = standing.law.predict(list(mixtures.values()))
    told = list(_rows(predicted, list(mixtures)))
    if json:
        from mixing.loop.telling import finite

        rows = [dict(zip(("mixture", "metric", "value", "low", "high"), row, strict=True)) for row in told]
        print(json_format.dumps(finite(rows), indent=1))
    else:
        print("\n".join(paper.table([(*row[:2], *(round(value, 4) for value in row[2:])) for row in told], HEAD)))
    for warning in predicted.warnings:
        print(warning, file=sys.stderr)
    return 0


def _rows(predicted: Prediction, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for row, name in enumerate(names):
        for metric in predicted.mean.column_names:
            sides = (predicted.mean, predicted.low, predicted.high)
            yield (name, metric, *(float(side[metric][row].as_py()) for side in sides))


def mixture_of(text: str) -> dict[str, float]:
    """A mixture from a file (its weights), or from web=0.7,code=0.3."""
    if not text.strip():
        raise UserError("--at: is empty; give a mixture file, or domains as web=0.7,code=0.3")
    if "=" not in text or os.path.exists(text):
        from mixing.loop import read_mixture

        return dict(read_mixture(text).weights)
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.partition("=")
        if name.strip() in found:
            raise UserError(f"--at {text}: {name.strip()} stands twice; give each domain once")
        try:
            found[name.strip()] = float(share)
        except ValueError:
            raise UserError(f"--at {text}: {part!r} is no DOMAIN=SHARE; write web=0.7,code=0.3") from None
    return found
