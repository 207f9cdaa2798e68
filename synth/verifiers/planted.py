"""Right and wrong answers planted among a run's own golds: what its verifiers let pass, and what they turn away.

A verifier's verdicts are worth what its errors allow. So each run makes, of the golds that it has, answers that are
known to be right (the gold written otherwise) and known to be wrong (near misses), has them verified like any other,
and tells the two rates with their intervals.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from synth.items import Item
from synth.requests import digest
from synth.verdicts import Check, Outcome, Verdict
from synth.verifiers.planted_answers import PLANTERS
from synth.verifiers.rates import Rate, rate

PER_KIND: Final = 200
"""Items of a kind that get a right and a wrong answer each: of no error in 200, 1.9% is the interval's upper end."""


@dataclass(frozen=True, kw_only=True)
class Plant:
    """A planted answer: the check to make, whether it is right, how it was made, and of which item."""

    check: Check
    right: bool
    how: str
    item: str


@dataclass(frozen=True, kw_only=True)
class PlantedRates:
    """Of a kind. false_positive: of the wrong answers with a verdict, those taken for right. false_negative: of the
    right ones with a verdict, those taken for wrong. errors, unscored: of all, without a verdict either way; they are
    in neither rate. missed: by how the answer was made, the false verdicts."""

    kind: str
    false_positive: Rate
    false_negative: Rate
    errors: int = 0
    unscored: int = 0
    missed: Mapping[str, int] = field(default_factory=dict)


def plant(items: Iterable[Item], *, per_kind: int = PER_KIND, seed: int = 0) -> list[Plant]:
    """A right and a wrong answer each for up to per_kind items of each kind, one item once: which items and which
    answers is a matter of the seed and the items' ids alone, never of their order. Items are read once and not kept.

    Kinds that no answers can be made for (constraints, code: see `plantable`) give none.
    """
    chosen: dict[str, list[tuple[int, str, Item]]] = {}
    for item in items:
        if item.gold is None or item.verifier not in PLANTERS:
            continue
        place = -int(digest([seed, item.id]), 16)
        held = chosen.setdefault(item.verifier, [])
        push = heapq.heappush if len(held) < per_kind else heapq.heappushpop
        push(held, (place, item.id, item))
    planted = []
    for kind in sorted(chosen):
        for _, _, item in sorted(chosen[kind], key=lambda one: -one[0]):
            planted += _of(item, seed)
    return planted


def plantable(kind: str) -> bool:
    """Whether answers can be planted for a kind."""
    return kind in PLANTERS


def _of(item: Item, seed: int) -> list[Plant]:
    random = np.random.default_rng(int(digest(["planted", seed, item.id]), 16))
    made = []
    variants = PLANTERS[item.verifier](item.gold, item.options)
    for right, answers in ((True, variants.right), (False, variants.wrong)):
        if answers:
            how, answer = answers[int(random.integers(len(answers)))]
            check = Check(kind=item.verifier, gold=item.gold, answer=answer, options=item.options)
            made.append(Plant(check=check, right=right, how=how, item=item.id))
    return made


def planted_rates(plants: Sequence[Plant], verdicts: Sequence[Verdict]) -> list[PlantedRates]:
    """The rates of each kind, from the plants' verdicts in the same order."""
    told: dict[str, list[tuple[Plant, Outcome]]] = {}
    for one, verdict in zip(plants, verdicts, strict=True):
        told.setdefault(one.check.kind, []).append((one, verdict.outcome))
    return [_rates(kind, told[kind]) for kind in sorted(told)]


def _rates(kind: str, told: Sequence[tuple[Plant, Outcome]]) -> PlantedRates:
    decided = [(one, outcome is Outcome.RIGHT) for one, outcome in told if outcome in (Outcome.RIGHT, Outcome.WRONG)]
    rights = [taken for one, taken in decided if one.right]
    wrongs = [taken for one, taken in decided if not one.right]
    return PlantedRates(
        kind=kind,
        false_positive=rate(sum(wrongs), len(wrongs)),
        false_negative=rate(len(rights) - sum(rights), len(rights)),
        errors=sum(outcome is Outcome.ERROR for _, outcome in told),
        unscored=sum(outcome is Outcome.UNSCORED for _, outcome in told),
        missed=dict(sorted(Counter(one.how for one, taken in decided if taken != one.right).items())),
    )
