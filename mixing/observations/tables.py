"""Observations read from tables: `train proxies`' own, a row a run with named columns, two files, published layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from mixing.observations.merging import merged, pool
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points, by_name, simplex_rows
from mixing.observations.published import LAYOUTS, count_of, layout_of, plain
from mixing.observations.sheets import Sheet, Source, is_empty, read_sheet
from mixing.observations.tidy import EPOCHS, TRAINED, UNIQUE, WEIGHT

KEYS: Final = ("run", "run_name", "run_id", "name", "index", "id", "mixture")
PARAMETERS: Final = ("parameters", "params", "n_params", "num_params", "model_size")
TOKENS: Final = ("tokens", "n_tokens", "num_tokens")
KNOWN: Final = frozenset(
    {*KEYS, *PARAMETERS, *TOKENS, "seed", "flops", "size", "status", "error", "metric", "value", "experiment"}
)
"""Columns that are no metric."""

SHIFTED = 0.02
"""A run whose domains were trained on in shares that differ from those asked for by more than this in total (a spent
domain gives its share to the others) counts with the shares that it had."""


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
    sheet, told = _plain(read_sheet(source), layout, only or {}), None
    if losses is not None:
        told = _plain(read_sheet(losses, "table of losses"), layout, {})
        key = _key(sheet, told, key)
    sheet = _ended(sheet)
    names = _domains(sheet, domains, alone=told is None)
    measured = _metrics(sheet, names, may_be_none=told is not None)
    observations, first = merged(
        _observations(sheet, names, measured, parameters=parameters, tokens=tokens, unique_tokens=unique_tokens),
        [sheet.where(row) for row in range(len(sheet))],
    )
    if told is not None and key is not None:
        observations = _joined(observations, [sheet.texts(key)[row] for row in first], told, key)
    return observations if metrics is None else observations.only(metrics)


def _plain(sheet: Sheet, layout: str, only: Mapping[str, Any]) -> Sheet:
    if layout not in ("auto", "plain", *LAYOUTS):
        raise MixingError(f"layout: no {layout!r}; there are auto, plain, {', '.join(LAYOUTS)}")
    sheet = sheet.only(only) if only else sheet
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
        columns = {name: name for name in sheet.columns if name not in KNOWN}
    if not columns:
        raise MixingError(f"{sheet.name}: no column of weights; name them weight_DOMAIN, or give domains=(...)")
    return columns


def _metrics(sheet: Sheet, domains: Mapping[str, str], *, may_be_none: bool) -> dict[str, Floats]:
    """[n] values of each metric, NaN where a row does not tell it."""
    if {"metric", "value"} <= set(sheet.columns):
        return _long(sheet)
    taken = KNOWN | set(domains.values())
    found = {}
    for name, cells in sheet.columns.items():
        if name in taken or name.startswith((WEIGHT, UNIQUE, TRAINED, EPOCHS)):
            continue
        if any(_is_number(cell) for cell in cells):
            found[name] = sheet.numbers(name)
    if not found and not may_be_none:
        raise MixingError(f"{sheet.name}: no column of a metric; give one beside the weights, or a table of losses")
    return found


def _long(sheet: Sheet) -> dict[str, Floats]:
    metrics, values = sheet.texts("metric"), sheet.numbers("value")
    unnamed = [row for row, name in enumerate(metrics) if not name and not np.isnan(values[row])]
    if unnamed:
        raise MixingError(f"{sheet.where(unnamed[0])}: a value without a metric; name what was measured")
    found: dict[str, Floats] = {}
    for row, name in enumerate(metrics):
        if name:
            found.setdefault(name, np.full(len(sheet), np.nan))[row] = values[row]
    return found


def _is_number(cell: Any) -> bool:
    try:
        return not is_empty(cell) and float(cell) == float(cell)
    except (TypeError, ValueError):
        return False


def _observations(
    sheet: Sheet,
    domains: Mapping[str, str],
    metrics: Mapping[str, Floats],
    *,
    parameters: float | None,
    tokens: float | None,
    unique_tokens: Mapping[str, float] | None,
) -> Observations:
    """A row a row of the sheet."""
    names = tuple(domains)
    weights = np.stack([sheet.numbers(column) for column in domains.values()], axis=1)
    weights = simplex_rows(names, weights, sheet.name, sheet.places)
    notes = list(sheet.notes)
    weights, note = _trained(sheet, names, weights)
    notes += [note] if note else []
    seen = _scale(sheet, TOKENS, tokens)
    unique = np.stack([_unique(sheet, name, weights[:, at], seen) for at, name in enumerate(names)], axis=1)
    if unique_tokens is not None:
        told = by_name(names, unique_tokens, where="unique_tokens")
        unique = np.where(np.isnan(unique), told[None, :], unique)
    values = np.stack(list(metrics.values()), axis=1) if metrics else np.empty((len(sheet), 0))
    values, infinite = _finite(values, sheet)
    notes += infinite
    seeds = sheet.numbers("seed") if "seed" in sheet.columns else np.full(len(sheet), np.nan)
    return Observations.of(
        Points.of(names, weights, parameters=_scale(sheet, PARAMETERS, parameters), tokens=seen, unique_tokens=unique),
        tuple(metrics),
        values,
        runs=_runs(sheet),
        seeds=np.where(np.isnan(seeds), -1, seeds),
        flops=sheet.numbers("flops") if "flops" in sheet.columns else np.nan,
        notes=notes,
    )


def _runs(sheet: Sheet) -> list[str]:
    """Names of runs: a column of names as it is; numbers, and lines where nothing names a run, after the file's."""
    for column in ("run", "run_name", "run_id", "name"):
        if column in sheet.columns:
            told = sheet.texts(column)
            if not all(told):
                raise MixingError(f"{sheet.where(told.index(''))}: {column} is empty; name the run")
            return told
    numbered = sheet.first("index", "id")
    return [f"{sheet.stem}-{told}" for told in (sheet.texts(numbered) if numbered else sheet.places)]


