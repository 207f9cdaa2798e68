"""Balance by several keys at once, in loss-bearing tokens, by leaving samples out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from synth.selection.settings import Balance

ROUNDS = 200
Floats = npt.NDArray[np.float64]
Columns = Mapping[str, npt.NDArray[np.object_]]
Targets = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class Balanced:
    """kept: bool[n]. shares: {key: {value: (target, reached)}}, of tokens. residuals: what is off by more than the
    tolerance, in words: an honest end where targets cannot be met together."""

    kept: npt.NDArray[np.bool_]
    shares: dict[str, dict[str, tuple[float, float]]]
    residuals: tuple[str, ...]


def balance(
    keys: Mapping[str, Sequence[str]], tokens: Sequence[int], ids: Sequence[str], settings: Balance, seed: int
) -> Balanced:
    """Choose among n samples. keys: each key's value a sample; tokens: with a loss, a sample; ids: stable names, by
    whose hash samples are chosen, so that no order matters.

    Shares are reached by iterative proportional fitting (Deming & Stephan 1940) of a keeping probability a sample, the
    largest of which is then 1: as much is kept as the scarcest value allows. Values without a target share go.
    """
    size = np.asarray(tokens, np.float64)
    targets = {key: dict(shares) for key, shares in settings.targets.items()}
    columns = {key: np.asarray(keys[key], object) for key in targets}
    if settings.general_share is not None:
        general = np.isin(np.asarray(keys["domain"], object), settings.general_domains)
        columns["general"] = np.where(general, "general", "other").astype(object)
        targets["general"] = {"general": settings.general_share, "other": 1 - settings.general_share}
    weight = _fitted(columns, targets, size)
    order = [xxhash.xxh3_64_intdigest(f"{seed}\0{name}".encode("utf-8", "replace")) for name in ids]
    kept = _drawn(weight, size, columns, np.array(order, np.uint64))
    shares = {key: _shares(columns[key], size * kept, wanted) for key, wanted in targets.items()}
    residuals = tuple(
        f"{key} {value}: {reached:.3f} of the tokens, where {wanted:.3f} was asked"
        for key, told in shares.items()
        for value, (wanted, reached) in told.items()
        if abs(wanted - reached) > settings.tolerance
    )
    return Balanced(kept=kept, shares=shares, residuals=residuals)


def _fitted(columns: Columns, targets: Targets, size: Floats) -> Floats:
    weight = np.ones(len(size))
    for key, wanted in targets.items():
        weight[~np.isin(columns[key], [value for value, share in wanted.items() if share > 0])] = 0.0
    for _ in range(ROUNDS):
        before = weight.copy()
        for key, wanted in targets.items():
            mass = {value: float((weight * size)[columns[key] == value].sum()) for value in wanted}
            there = sum(share for value, share in wanted.items() if mass[value] > 0)
            total = sum(mass.values())
            for value, share in wanted.items():
                if mass[value] > 0:
                    weight[columns[key] == value] *= share / there * total / mass[value]
        weight /= weight.max(initial=0.0) or 1.0
        if np.abs(weight - before).max(initial=0.0) < 1e-9:
            break
    return weight


def _drawn(weight: Floats, size: Floats, columns: Columns, order: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Within each cell of values, samples in the order of their hashes until the cell's share of tokens is reached."""
    cells: dict[tuple[str, ...], list[int]] = {}
    for at in np.argsort(order, kind="stable").tolist():
        cells.setdefault(tuple(str(column[at]) for column in columns.values()), []).append(at)
    kept = np.zeros(len(size), np.bool_)
    for rows in cells.values():
        wanted = float((weight[rows] * size[rows]).sum())
        reached = np.cumsum(size[rows])
        # the sample that crosses the share stays when it brings the cell nearer
        kept[rows] = (reached - size[rows] / 2 < wanted) & (weight[rows] > 0)
    return kept


def _shares(
    column: npt.NDArray[np.object_], size: Floats, wanted: Mapping[str, float]
) -> dict[str, tuple[float, float]]:
    total = float(size.sum()) or 1.0
    return {value: (share, float(size[column == value].sum()) / total) for value, share in wanted.items()}
