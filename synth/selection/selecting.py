"""Filters over the accepted samples of a run: what goes and why, and what each filter by itself is worth.

Samples that were not accepted pass through untouched. Texts are read in groups; held in memory are one short record a
sample and each item's prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.errors import SynthError
from synth.items import Outcome
from synth.rows import Row
from synth.selection.balancing import Balanced, balance
from synth.selection.settings import Filter, Selection
from synth.selection.traces import asked, reasons, written

if TYPE_CHECKING:
    from dedup import ContaminationIndex

GROUP_ROWS = 512
FILTERS: tuple[Filter, ...] = ("difficulty", "traces", "contamination", "near_duplicates", "balance")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What is held of an accepted sample. broken: by filter, the reason why that filter alone would reject it."""

    id: str
    item: str
    tokens: int
    pass_rate: float | None
    keys: dict[str, str]
    broken: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Selected:
    """reasons: {row id: select.<filter>...} of what goes. kept, tokens: of what stays. counts: by reason.

    comparison: a row a filter that is on: alone (what it rejects by itself); last (what switching it off would bring
    back), with tokens and mean pass rate of these.
    """

    reasons: dict[str, str]
    kept: int
    tokens: int
    counts: dict[str, int]
    comparison: list[dict[str, Any]]
    balanced: Balanced | None = None

    def apply(self, row: Row) -> Row:
        """The row with its sample rejected where a filter says so."""
        reason = self.reasons.get(row.id)
        if reason is None:
            return row
        return replace(row, sample=replace(row.sample, outcome=Outcome.REJECTED, reason=reason))


def select(read: Callable[[], Iterable[Row]], settings: Selection) -> Selected:
    """Decide all accepted samples. read: the rows of the run, again each time it is called, in the same order.

    The same rows in any order give the same answer. Raises what reading benchmarks raises.
    """
    prompts: dict[str, str] = {}
    stage = _Stage(settings=settings, seen=list(_seen(read(), settings, prompts)), prompts=prompts)
    whole = stage.decided(frozenset())
    comparison = [stage.compared(name, whole.reasons) for name in FILTERS if getattr(settings, name) is not None]
    kept = [one for one in stage.seen if one.id not in whole.reasons]
    return Selected(
        reasons=whole.reasons,
        kept=len(kept),
        tokens=sum(one.tokens for one in kept),
        counts=dict(sorted(Counter(whole.reasons.values()).items())),
        comparison=comparison,
        balanced=whole.balanced,
    )


@dataclass(frozen=True, kw_only=True)
class _Decided:
    reasons: dict[str, str]
    balanced: Balanced | None = None


@dataclass(frozen=True, kw_only=True)
class _Stage:
    settings: Selection
    seen: list[Seen]
    prompts: dict[str, str]

    def decided(self, off: frozenset[Filter]) -> _Decided:
        """With some filters off."""
        found: dict[str, str] = {}
        for one in self.seen:
            broken = (one.broken[name] for name in FILTERS if name not in off and one.broken.get(name))
            if reason := next(broken, ""):
                found[one.id] = reason
        if self.settings.near_duplicates is not None and "near_duplicates" not in off:
            gone = self._near_duplicates({one.item for one in self.seen if one.id not in found})
            found |= {one.id: "select.near_duplicate" for one in self.seen if one.id not in found and one.item in gone}
        if self.settings.balance is None or "balance" in off:
            return _Decided(reasons=found)
        left = [one for one in self.seen if one.id not in found]
        keys = {key: [one.keys[key] for one in left] for key in left[0].keys} if left else {}
        if not left:
            return _Decided(reasons=found)
        made = balance(
            keys, [one.tokens for one in left], [one.id for one in left], self.settings.balance, self.settings.seed
        )
        found |= {one.id: "select.balance" for one, kept in zip(left, made.kept.tolist(), strict=True) if not kept}
        return _Decided(reasons=found, balanced=made)

    def compared(self, name: Filter, whole: dict[str, str]) -> dict[str, Any]:
        others: frozenset[Filter] = frozenset(set(FILTERS) - {name})
        alone = self.decided(others).reasons
        without = self.decided(frozenset({name})).reasons
        brought = [one for one in self.seen if one.id in whole and one.id not in without]
        rates = [one.pass_rate for one in brought if one.pass_rate is not None]
        return {
            "filter": name,
            "alone": len(alone),
            "last": len(brought),
            "tokens": sum(one.tokens for one in brought),
            "pass_rate": float(np.mean(rates)) if rates else None,
        }

    def _near_duplicates(self, items: set[str]) -> set[str]:
        import dedup

        assert self.settings.near_duplicates is not None
        names = sorted(items)
        told = dedup.near_duplicates(
            [self.prompts[name] for name in names],
            names,
            ngram=self.settings.near_duplicates.ngram,
            verify=self.settings.near_duplicates.verify,
        )
        return set(told["id"].to_pylist())