def _scale(sheet: Sheet, columns: Sequence[str], given: float | None) -> Floats:
    """[n] N or D; counts may be written as 70M."""
    column = sheet.first(*columns)
    if column is None:
        return np.full(len(sheet), np.nan if given is None else given)
    cells = [count_of(cell) or cell if isinstance(cell, str) else cell for cell in sheet.columns[column]]
    found = replace(sheet, columns={column: cells}).numbers(column)
    bad = np.flatnonzero((found <= 0) | np.isinf(found))
    if len(bad):
        raise MixingError(f"{sheet.where(bad[0])}: {column} is {found[bad[0]]:g}; give a number above 0, or nothing")
    return np.where(np.isnan(found), np.nan if given is None else given, found)


def _unique(sheet: Sheet, domain: str, weights: Floats, tokens: Floats) -> Floats:
    """[n] unique tokens of a domain; from its epochs where only those are told."""
    if f"{UNIQUE}{domain}" in sheet.columns:
        found = sheet.numbers(f"{UNIQUE}{domain}")
        bad = np.flatnonzero(found < 0)
        if len(bad):
            raise MixingError(f"{sheet.where(bad[0])}: {UNIQUE}{domain} is {found[bad[0]]:g}; give 0 or more")
        return found
    if f"{EPOCHS}{domain}" in sheet.columns:
        epochs = sheet.numbers(f"{EPOCHS}{domain}")
        return np.where(epochs > 0, weights * tokens / np.where(epochs > 0, epochs, 1), np.nan)
    return np.full(len(sheet), np.nan)


def _trained(sheet: Sheet, domains: Sequence[str], weights: Floats) -> tuple[Floats, str | None]:
    """The weights, or what was trained on where that is another mixture."""
    if not all(f"{TRAINED}{name}" in sheet.columns for name in domains):
        return weights, None
    tokens = np.stack([sheet.numbers(f"{TRAINED}{name}") for name in domains], axis=1)
    total = tokens.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        had = tokens / total
        shifted = np.abs(had - weights).sum(axis=1) / 2 > SHIFTED
    if not shifted.any():
        return weights, None
    runs = len({run for run, moved in zip(_runs(sheet), shifted, strict=True) if moved})
    note = f"{sheet.name}: {runs} run{'s' if runs > 1 else ''} trained on other shares than asked: the shares they had"
    return np.where(shifted[:, None], had, weights), note


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


def _joined(observations: Observations, keys: list[str], losses: Sheet, key: str) -> Observations:
    """Observations with the metrics of another table; runs that it does not tell of are left out and counted."""
    held: dict[str, int] = {}
    for row, name in enumerate(keys):
        if name in held:
            raise MixingError(f"{key}: {name!r} stands for several rows of weights; give each a name of its own")
        held[name] = row
    found = losses.texts(key)
    strange = [row for row, name in enumerate(found) if name not in held]
    if strange:
        row = strange[0]
        raise MixingError(
            f"{losses.where(row)}: {key} is {found[row]!r}, which has no weights; the two tables name the same runs"
        )
    rows = [held[name] for name in found]
    told = _metrics(losses, {}, may_be_none=False)
    names = tuple(dict.fromkeys((*observations.metrics, *told)))
    columns = [told.get(name, np.full(len(rows), np.nan)) for name in names]
    values, notes = _finite(np.stack(columns, axis=1), losses)
    measured, first = merged(
        replace(observations.rows(rows), metrics=names, values=values, notes=()),
        [losses.where(row) for row in range(len(losses))],
    )
    kept = [rows[row] for row in first]
    lost = len(observations) - len(kept)
    if lost:
        notes.append(f"{losses.name}: tells nothing of {lost} run{'s' if lost > 1 else ''}: left out")
    # What the first table measured itself is another telling of the same runs.
    both = pool(observations.rows(kept), measured) if observations.metrics else measured
    return replace(both, notes=(*observations.notes, *measured.notes, *notes))


def _finite(values: Floats, sheet: Sheet) -> tuple[Floats, list[str]]:
    """Values with NaN where one is infinite (a run that diverged), and a note of how many."""
    infinite = np.isinf(values)
    count = int(infinite.sum())
    told = "value is infinite and counts" if count == 1 else "values are infinite and count"
    return np.where(infinite, np.nan, values), [f"{sheet.name}: {count} {told} as not measured"] if count else []
