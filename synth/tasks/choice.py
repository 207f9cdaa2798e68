"""Which of several right answers are kept. Those that are not are rejected, not lost, so that choices can be compared.

Source of the rule: GRPO-lambda, Dai et al. 2025 (arXiv:2505.18086), which rewards short reasoning only where a group
of rollouts is mostly right, because pressure on length costs accuracy where it is not. As a choice of traces: of an
item that is solved reliably the shortest right one, of others the longest, or the most unlike each other. Differs from
it: the bound is a fixed share of right rollouts, since a flow knows no other item.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.tasks.candidates import Candidate
from synth.verdicts import Outcome as Says

Shingles = frozenset[tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Choice:
    """What is kept of an item's accepted rollouts.

    keep: how many; None keeps all, and nothing is chosen. reliable: share of right ones among the rollouts that were
        found right or wrong, from which an item counts as solved reliably.
    solved, unsolved: of items that are, and are not, which ones are kept: the shortest, the longest, the most diverse
        (the longest first, then whichever is least like those kept, by words three in a row), or the first.
    """

    keep: int | None = Field(default=1, ge=1)
    reliable: float = Field(default=0.75, ge=0, le=1)
    solved: Literal["shortest", "longest", "diverse", "first"] = "shortest"
    unsolved: Literal["shortest", "longest", "diverse", "first"] = "longest"


def pass_rate(candidates: Sequence[Candidate]) -> float | None:
    """Share of right ones among those found right or wrong; None where none was."""
    says = [one.verdict.outcome for one in candidates if one.verdict]
    judged = [said for said in says if said in (Says.RIGHT, Says.WRONG)]
    return judged.count(Says.RIGHT) / len(judged) if judged else None


def chosen(candidates: Sequence[Candidate], choice: Choice) -> list[Candidate]:
    """All candidates, those open that were not chosen rejected as choice.not_chosen; ties go to the earlier one."""
    rate = pass_rate(candidates)
    made = list(candidates) if rate is None else [one.told(pass_rate=rate) for one in candidates]
    if choice.keep is None:
        return made
    by = choice.solved if rate is not None and rate >= choice.reliable else choice.unsolved
    open_ = [one for one in made if one.open]
    kept = {one.at for one in _first(open_, by, choice.keep)}
    return [one if one.at in kept else one.rejected("choice.not_chosen") for one in made]


def _first(candidates: Sequence[Candidate], by: str, keep: int) -> list[Candidate]:
    match by:
        case "shortest":
            return sorted(candidates, key=lambda one: (one.length, one.at))[:keep]
        case "longest":
            return sorted(candidates, key=lambda one: (-one.length, one.at))[:keep]
        case "diverse":
            return _diverse(candidates, keep)
        case _:
            return list(candidates[:keep])


def _diverse(candidates: Sequence[Candidate], keep: int) -> list[Candidate]:
    """Greedily: each further one is the one whose nearest among the kept is farthest (Gonzalez 1985)."""
    left = sorted(candidates, key=lambda one: (-one.length, one.at))
    if keep >= len(left):
        return left
    shingles = {one.at: _shingles(one) for one in left}
    kept, left = left[:1], left[1:]
    nearest = {one.at: _likeness(shingles[one.at], shingles[kept[0].at]) for one in left}
    while len(kept) < keep:
        # `left` is in order of length, and min takes the first of equals.
        best = min(left, key=lambda one: nearest[one.at])
        kept.append(best)
        left.remove(best)
        for one in left:
            nearest[one.at] = max(nearest[one.at], _likeness(shingles[one.at], shingles[best.at]))
    return kept


def _shingles(one: Candidate) -> Shingles:
    reasoning = (one.parsed.reasoning or "") if one.parsed else ""
    words = f"{reasoning} {one.answer}".casefold().split()
    return frozenset(zip(words, words[1:], words[2:], strict=False)) or frozenset([tuple(words)])


def _likeness(first: Shingles, second: Shingles) -> float:
    return len(first & second) / len(first | second)
