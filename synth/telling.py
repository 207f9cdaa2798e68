"""What a run made, as numbers and a few examples: for its report and for the cards of its datasets.

told(store) keys:
    account                       synth.running.Account as JSON: ledgers, requests, costs, alarms
    teachers                      {name: model@revision}
    difficulty                    {task: [items a tenth of pass rate]}, of items with a judged rollout
    tokens                        {task: [{tokens, accepted, rejected}]}, samples by powers of two of their tokens
    passes                        {task: [{k, pass_at_k, low, high}]}
    ends                          {task: {reason: samples}}
    trust                         planted rates and golds in doubt; see synth.trust
    selection                     counts, comparison, shares and residuals; null without one
    examples                      [{task, item, outcome, reason, prompt, answer, figures}], some of each reason
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import xxhash

from shards.store import join, read_json
from synth.items import Outcome
from synth.made import selected
from synth.requests import Identity
from synth.rows import Row
from synth.trust import FILE as TRUST

if TYPE_CHECKING:
    from synth.selection import Selected, Selection
    from synth.store import Store

BINS: Final = 10
KS: Final = (1, 2, 4, 8, 16, 32, 64)
EXAMPLES: Final = 3
"""Of each task and reason."""
MOST_EXAMPLES: Final = 60
MOST_CHARACTERS: Final = 2_000


def told(store: Store) -> dict[str, Any]:
    """Of all samples of a store; one pass over them, and one more where there is a selection."""
    from synth.running.accounts import account_of

    settings = store.runs.settings()
    rows, found = selected(store, selection_of(settings))
    made = _Made()
    for row in rows:
        made.add(row)
    made.close()
    whole = {
        "account": account_of(store).plain(),
        "teachers": teachers_of(settings),
        "difficulty": {task: list(bins) for task, bins in sorted(made.difficulty.items())},
        "tokens": {task: _by_length(counts) for task, counts in sorted(made.tokens.items())},
        "passes": {task: _passes(counts) for task, counts in sorted(made.verdicts.items())},
        "ends": {task: dict(sorted(counts.items())) for task, counts in sorted(made.ends.items())},
        "trust": read_json(join(str(store.folder), TRUST)) or {"planted": [], "gold_errors": [], "judged_items": 0},
        "selection": None if found is None else _selection(found),
        "examples": list(made.examples()),
    }
    cleaned: dict[str, Any] = _cleaned(whole)
    return cleaned


def _cleaned(value: Any) -> Any:
    """The same with a mark for lone surrogates, which models and rows may hold and UTF-8 cannot."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(one) for key, one in value.items()}
    return [_cleaned(one) for one in value] if isinstance(value, list | tuple) else value


def selection_of(settings: Mapping[str, Any]) -> Selection | None:
    """The selection of a run's settings, checked when they were read; None where nothing is selected."""
    from pydantic import TypeAdapter

    from synth.selection import Selection

    asked = settings.get("select")
    made: Selection | None = TypeAdapter(Selection).validate_python(asked) if asked else None
    return made


def teachers_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Model and revision of each teacher."""
    found = {}
    for name, one in settings.get("teachers", {}).items():
        known = Identity(model=one["model"], revision=one.get("revision", ""))
        found[name] = f"{known.model}@{known.revision}" if known.revision else known.model
    return found


def facts_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that a dataset's card shows, from what `told` tells."""
    account = told["account"]
    facts: dict[str, Any] = {
        "teachers": dict(told["teachers"]),
        "acceptance": {
            task: f"{one['accepted']} of {one['total']} samples" for task, one in account["samples"].items()
        },
        "not_accepted": dict(sum((Counter(ends) for ends in told["ends"].values()), Counter[str]())),
        "run": {"requests": account["requests"]["sent"], "seconds": account["seconds"], "cost": account["cost"]},
    }
    for one in told["trust"]["planted"]:
        facts[f"verifier_{one['kind']}_on_planted_answers"] = {
            "false positives": _of(one["false_positive"]),
            "false negatives": _of(one["false_negative"]),
            "errors": one["errors"],
        }
    for task, passes in told["passes"].items():
        facts[f"pass_at_k_of_{task}"] = {f"pass@{one['k']}": one["pass_at_k"] for one in passes}
    return facts