def _seen(rows: Iterable[Row], settings: Selection, prompts: dict[str, str]) -> Iterator[Seen]:
    """A record of each accepted sample; each item's prompt goes into `prompts`."""
    index = _index(settings)
    stream = (row for row in rows if row.sample.outcome is Outcome.ACCEPTED)
    while group := list(islice(stream, GROUP_ROWS)):
        broken = [_difficulty(group, settings), _traces(group, settings), _contamination(group, index)]
        for at, row in enumerate(group):
            item = f"{row.task}/{row.item.id}"
            prompts.setdefault(item, asked(row) or row.item.text)
            yield Seen(
                id=row.id,
                item=item,
                tokens=row.sample.tokens,
                pass_rate=row.pass_rate,
                keys=_keys(row),
                broken={name: one[at] for name, one in zip(FILTERS[:3], broken, strict=True) if one[at]},
            )


def _difficulty(rows: Sequence[Row], settings: Selection) -> list[str]:
    bounds = settings.difficulty
    found = []
    for row in rows:
        rate, judged = row.pass_rate, row.judged
        reason = ""
        if bounds is not None and rate is not None and judged >= bounds.min_judged:
            reason = "hard" if rate < bounds.min_pass_rate else "easy" if rate > bounds.max_pass_rate else ""
        found.append(f"select.difficulty.{reason}" if reason else "")
    return found


def _traces(rows: Sequence[Row], settings: Selection) -> list[str]:
    return [""] * len(rows) if settings.traces is None else reasons(rows, settings.traces)


def _contamination(rows: Sequence[Row], index: ContaminationIndex | None) -> list[str]:
    found = [""] * len(rows)
    if index is None:
        return found
    parts = {"prompt": map(asked, rows), "answer": map(written, rows), "rubric": map(_rubric, rows)}
    for part, texts in parts.items():
        for at in set(index.check(list(texts))["row"].to_pylist()):
            found[at] = found[at] or f"select.contaminated.{part}"
    return found


def _index(settings: Selection) -> ContaminationIndex | None:
    from dedup import ContaminationIndex, read_benchmarks

    if settings.contamination is None:
        return None
    try:
        return ContaminationIndex(read_benchmarks(settings.contamination.benchmarks), **settings.contamination.rules)
    except (TypeError, ValueError) as error:  # a file that is none, or a rule that there is not
        raise SynthError(f"select.contamination: {str(error).splitlines()[0]}") from None


def _rubric(row: Row) -> str:
    return "\n".join([*row.sample.facts.values(), str(row.item.options.get("rubric", ""))])


def _keys(row: Row) -> dict[str, str]:
    rate = row.pass_rate
    difficulty = "unknown" if rate is None else "hard" if rate <= 1 / 3 else "medium" if rate <= 2 / 3 else "easy"
    item = row.item
    return {
        "domain": item.domain, "skill": item.skill, "language": item.language, "source": item.source, "task": row.task,
        "kind": str(row.sample.kind), "difficulty": difficulty,
    }  # fmt: skip
