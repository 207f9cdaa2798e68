"""The recipe's `mix:` section: which small models to train, what to minimise, and when it is enough."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator
from pydantic.dataclasses import dataclass

from mixing.optimum.constraints import Constraints
from mixing.optimum.objective import Objective
from train.proxies import Proxies, ProxySize

Count = Annotated[int, Field(ge=1)]
Number = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Worth = Annotated[float, Field(ge=0, allow_inf_nan=False)] | Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?%$")]

TOKENS_PER_PARAMETER = 20.0
"""Length of a proxy where none is said. SOURCE: Hoffmann et al. 2022, arXiv:2203.15556."""
SUM_TOLERANCE = 1e-6
RUNS_PER_DOMAIN, FEWEST_RUNS, BATCH_RUNS = 4, 16, 8
"""Budget and batch where none is said: 64 runs of 17 domains rank mixtures at .985, twice as many at .989, and from 24
runs on batches of 8 were measured (on RegMix's published runs, see bench/)."""
_CONFIG = ConfigDict(extra="forbid")


def _small() -> dict[str, ProxySize]:
    return {"small": ProxySize(layers=4, width=128, heads=4)}


@dataclass(frozen=True, kw_only=True, config=_CONFIG)
class Swarm(Proxies):
    """The settings of the proxies, as train.Proxies has them but for the mixtures, which the loop proposes.

    sizes: one of 4 layers and width 128 where none is named. Without tokens and tokens_per_parameter a run has 20
    tokens a parameter.
    """

    mixtures: tuple[dict[str, float], ...] = ()
    mixtures_file: str | None = None
    sizes: dict[str, ProxySize] = Field(default_factory=_small, min_length=1)

    @field_validator("mixtures", "mixtures_file", mode="before")
    @classmethod
    def _none(cls, given: Any) -> Any:
        if given:
            raise ValueError("the loop proposes the mixtures; remove it, or name earlier runs under observations")
        return given

    @model_validator(mode="after")
    def _whole(self) -> Swarm:
        try:
            self.on(({"any": 1.0},))
        except ValidationError as error:
            raise ValueError(str(error.errors()[0]["ctx"]["error"])) from error
        return self

    def on(self, mixtures: Sequence[Mapping[str, float]], **changes: Any) -> Proxies:
        """The swarm's runs on these mixtures, which are named after their weights."""
        told = {field.name: getattr(self, field.name) for field in fields(Proxies)}
        if self.tokens is None and self.tokens_per_parameter is None:
            told["tokens_per_parameter"] = TOKENS_PER_PARAMETER
        return Proxies(**{**told, "mixtures": tuple(map(dict, mixtures)), **changes})


@dataclass(frozen=True, kw_only=True, config=_CONFIG)
class Phases:
    """A curriculum whose total is the mixture: phases with weights of their own, see mixing.grids.curriculum.

    shares: of the run's tokens, phase by phase, sum 1; such as [0.9, 0.1] for a last phase while the rate decays.
    forward: {domain: ratio}, how dense a domain is in the last phase against the first, compared with the others.
    """

    shares: Annotated[tuple[Number, ...], Field(min_length=1)]
    forward: dict[str, Number] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _whole(self) -> Phases:
        if abs(sum(self.shares) - 1) > SUM_TOLERANCE:
            raise ValueError(f"shares: sum to {sum(self.shares):.6g}; the shares of phases sum to 1")
        return self


@dataclass(frozen=True, kw_only=True, config=_CONFIG)
class Mix:
    """Find the mixture of domains to train on: train small models on many, fit a law, take its optimum.

    proxies: the small models, as train.Proxies has them but for the mixtures.
    runs: how many proxies in all, failed ones counted; None is 4 a domain, at least 16. first_runs: of them, spread
        over all allowed mixtures before any law is fitted; None is half of them. batch_runs: of each round after.
    stop_below: stop before the budget is spent when ten more runs are expected to lower the objective by less than
        this: a number in the objective's unit, or a share of it as "0.1%". 0 spends the budget.
    budget_flops: stop where another round would go beyond it, too.
    objective: what to minimise, see mixing.optimum.Objective; its weights and `worst` may name metrics by pattern
        ("loss/*"). The mean of the domains' held-out losses where nothing is said.
    constraints: what the mixture must keep to, see mixing.optimum.Constraints. prior is "natural", as many tokens as
        each domain has, unless it is given; unique_tokens are those of the token shards unless they are given.
    tokens: length of the run that the mixture is for, in tokens. With it, epochs of each domain are told and bounded by
        max_epochs, and proxies repeat each domain as often as that run will (Proxies.target_tokens). parameters: of
        that run's model, for laws that know scale.
    max_epochs: how often a domain may be repeated at most, one number or by domain; null for no bound. SOURCE of 4: up
        to 4 epochs are about as good as fresh tokens, Muennighoff et al. 2023, arXiv:2305.16264.
    law: "auto" (an average of the best, by cross-validation), a name of mixing.laws.LAWS, or several to choose among.
    method: how runs are proposed, as mixing.design.propose takes it.
    phases: a curriculum, several phases whose total is the mixture; none where nothing is said.
    observations: earlier tables of observations (paths or URLs) that the loop starts from, beside what it measures.
    level: of all intervals. seed: of proposals and fits; the proxies have seeds of their own.
    """

    name: ClassVar[str] = "mix"
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("torch", "scipy", "lightgbm")
    free: ClassVar[frozenset[str]] = frozenset()
    """Settings that change nothing of a result."""

    proxies: Swarm = Field(default_factory=Swarm)
    runs: Count | None = None
    first_runs: Count | None = None
    batch_runs: Count = BATCH_RUNS
    stop_below: Worth = "0.1%"
    budget_flops: Number | None = None
    objective: Objective = Field(default_factory=Objective)
    constraints: Constraints = Field(default_factory=Constraints)
    tokens: Number | None = None
    parameters: Number | None = None
    max_epochs: Number | dict[str, Number] | None = 4.0
    law: str | tuple[str, ...] = "auto"
    method: Literal["auto", "space_filling", "variance", "expected_improvement", "knowledge_gradient"] = "auto"
    phases: Phases | None = None
    observations: tuple[str, ...] = ()
    level: float = Field(default=0.9, gt=0, lt=1)
    seed: int = Field(default=0, ge=0, lt=1 << 63)

    @model_validator(mode="after")
    def _once(self) -> Mix:
        if self.constraints.tokens is not None:
            raise ValueError("constraints.tokens: say it as mix.tokens; it is also what proxies repeat domains by")
        if self.constraints.max_epochs is not None:
            raise ValueError("constraints.max_epochs: say it as mix.max_epochs")
        return self

    def plain(self) -> dict[str, Any]:
        """As JSON values, the way a settings file says them."""
        told: dict[str, Any] = TypeAdapter(Mix).dump_python(self, mode="json")
        return told

    def budget(self, domains: int) -> int:
        """Proxies in all."""
        return self.runs or max(FEWEST_RUNS, RUNS_PER_DOMAIN * domains)

    def first(self, domains: int) -> int:
        """Proxies of the first round."""
        return min(self.budget(domains), self.first_runs or -(-self.budget(domains) // 2))

    @property
    def looks_ahead(self) -> bool:
        """Whether the worth of more runs is asked at all."""
        return self.least_worth(1.0) > 0

    def least_worth(self, value: float) -> float:
        """stop_below in the unit of an objective that is `value` now."""
        if isinstance(self.stop_below, str):
            return abs(value) * float(self.stop_below.rstrip("%")) / 100
        return self.stop_below

    def bound(self, available: Mapping[str, float]) -> Constraints:
        """The constraints, with what follows from the tokens that are there of each domain (inf without end)."""
        unique = {**available, **self.constraints.unique_tokens}
        known = self.tokens is not None and not any(math.isnan(count) for count in unique.values())
        natural = all(math.isfinite(count) for count in unique.values())
        return replace(
            self.constraints,
            prior=self.constraints.prior or ("natural" if natural else None),
            tokens=self.tokens,
            unique_tokens={domain: count for domain, count in unique.items() if not math.isnan(count)},
            max_epochs=self.max_epochs if known else None,
        )

    @property
    def swarm(self) -> Swarm:
        """The proxies' settings, with the target's length where they name none."""
        given = self.proxies
        if self.tokens is None or given.target_tokens is not None or given.target_epochs is not None:
            return given
        unique = self.constraints.unique_tokens or None
        return replace(given, target_tokens=self.tokens, target_unique_tokens=unique)
