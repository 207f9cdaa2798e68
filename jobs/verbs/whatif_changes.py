"""What `--set` changes in a finished run, and whether stored measurements can answer it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobs import recipe as recipes
from jobs.errors import UserError
from jobs.fingerprint import flatten, step_settings
from jobs.recipe import StepEntry
from jobs.report.database import Output
from jobs.steps import STEPS

JUDGES: dict[str, tuple[str, ...] | None] = {
    "quality": None,
    "language": ("keep", "min_score", "min_characters", "keep_abstained"),
    "url": ("min_soft_words",),
    "minhash": ("verify",),
}
"""Settings that decide on what was measured, by kind of step; None = all. Others would have to measure again."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """One step of the run, as it was and as it would be. number: its position in run.json, `read` being 0."""

    number: int
    name: str
    before: StepEntry
    after: StepEntry
    changes: dict[str, tuple[Any, Any]]

    @property
    def kind(self) -> str:
        return self.after.kind

    @property
    def old(self) -> Any:
        """The step object that ran."""
        return self.before.step

    @property
    def new(self) -> Any:
        """The step object that would run."""
        return self.after.step

    @property
    def is_corpus(self) -> bool:
        return STEPS[self.kind].scope == "corpus"


def places(found: Output, sets: Sequence[str]) -> list[Place]:
    """Every step of the recipe that has run, in order. Raises UserError where nothing changes, or what cannot be
    judged."""
    if not sets:
        raise UserError("whatif: say what to change, as --set quality.gopher_quality.min_words=40")
    document = found.run.get("recipe") or {}
    label = f"{found.out}/run.json"
    before, after = recipes.build(document, label=label), recipes.build(document, sets, label=label)
    numbers = {step["step"]: number for number, step in enumerate(found.steps)}
    told = [
        Place(number=numbers[old.name], name=old.name, before=old, after=new, changes=_changes(old, new))
        for old, new in zip(before.steps, after.steps, strict=True)
        if old.name in numbers
    ]  # fmt: skip
    changed = [place for place in told if place.changes]
    if _rest(before.document) != _rest(after.document):
        raise UserError("whatif: only settings of steps can be tried; for others: gristmill run RECIPE --set ...")
    if not changed:
        raise UserError(f"whatif: {', '.join(sets)}: this is what the run had, nothing changes")
    for place in changed:
        _check(place)
    return told


def _changes(before: StepEntry, after: StepEntry) -> dict[str, tuple[Any, Any]]:
    old, new = flatten(step_settings(before)), flatten(step_settings(after))
    return {key: (old.get(key), new.get(key)) for key in sorted({*old, *new}) if old.get(key) != new.get(key)}


def _rest(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "steps"}


def _check(place: Place) -> None:
    known = JUDGES.get(place.kind, ())
    for key in place.changes:
        if known is not None and key.split(".")[0] not in known:
            can = (
                f"of {place.kind}, what was measured answers {', '.join(known)}"
                if known
                else "of the steps, url, language, quality and minhash can be judged again"
            )
            raise UserError(
                f"{place.name}.{key}: needs a run (gristmill run RECIPE --set {place.name}.{key}=...); {can}"
            )
