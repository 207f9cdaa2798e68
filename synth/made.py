"""What a run made, as rows with their item's pass rate; and from there to a dataset: selected, then exported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from synth.items import Item, Sample
from synth.rows import Row
from synth.verdicts import Outcome

if TYPE_CHECKING:
    from synth.exports import Account, Export
    from synth.selection import Selected, Selection
    from synth.store import Store

Told = tuple[str, Item, Sample, tuple[str, ...]]
JUDGED = (Outcome.RIGHT.value, Outcome.WRONG.value)


def rows(store: Store) -> Iterator[Row]:
    """All samples of a store, by task, item and number, whatever became of them."""
    for _, own in groupby(store.rows(), key=lambda told: (told[0], told[1].id)):
        yield from _of_item(list(own))


def _of_item(told: list[Told]) -> Iterator[Row]:
    verdicts = [sample.verdict for _, _, sample, _ in told if sample.verdict in JUDGED]
    judged = len(verdicts)
    rate = verdicts.count(Outcome.RIGHT.value) / judged if judged else None
    for task, item, sample, teachers in told:
        yield Row(sample=sample, item=item, task=task, teachers=teachers, judged=judged, pass_rate=rate)


def selected(store: Store, settings: Selection | None) -> tuple[Iterable[Row], Selected | None]:
    """The rows with what selection rejects, and its account; all rows where there is no selection."""
    if settings is None:
        return rows(store), None
    from synth.selection import select

    found = select(lambda: rows(store), settings)
    return (found.apply(row) for row in rows(store)), found


def export(
    store: Store,
    destination: str,
    made: Export,
    selection: Selection | None = None,
    facts: Mapping[str, Any] | None = None,
) -> tuple[Account, Selected | None]:
    """Select, prove and write. Raises SynthError as synth.exports.export does."""
    from synth.exports import export as write

    told, found = selected(store, selection)
    chosen = {} if found is None else {"selection": {**found.counts, "kept": found.kept}}
    return write(told, destination, made, {**(facts or {}), **chosen}), found
