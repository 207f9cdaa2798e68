"""Settings of how often a prompt is tried, how hot, and when no more."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

STRICT = ConfigDict(extra="forbid")
Count = Annotated[int, Field(ge=1, le=100_000)]
Share = Annotated[float, Field(gt=0, lt=1)]
Pseudo = Annotated[float, Field(gt=0, le=1000)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Tempering:
    """Hotter for prompts that are rarely solved, colder for those that mostly are (PTGS, Oh et al. 2026,
    arXiv:2610.01509, algorithm 1 and equation 4).

    reference: the temperature of a prompt that is solved as often as `targets` want; None takes the requests' own.
    tau: temperatures lie between reference / tau and reference * tau; the paper has 1.2 to 1.5.
    gamma: what earlier waves count for, a wave further on: .95 in the paper, 1 forgets nothing.
    targets: the wanted share of right answers in the first and in the last wave, geometric in between: the paper's,
        in the course of training. On simulated teachers fixed ones from .25 to .5 did as well.
    """

    reference: float | None = Field(default=None, gt=0, le=10)
    tau: float = Field(default=1.5, gt=1, le=4)
    gamma: float = Field(default=0.95, gt=0, le=1)
    targets: tuple[Share, Share] = (0.25, 0.5)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class GiveUp:
    """When a prompt is left alone though it lacks right answers. Each rule is off at None; any one is enough.

    chance: give up once the posterior probability that another wave has a right answer is below it.
    all_wrong: give up once at least so many were found wrong and none right.
    tokens: give up once the next right answer is expected to cost more completion tokens than this.
    prior: pseudo-counts of right and wrong answers before the first rollout. (.5, .5) is Jeffreys' and cautious: 12
        wrong ones leave a wave of 4 a chance of .13. Where a pilot is there, `Population.prior` fits one.
    """

    chance: Share | None = 0.15
    all_wrong: Count | None = None
    tokens: Count | None = None
    prior: tuple[Pseudo, Pseudo] = (0.5, 0.5)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Rollouts:
    """How often each prompt is tried.

    wave: rollouts that are asked for at once. cap: rollouts of a prompt at most, failed ones included.
    accepted: no further wave once so many are right; None goes on to the cap.
    give_up: when to leave a prompt that has fewer; None never does.
    tempering: temperatures by how often a prompt is solved; None leaves the requests' own.
    truncated: what a reply that ran out of tokens counts for where it was not found right: wrong, or nothing.
    allocation: each, every prompt by the rules above; hbn, a pilot of every prompt and then shares by how uncertain
        its difficulty is (hierarchical Beta-Binomial, Shen et al. 2026, arXiv:2609.28560), so that difficulty is
        estimated without bias and with the least variance for the budget.
    mean_rollouts: with hbn, rollouts a prompt on average, those of the pilot included; the budget is kept exactly.
    pilot: with hbn, rollouts of every prompt before the shares; None takes the published size for `mean_rollouts`.
    """

    wave: Count = 4
    cap: Count = 16
    accepted: Count | None = 4
    give_up: GiveUp | None = None
    tempering: Tempering | None = None
    truncated: Literal["wrong", "nothing"] = "wrong"
    allocation: Literal["each", "hbn"] = "each"
    mean_rollouts: Annotated[int, Field(ge=2, le=100_000)] | None = None
    pilot: Count | None = None

    @model_validator(mode="after")
    def _one_design(self) -> Rollouts:
        if self.allocation == "each":
            if self.mean_rollouts is not None or self.pilot is not None:
                raise ValueError(
                    "mean_rollouts, pilot: of allocation hbn alone; leave them out, or set allocation: hbn"
                )
            if self.wave > self.cap:
                raise ValueError("wave: above cap; a wave is at most all rollouts of a prompt")
            return self
        if self.mean_rollouts is None:
            raise ValueError("mean_rollouts: missing; with allocation hbn give rollouts a prompt on average")
        if self.mean_rollouts > self.cap:
            raise ValueError("mean_rollouts: above cap, the most that a prompt may get; raise cap, to 4 times it say")
        if self.pilot is not None and self.pilot >= self.mean_rollouts:
            raise ValueError("pilot: not below mean_rollouts, so that nothing is left to share out")
        if self.tempering is not None or self.give_up is not None:
            raise ValueError(
                "tempering, give_up: with allocation hbn the estimate needs one temperature and all shares"
            )
        return self

    @property
    def pilot_rollouts(self) -> int | None:
        """Of every prompt before the shares; None where each prompt goes by itself."""
        if self.allocation == "each" or self.mean_rollouts is None:
            return None
        from synth.rollouts.design import design_of

        return design_of(self.mean_rollouts, self.pilot).pilot
