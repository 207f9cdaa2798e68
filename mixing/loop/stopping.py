"""How many mixtures the next round has, or why there is none: the budget, and what more runs are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mixing.loop.settings import Mix
from mixing.loop.sizes import runs_a_mixture, scales_of
from mixing.loop.standing import Standing
from mixing.observations.points import MixingError
from mixing.optimum.constraints import Constraints

if TYPE_CHECKING:
    from mixing.design import Worth

LOOKED_AHEAD = 10
"""Runs whose worth is asked before another round is made."""


@dataclass(frozen=True, kw_only=True)
class Next:
    """rows: mixtures of the next round; 0 with a `reason` where there is none. filling: it only fills space.

    worth: of ten more runs, where it was asked.
    """

    rows: int
    reason: str = ""
    filling: bool = False
    worth: Worth | None = None


def next_round(settings: Mix, constraints: Constraints, standing: Standing, tokens: Sequence[str]) -> Next:
    """Raises MixingError where the budget is spent and nothing was measured."""
    each = runs_a_mixture(settings, tokens)
    domains = len(standing.domains)
    budget, first = settings.budget(domains), settings.first(domains)
    left = (budget - standing.spent) // each
    had = 0 if standing.observations is None else len(set(standing.observations.runs)) + len(standing.failed)
    wanted = settings.batch_runs // each if had >= first else -(-(first - had) // each)
    rows = _within_flops(settings, standing, max(1, min(wanted, left)), each)
    if left < 1 or not rows:
        if standing.observations is None:
            raise MixingError(_nothing(standing, budget, each))
        return Next(rows=0, reason=f"the budget of {budget} runs is spent" if left < 1 else _flops(settings, standing))
    if had < first:
        return Next(rows=rows, filling=True)
    if not settings.looks_ahead:
        return Next(rows=rows)
    told = worth_of(settings, constraints, standing, tokens)
    least = settings.least_worth(told.best)
    if told.gain < least:
        reason = f"{LOOKED_AHEAD} more runs are expected to gain {told.gain:.2g}, less than {least:.2g}"
        return Next(rows=0, reason=reason, worth=told)
    return Next(rows=rows, worth=told)


def worth_of(settings: Mix, constraints: Constraints, standing: Standing, tokens: Sequence[str]) -> Worth:
    """What ten more runs are expected to gain."""
    from mixing.design import worth

    return worth(
        standing.rows, LOOKED_AHEAD, law=standing.law, constraints=constraints, objective=standing.objective,
        seed=settings.seed, **scales_of(settings, tokens),
    )  # fmt: skip


def _within_flops(settings: Mix, standing: Standing, rows: int, each: int) -> int:
    """Fewer mixtures, where as many would go beyond budget_flops at the mean cost of a run so far."""
    done = standing.spent - len(standing.failed)
    if settings.budget_flops is None or not done or not standing.flops:
        return rows
    return max(0, min(rows, int((settings.budget_flops - standing.flops) * done / (standing.flops * each))))


def _flops(settings: Mix, standing: Standing) -> str:
    return f"{standing.flops:.3g} of {settings.budget_flops:.3g} FLOPs are spent, and another run would go beyond them"


def _nothing(standing: Standing, budget: int, each: int) -> str:
    if standing.failed:
        run, why = next(iter(standing.failed.items()))
        return f"runs: all {standing.spent} failed; the first, {run}: {why}"
    return f"runs: {budget} are fewer than the {each} of one mixture (seeds, sizes); give more"
