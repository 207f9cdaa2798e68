"""Columns of a sheet in the plain layouts, read as observations: weights, scales, names of runs, metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points, by_name, simplex_rows
from mixing.observations.published import count_of
from mixing.observations.sheets import Sheet, is_empty
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


def observations_of(
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
    values, infinite = finite(values, sheet)
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


def metrics_of(sheet: Sheet, domains: Mapping[str, str], *, may_be_none: bool) -> dict[str, Floats]:
    """[n] values of each metric, NaN where a row does not tell it. Columns of words are no metrics."""
    if {"metric", "value"} <= set(sheet.columns):
        return _long(sheet)
    taken = KNOWN | set(domains.values())
    found = {}
    for name in sheet.columns:
        if name in taken or name.startswith((WEIGHT, UNIQUE, TRAINED, EPOCHS)):
            continue
        if has_numbers(sheet, name) or all(is_empty(cell) for cell in sheet.columns[name]):
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


def has_numbers(sheet: Sheet, column: str) -> bool:
    """Whether a cell of the column is a number: columns of words alone are neither weights nor metrics."""
    return any(_is_number(cell) for cell in sheet.columns[column])


def _is_number(cell: Any) -> bool:
    try:
        return not is_empty(cell) and float(cell) == float(cell)
    except (TypeError, ValueError):
        return False


def finite(values: Floats, sheet: Sheet) -> tuple[Floats, list[str]]:
    """Values with NaN where one is infinite (a run that diverged), and a note of how many."""
    infinite = np.isinf(values)
    count = int(infinite.sum())
    told = "value is infinite and counts" if count == 1 else "values are infinite and count"
    return np.where(infinite, np.nan, values), [f"{sheet.name}: {count} {told} as not measured"] if count else []