def _of(rate: Mapping[str, Any]) -> str:
    return f"{rate['count']} of {rate['total']} (95% interval {rate['low']:.4f} to {rate['high']:.4f})"


@dataclass
class _Made:
    difficulty: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0] * BINS))
    tokens: dict[str, Counter[tuple[int, bool]]] = field(default_factory=lambda: defaultdict(Counter))
    verdicts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    ends: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    kept: dict[tuple[str, str], list[tuple[int, str, Row]]] = field(default_factory=lambda: defaultdict(list))
    item: tuple[str, str] = ("", "")
    here: str = ""

    def add(self, row: Row) -> None:
        sample = row.sample
        accepted = sample.outcome is Outcome.ACCEPTED
        if (row.task, row.item.id) != self.item:
            self.close()
            self.item = (row.task, row.item.id)
            if row.pass_rate is not None:
                self.difficulty[row.task][min(int(row.pass_rate * BINS), BINS - 1)] += 1
        self.here += {"right": "r", "wrong": "w"}.get(sample.verdict, "")
        self.tokens[row.task][max(sample.tokens, 1).bit_length(), accepted] += 1
        if not accepted:
            self.ends[row.task][sample.reason or str(sample.outcome)] += 1
        place = -xxhash.xxh3_64_intdigest(row.id.encode("utf-8", "replace"))
        held = self.kept[row.task, sample.reason or str(sample.outcome)]
        (heapq.heappush if len(held) < EXAMPLES else heapq.heappushpop)(held, (place, row.id, row))

    def close(self) -> None:
        """The item is over: what its first rollouts were, in order."""
        if self.here:
            self.verdicts[self.item[0]][self.here[: KS[-1]]] += 1
        self.here = ""

    def examples(self) -> Iterator[dict[str, Any]]:
        rows = [row for _, held in sorted(self.kept.items()) for _, _, row in sorted(held, key=lambda one: one[:2])]
        for row in sorted(rows, key=lambda one: one.sample.outcome is not Outcome.ACCEPTED)[:MOST_EXAMPLES]:
            yield _example(row)


def _example(row: Row) -> dict[str, Any]:
    from synth.selection.traces import asked, written

    sample = row.sample
    return {
        "task": row.task, "item": row.item.id, "outcome": str(sample.outcome), "reason": sample.reason,
        "verdict": sample.verdict, "tokens": sample.tokens, "pass_rate": row.pass_rate,
        "prompt": (asked(row) or row.item.text)[:MOST_CHARACTERS], "answer": written(row)[:MOST_CHARACTERS],
        "figures": {name: value for name, value in sorted(sample.figures.items()) if math.isfinite(value)},
    }  # fmt: skip


def _by_length(counts: Counter[tuple[int, bool]]) -> list[dict[str, int]]:
    powers = sorted({power for power, _ in counts})
    return [
        {"tokens": 1 << power, "accepted": counts[power, True], "rejected": counts[power, False]} for power in powers
    ]


def _passes(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """pass@k over the items, for k that all of them have rollouts for; of so many first ones of each alone, since where
    to stop was decided by what came before."""
    import numpy as np

    from synth.rollouts import pass_at

    first = min(map(len, counts))
    right = np.repeat([told[:first].count("r") for told in counts], list(counts.values()))
    found = []
    for k in (k for k in KS if k <= first):
        values = pass_at(np.full(len(right), first), right, k)
        half = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else None
        mean = float(values.mean())
        low, high = (None, None) if half is None else (max(mean - half, 0.0), min(mean + half, 1.0))
        found.append({"k": k, "pass_at_k": mean, "low": low, "high": high})
    return found


def _selection(found: Selected) -> dict[str, Any]:
    balanced = None if found.balanced is None else {k: v for k, v in asdict(found.balanced).items() if k != "kept"}
    return {
        "kept": found.kept, "tokens": found.tokens, "counts": found.counts, "comparison": found.comparison,
        "balanced": balanced,
    }  # fmt: skip
