"""How far verdicts of a run can be trusted: planted answers whose truth is known, and golds that answers speak against.

OUT/trust.json    {"planted": [a row a verifier], "gold_errors": [a row a suspicious item], "judged_items": n}
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from synth.errors import SynthError
from synth.made import rows
from synth.rows import Row
from synth.verdicts import Check, Outcome, Verdict

if TYPE_CHECKING:
    from synth.store import Store
    from synth.verifiers.rates import Rate

FILE: Final = "trust.json"
MOST_SUSPICIONS: Final = 1_000
CheckAll = Callable[[Sequence[Check]], list[Verdict]]


def trust(store: Store, check_all: CheckAll, *, seed: int = 0) -> dict[str, Any]:
    """Plant answers to the run's own golds, and hold each gold against the majority of the answers.

    check_all: verdicts of checks, in order; an error is a verdict. What is planted depends on the items and the seed.
    """
    from synth.verifiers.planted import plant, planted_rates

    check_all = _tolerant(check_all)
    plants = plant((item for _, item, _, _ in store.items.items()), seed=seed)
    verdicts = check_all([one.check for one in plants])
    table = list(_answers(store, check_all))
    return {
        "planted": [_told(asdict(one), one) for one in planted_rates(plants, verdicts)],
        "gold_errors": _suspicions(table),
        "judged_items": len(table),
    }


def _tolerant(check_all: CheckAll) -> CheckAll:
    """An item whose options its verifier does not take is an error of that item, and no end of a run."""

    def each(checks: Sequence[Check]) -> list[Verdict]:
        try:
            return check_all(checks)
        except SynthError:
            return [verdict for check in checks for verdict in alone(check)]

    def alone(check: Check) -> list[Verdict]:
        try:
            return check_all([check])
        except SynthError:
            return [Verdict(outcome=Outcome.ERROR, reason="options")]

    return each


def lines(told: dict[str, Any]) -> Iterator[str]:
    """For people: a line a verifier, and how many golds are in doubt."""
    for one in told["planted"]:
        yield (
            f"verifier {one['kind']}: of planted answers {_share(one['false_positive'])} wrong ones pass, "
            f"{_share(one['false_negative'])} right ones fail" + (f", {one['errors']} errors" if one["errors"] else "")
        )
    if doubted := told["gold_errors"]:
        names = ", ".join(f"{one['task']}/{one['item']}" for one in doubted[:5])
        yield f"golds in doubt: {len(doubted)} of {told['judged_items']} items ({names}); see gristmill synth report"


def _share(rate: dict[str, Any]) -> str:
    if rate["share"] is None:
        return "none of no"
    return f"{rate['share']:.1%} [{rate['low']:.1%}, {rate['high']:.1%}] of {rate['total']}"


def _told(plain: dict[str, Any], rates: Any) -> dict[str, Any]:
    def with_share(one: Rate) -> dict[str, Any]:
        return {**asdict(one), "share": one.share}

    return {
        **plain,
        "false_positive": with_share(rates.false_positive),
        "false_negative": with_share(rates.false_negative),
    }


def _answers(store: Store, check_all: CheckAll) -> Iterator[dict[str, Any]]:
    """Each item that was judged: which answers its gold agrees with, and which are the same."""
    from synth.verifiers.gold_errors import grouped

    for (task, item), own in groupby(rows(store), key=lambda row: (row.task, row.item.id)):
        made = [row for row in own if row.sample.verdict]
        agrees = [_agrees(row) for row in made]
        if sum(one is not None for one in agrees) < 2 or not made[0].item.verifier:
            continue
        answers = [_answer(row) for row in made]
        groups = _driven(grouped(made[0].item.verifier, answers, made[0].item.options), check_all)
        yield {"task": task, "item": item, "agrees": agrees, "groups": groups}


def _agrees(row: Row) -> bool | None:
    verdict = row.sample.verdict
    return verdict == Outcome.RIGHT if verdict in (Outcome.RIGHT, Outcome.WRONG) else None


def _answer(row: Row) -> str | None:
    turns = row.sample.messages
    content = turns[-1].get("content") if turns and turns[-1].get("role") == "assistant" else None
    return content if isinstance(content, str) else None


def _driven(flow: Generator[Sequence[Check], Any, list[int | None]], check_all: CheckAll) -> list[int | None]:
    try:
        checks = next(flow)
        while True:
            checks = flow.send(check_all(checks))
    except StopIteration as ended:
        found: list[int | None] = ended.value
        return found


def _suspicions(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from synth.verifiers.gold_errors import suspect_golds

    found = [
        {**asdict(one), "task": row["task"]} for one, row in zip(suspect_golds(table), table, strict=True) if one.flag
    ]
    return sorted(found, key=lambda one: (-one["odds"], one["task"], one["item"]))[:MOST_SUSPICIONS]
