"""A made row with what travels with it: the item that it was made from, and who made it."""

from __future__ import annotations

from dataclasses import dataclass

from synth.items import Item, Sample


@dataclass(frozen=True, kw_only=True)
class Row:
    """A sample as selection and exports take it. task, teachers: the recipe's names of the task, and of all who made
    it. judged: the item's rollouts that a verifier found right or wrong; pass_rate: the share of right ones, None
    where none was judged."""

    sample: Sample
    item: Item
    task: str = ""
    teachers: tuple[str, ...] = ()
    judged: int = 0
    pass_rate: float | None = None

    @property
    def id(self) -> str:
        """Of the sample for ever: task, item and number."""
        return f"{self.task}/{self.item.id}/{self.sample.number}"
