"""A step judged again from its stored signals: exact, without a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from jobs.errors import UserError
from jobs.report.database import Output, name
from jobs.report.rebuilt import as_measured
from jobs.verbs.whatif_changes import Place

BATCH = 8192
KEPT = ""
"""Stands for a rule where a row is kept."""


@dataclass(kw_only=True)
class Judgement:
    """What a step would decide, in rows. moves: {(rule before, rule after): rows}, KEPT where it is kept; without
    rows that
    an earlier changed step would drop. untouched: rows that it does not measure, since their domain is none of its own.
    """

    place: Place
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    untouched: int = 0

    def rules(self) -> Counter[str]:
        """Rows that it would drop, by rule."""
        told = Counter[str]()
        for (_, new), rows in self.moves.items():
            if new != KEPT:
                told[new] += rows
        return told

    def count(self, *, kept_before: bool | None = None, kept_after: bool | None = None) -> int:
        return sum(
            rows for (old, new), rows in self.moves.items()
            if kept_before in (None, old == KEPT) and kept_after in (None, new == KEPT)
        )  # fmt: skip


def judge(found: Output, place: Place) -> Judgement:
    """Judge every row that came to the step again. Rows that change sides are added to the table `moved`.

    moved: id, at (the step's number), kept (whether it would be kept), rows. Rows that an earlier changed step would
    drop do not come here. Raises UserError where the stored signals do not give the stored drops.
    """
    stored = found.columns(f"signals_{place.name}")
    if not stored:
        raise UserError(f"whatif: {place.name} has no stored signals in {found.out}; run the recipe again")
    missing = set(place.new.signals.names) - set(stored)
    if missing:
        raise UserError(f"whatif: {place.name} was measured without {', '.join(sorted(missing))}; run the recipe again")
    told = Judgement(place=place)
    for ids, counts, old, told_before, new in _batches(found, place):
        if not np.array_equal(old, told_before):
            raise UserError(
                f"whatif: the stored signals of {place.name} do not give its drops, so its code or lists have "
                "changed; run the recipe again"
            )
        for pair, rows in _pairs(old, new, counts):
            told.moves[pair] += rows
        changed = np.flatnonzero((old == KEPT) != (new == KEPT))
        if len(changed):
            _move(found, place, ids.take(pa.array(changed)), new[changed] == KEPT, counts[changed])
    told.untouched = _untouched(found, place)
    return told


def prepare(found: Output) -> None:
    """The table that `judge` fills."""
    found.connection.execute('CREATE TABLE moved (id VARCHAR, "at" INTEGER, kept BOOLEAN, rows BIGINT)')


def _batches(found: Output, place: Place) -> Iterator[tuple[Any, ...]]:
    """ids, rows of each, the rule stored for it, the rules of the step as it was and as it would be."""
    columns = ", ".join(f"any_value(s.{name(field.name)}) AS {name(field.name)}" for field in place.new.signals)
    # Quarantined rows have no verdict to change; rows of one id are identical.
    query = f"""SELECT s.id, count(*) AS _rows, coalesce(any_value(d.rule), '{KEPT}') AS _rule, {columns}
        FROM {name(f"signals_{place.name}")} s
        LEFT JOIN (SELECT id, any_value(rule) AS rule FROM dropped WHERE step = ? GROUP BY id) d ON d.id = s.id
        WHERE s.id NOT IN (SELECT id FROM quarantine WHERE step = ? AND id IS NOT NULL)
        AND s.id NOT IN (SELECT id FROM moved WHERE NOT kept) GROUP BY s.id"""
    for batch in found.stream(query, [place.name, place.name], BATCH):
        measured = as_measured(place.new, pa.Table.from_batches([batch]))
        counts = batch.column("_rows").to_numpy(zero_copy_only=False).astype(np.int64)
        stored = np.array(batch.column("_rule").to_pylist(), dtype=object)
        yield batch.column("id"), counts, stored, _first_rules(place.old, measured), _first_rules(place.new, measured)


def _first_rules(step: Any, measured: pa.RecordBatch) -> Any:
    """The first rule that each row fails, KEPT where it fails none."""
    checks = step.checks(measured)
    names = np.array([KEPT, *(check.rule for check in checks)], dtype=object)
    failed = np.stack([np.zeros(measured.num_rows, np.bool_), *(check.failed for check in checks)])
    return names[failed.argmax(axis=0)]


def _pairs(old: Any, new: Any, counts: Any) -> Iterator[tuple[tuple[str, str], int]]:
    for before, after, rows in zip(old.tolist(), new.tolist(), counts.tolist(), strict=True):
        yield (before, after), rows


def _move(found: Output, place: Place, ids: pa.Array, kept: Any, counts: Any) -> None:
    table = pa.table(
        {
            "id": ids,
            "at": pa.array([place.number] * len(ids), pa.int32()),
            "kept": pa.array(kept.astype(bool)),
            "rows": pa.array(counts),
        }
    )
    found.insert("moved", table)


def _untouched(found: Output, place: Place) -> int:
    """Rows of other domains, which pass the step unmeasured, without those that an earlier changed step would drop."""
    view = name(f"signals_{place.name}")
    rows = found.manifests[place.name]["rows"]["in"] - found.row(f"SELECT count(*) AS n FROM {view}")["n"]
    came = [step["step"] for step in found.steps[place.number :]]
    gone = found.row(
        f"""SELECT coalesce(sum(rows), 0)::BIGINT AS n FROM moved WHERE NOT kept AND "at" < ? AND id NOT IN (SELECT id
        FROM {view})
        AND (id IN (SELECT id FROM documents_stored) OR id IN (SELECT id FROM dropped WHERE step IN (SELECT
        unnest(?))))""",
        place.number, came,
    )  # fmt: skip
    return int(rows - gone["n"])
