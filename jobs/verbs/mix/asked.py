"""What the verbs of `gristmill mix` share: tables of observations and settings read, as the loop has them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jobs import settings_file
from jobs.errors import UserError
from jobs.steps import MIX, load_target
from shards.store import exists, join, read_json

if TYPE_CHECKING:
    from mixing.loop import Mix
    from mixing.loop.ground import Ground
    from mixing.loop.standing import Standing
    from mixing.observations import Observations

TABLE = "observations.parquet"
SLOW = 20_000
"""Runs times domains: 512 runs of RegMix's 17 domains (8,704) take half a minute of a core."""


def settings_of(path: str | None, sets: Sequence[str]) -> Mix:
    """The settings of a mix, from a file or all defaults, with one-off changes."""
    made: Mix = settings_file.optional(path, load_target(MIX), sets)
    return made


def read(tables: Sequence[str], losses: str | None = None, only: Sequence[str] = ()) -> Observations:
    """Observations of all tables together; what was left out is said on stderr.

    losses: a table of the metrics of the one table's runs. only: COLUMN=VALUE of the rows to take.
    """
    from mixing.observations import pool, read_observations

    if losses is not None and len(tables) != 1:
        raise UserError("--losses: goes with one table of weights, whose runs it measures; pool others afterwards")
    kept = dict(_column(text) for text in only)
    found = pool(*(read_observations(table_of(path), losses, only=kept) for path in tables), called=list(tables))
    for note in found.notes:
        print(note, file=sys.stderr)
    return found


def table_of(path: str) -> str:
    """The table that a path stands for: itself, or that of a folder of proxies, of a mix, or of a run with one."""
    if "://" in path or not os.path.isdir(path):
        return path
    for folder in (path, mix_folder(path)):
        if folder is not None and exists(join(folder, TABLE)):
            return join(folder, TABLE)
    raise UserError(f"{path}: holds no {TABLE}; name a table, or the folder of proxies or of a mix")


def _column(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UserError(f"--only {text}: is no COLUMN=VALUE; write --only experiment=5Mix")
    return name, value


def mix_folder(out: str) -> str | None:
    """The folder of the mix step of a run's output; None where it has none."""
    steps = (read_json(join(out, "run.json")) or {}).get("steps", [])
    return next((join(out, step["folder"]) for step in steps if step.get("kind") == "mix"), None)


def standing(settings: Mix, observations: Observations) -> Standing:
    """The observations as the loop has them between rounds, with an objective that they can tell."""
    from mixing.loop.goal import HELD_OUT
    from mixing.loop.standing import Standing

    asked = settings.objective
    held_out = [f"{HELD_OUT}{domain}" for domain in observations.domains]
    if not asked.weights and not asked.worst and not set(held_out) <= set(observations.metrics):
        told = [name for at, name in enumerate(observations.metrics) if np.isfinite(observations.values[:, at]).any()]
        print(f"objective: the mean of {', '.join(told)}"[:200], file=sys.stderr)
        settings = replace(settings, objective=replace(asked, weights=dict.fromkeys(told, 1.0)))
    size = (len(observations), len(observations.domains))
    if size[0] * size[1] > SLOW:
        slow = "laws are fitted to folds of them all, which takes minutes; --only takes fewer rows"
        print(f"{size[0]} runs of {size[1]} domains: {slow}", file=sys.stderr, flush=True)
    return Standing(settings, observations.domains, (), observations)


def ground(settings: Mix, domains: Sequence[str]) -> Ground:
    """The domains, and the tokens there are of each as far as the settings say."""
    from mixing.loop.ground import Ground

    unique = settings.constraints.unique_tokens
    return Ground(available={domain: unique.get(domain, float("nan")) for domain in sorted(domains)})
