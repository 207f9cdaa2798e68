"""Observations read from tables: `train proxies`' own, a row a run with named columns, two files, published layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixing.observations.columns import KEYS, KNOWN, finite, has_numbers, metrics_of, observations_of
from mixing.observations.merging import merged, pool
from mixing.observations.observations import Observations
from mixing.observations.points import MixingError
from mixing.observations.published import LAYOUTS, layout_of, plain
from mixing.observations.sheets import Sheet, Source, read_sheet
from mixing.observations.tidy import WEIGHT


def read_observations(
    source: Source,
    losses: Source | None = None,
    *,
    layout: str = "auto",
    key: str | None = None,
    domains: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    only: Mapping[str, Any] | None = None,
    parameters: float | None = None,
    tokens: float | None = None,
    unique_tokens: Mapping[str, float] | None = None,
) -> Observations:
    """Observations of a CSV or Parquet file (path or URL) or an Arrow table, or of two that are joined by a column.

    source: one of: the table of `train proxies` (metric and value columns); a row a run, with columns weight_DOMAIN
        (or the columns that `domains` names) and a column a metric; a layout of mixing.observations.published.
    losses: metrics in a table of their own, joined by `key` (a column of both; else the first of KEYS that both have).
        The order of its rows and columns means nothing. Without weight_ columns in source, all columns there that have
        no other meaning are domains. It may tell metrics as columns, or in rows with metric and value.
    layout: auto, plain, or a published one by name.
    domains, metrics: columns of weights, and the metrics to keep. only: {column: value, or a tuple of values} of the
        rows to keep, such as {"experiment": "5Mix", "step": 30000}.
    parameters, tokens, unique_tokens: of all runs, where no column tells.

    Runs that failed, and repeated rows, are left out and counted in `.notes`. Raises MixingError, with file and line,
    for what cannot be read as that.
    """
    given, told = read_sheet(source), None
    sheet = _plain(given.only(only) if only else given, layout)
    if losses is not None:
        told = _plain(read_sheet(losses, "table of losses"), layout)
        key = _key(sheet, told, key)
        told = _of_runs(told, key, given if key in given.columns else sheet, left=sheet)
    sheet = _ended(sheet)
    names = _domains(sheet, domains, alone=told is None)
    measured = metrics_of(sheet, names, may_be_none=told is not None)
    observations, first = merged(
        observations_of(sheet, names, measured, parameters=parameters, tokens=tokens, unique_tokens=unique_tokens),
        [sheet.where(row) for row in range(len(sheet))],
    )
    if told is not None and key is not None:
        observations = _joined(observations, [sheet.texts(key)[row] for row in first], told, key)
    return observations if metrics is None else observations.only(metrics)


def _plain(sheet: Sheet, layout: str) -> Sheet:
    if layout not in ("auto", "plain", *LAYOUTS):
        raise MixingError(f"layout: no {layout!r}; there are auto, plain, {', '.join(LAYOUTS)}")
    found = layout_of(sheet) if layout == "auto" else None if layout == "plain" else layout
    return sheet if found is None else plain(sheet, found)


def _ended(sheet: Sheet) -> Sheet:
    """The sheet without the rows of runs that failed."""
    if "status" not in sheet.columns:
        return sheet
    states = sheet.texts("status")
    failed = {row for row, state in enumerate(states) if state.lower() in ("failed", "error", "crashed")}
    if len(failed) == len(sheet):
        raise MixingError(f"{sheet.name}: every run failed; there is nothing to fit")
    if not failed:
        return sheet
    kept = sheet.rows([row for row in range(len(sheet)) if row not in failed])
    count = len({sheet.texts("run")[row] for row in failed}) if "run" in sheet.columns else len(failed)
    note = f"{sheet.name}: {count} failed run{'s' if count > 1 else ''} left out"
    return replace(kept, notes=(*kept.notes, note))


def _domains(sheet: Sheet, asked: Sequence[str] | None, *, alone: bool) -> dict[str, str]:
    """Column of each domain."""
    columns = {name.removeprefix(WEIGHT): name for name in sheet.columns if name.startswith(WEIGHT)}
    if asked is not None:
        found = {name: columns.get(name, name) for name in asked}
        missing = [name for name, column in found.items() if column not in sheet.columns]
        if missing:
            raise MixingError(f"{sheet.name}: no column of domain {missing[0]!r}; there are {', '.join(sheet.columns)}")
        return found
    if not columns and not alone:
        columns = {name: name for name in sheet.columns if name not in KNOWN and has_numbers(sheet, name)}
    if not columns:
        raise MixingError(f"{sheet.name}: no column of weights; name them weight_DOMAIN, or give domains=(...)")
    return columns


def _key(sheet: Sheet, losses: Sheet, asked: str | None) -> str:
    """The column that joins both."""
    if asked is not None:
        for one in (sheet, losses):
            if asked not in one.columns:
                raise MixingError(f"{one.name}: no column {asked!r} to join by; there are {', '.join(one.columns)}")
        return asked
    both = [name for name in KEYS if name in sheet.columns and name in losses.columns]
    if not both:
        told = f"{sheet.name} and {losses.name} share no column of {', '.join(KEYS)}"
        raise MixingError(f"losses: {told}; rows are joined by a name, never by their order: give key=")
    return both[0]


def _of_runs(losses: Sheet, key: str, given: Sheet, *, left: Sheet) -> Sheet:
    """The losses of the runs that are wanted. Raises MixingError for a run that the weights do not know at all."""
    known, ended = set(given.texts(key)), set(_ended(left).texts(key))
    found = losses.texts(key)
    for row, name in enumerate(found):
        if name not in known:
            told = f"{key} is {name!r}, which has no weights; the two tables name the same runs"
            raise MixingError(f"{losses.where(row)}: {told}")
    wanted = [row for row, name in enumerate(found) if name in ended]
    if not wanted:
        raise MixingError(f"{losses.name}: tells nothing of the runs that are wanted; name the same runs in {key}")
    return losses.rows(wanted)


def _joined(observations: Observations, keys: list[str], losses: Sheet, key: str) -> Observations:
    """Observations with the metrics of another table; runs that neither measured are left out and counted."""
    held: dict[str, int] = {}
    for row, name in enumerate(keys):
        if name in held:
            raise MixingError(f"{key}: {name!r} stands for several rows of weights; give each a name of its own")
        held[name] = row
    names = losses.texts(key)
    losses = losses.rows(sorted(range(len(losses)), key=lambda row: held[names[row]]))
    rows = [held[name] for name in losses.texts(key)]
    told = metrics_of(losses, {}, may_be_none=False)
    values, notes = finite(np.stack(list(told.values()), axis=1), losses)
    measured, _ = merged(
        replace(observations.rows(rows), metrics=tuple(told), values=values, notes=()),
        [losses.where(row) for row in range(len(losses))],
    )
    if observations.metrics:  # what the first table measured itself is another telling of the same runs
        return replace(pool(observations, measured), notes=(*observations.notes, *measured.notes, *notes))
    lost = len(observations) - len(measured)
    notes += [f"{losses.name}: tells nothing of {lost} run{'s' if lost > 1 else ''}: left out"] if lost else []
    return replace(measured, notes=(*observations.notes, *measured.notes, *notes))
