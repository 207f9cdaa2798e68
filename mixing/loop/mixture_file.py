"""The mixture as a file, OUT/mixture.json: what `train` and other programs take domain ratios from.

format        "gristmill-mixture-1"
weights       {domain: share of the training tokens}, above or at 0, sum 1
tokens        length of the run it is for, or null; tokens_by_domain, unique_tokens, epochs: {domain: number} or null
max_epochs    {domain: most epochs} that it was found under
phases        a curriculum: [{share: of the run, weights: {domain: share}}], or none
objective     {value, low, high, level}: predicted, with its interval; predicted: the same by metric
runs          how many runs it was found with
provenance    digests of observations and settings, versions of the code
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Self

from mixing.observations.points import MixingError
from mixing.optimum.objective import Objective
from shards.store import filesystem, write_json

if TYPE_CHECKING:
    from train.pretrain import Pretrain

FORMAT: Final = "gristmill-mixture-1"
SUM_TOLERANCE: Final = 1e-6
ROUNDED_UP: Final = 1.01
"""Epochs that training may go beyond the mixture's: runs are rounded up to whole steps."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A prediction: low and high bound it at the file's level; equal to the value where nothing is known of that."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float | None]:
        """null for a side without end: JSON has no infinity."""
        return {name: told if math.isfinite(told) else None for name, told in asdict(self).items()}


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A part of the run, `share` of its tokens, with weights of its own."""

    share: float
    weights: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What is predicted of new runs on a mixture: the objective and each metric, with intervals."""

    weights: Mapping[str, float]
    objective: Interval | None = None
    predicted: Mapping[str, Interval] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "weights": dict(self.weights),
            "objective": None if self.objective is None else self.objective.to_json(),
            "predicted": {name: one.to_json() for name, one in self.predicted.items()},
        }

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        return cls(
            weights={name: float(weight) for name, weight in told["weights"].items()},
            objective=_interval(told["objective"]) if told.get("objective") else None,
            predicted={name: _interval(one) for name, one in (told.get("predicted") or {}).items()},
        )


@dataclass(frozen=True, kw_only=True)
class MixtureFile(Forecast):
    """A mixture, its tokens and epochs, and what it is predicted to give. Domains go by name."""

    tokens: float | None = None
    unique_tokens: Mapping[str, float] | None = None
    max_epochs: Mapping[str, float] = field(default_factory=dict)
    phases: tuple[Phase, ...] = ()
    level: float | None = None
    minimised: Objective | None = None
    natural: Forecast | None = None
    runs: int = 0
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tokens_by_domain(self) -> dict[str, float] | None:
        if self.tokens is None:
            return None
        return {domain: weight * self.tokens for domain, weight in self.weights.items()}

    @property
    def epochs(self) -> dict[str, float] | None:
        """How often each domain is seen; None where tokens or unique tokens are not known."""
        given, unique = self.tokens_by_domain, self.unique_tokens
        if given is None or unique is None:
            return None
        return {domain: given[domain] / unique[domain] for domain in given if unique.get(domain, 0) > 0}

    def train_settings(self, train: Pretrain | None = None) -> dict[str, Any]:
        """What the mixture decides of `train.Pretrain`: weights, max_epochs and changes, to be put in its place.

        train: the run's settings; needed for phases, whose changes of weights join the changes that it has. Its own
        max_epochs stay. Else a cap leaves room for the rounding of the run to whole steps. Raises MixingError where
        phases lack `train`, or one is shorter than a step.
        """
        told: dict[str, Any] = {"weights": dict(self.weights)}
        epochs = self.epochs or {}
        caps = {domain: max(cap, epochs.get(domain, 0.0) * ROUNDED_UP) for domain, cap in self.max_epochs.items()}
        if caps and (train is None or train.max_epochs is None):
            told["max_epochs"] = caps
        if len(self.phases) > 1:
            if train is None:
                raise MixingError("phases: need the run's length to know where they begin; give train.steps")
            told |= self._phased(train)
        return told

    def _phased(self, train: Pretrain) -> dict[str, Any]:
        """Weights of the first phase, and changes for the others: phases as whole steps, whose total stays exact."""
        from mixing.grids import Curriculum
        from train.pretrain import Change

        phases = [{"share": one.share, "weights": dict(one.weights)} for one in self.phases]
        whole, begins = Curriculum.of(phases).in_steps(train.total_steps)
        changes = {one.at_step: one for one in train.changes}
        for step, phase in list(zip(begins, whole.phases, strict=True))[1:]:
            changes[step] = replace(changes.get(step, Change(at_step=step)), weights=phase["weights"])
        return {"weights": whole.phases[0]["weights"], "changes": tuple(changes[step] for step in sorted(changes))}

    def to_json(self) -> dict[str, Any]:
        goal = self.minimised
        return {
            **super().to_json(),
            "format": FORMAT,
            "tokens": self.tokens,
            "tokens_by_domain": self.tokens_by_domain,
            "unique_tokens": None if self.unique_tokens is None else dict(self.unique_tokens),
            "epochs": self.epochs,
            "max_epochs": dict(self.max_epochs),
            "phases": [{"share": one.share, "weights": dict(one.weights)} for one in self.phases],
            "level": self.level,
            "minimised": None if goal is None else {"weights": goal.weights, "worst": list(goal.worst)},
            "natural": None if self.natural is None else self.natural.to_json(),
            "runs": self.runs,
            "provenance": dict(self.provenance),
        }


def write_mixture(mixture: MixtureFile, url: str) -> None:
    """Write a mixture file; it appears whole. Raises MixingError for weights that are none."""
    _check(url, mixture.to_json())
    write_json(url, mixture.to_json())


def read_mixture(url: str) -> MixtureFile:
    """The mixture of a file that write_mixture wrote, or that holds `weights` alone; checked.

    Raises MixingError where it is missing, torn, no mixture, or its weights do not sum to 1.
    """
    files, path = filesystem(url)
    try:
        with files.open(path, "rb") as source:
            told = json.loads(source.read())
    except FileNotFoundError:
        raise MixingError(f"{url}: no such file; name the mixture.json that the mix step wrote") from None
    except IsADirectoryError:
        raise MixingError(f"{url}: is a folder; name the mixture.json that the mix step wrote") from None
    except (ValueError, RecursionError):
        raise MixingError(f'{url}: is no JSON; a mixture file has {{"weights": {{domain: share}}}}') from None
    _check(url, told)

    try:
        return MixtureFile(
            **vars(Forecast.of(told)),
            tokens=told.get("tokens"),
            unique_tokens=told.get("unique_tokens"),
            max_epochs=told.get("max_epochs") or {},
            phases=tuple(Phase(share=one["share"], weights=one["weights"]) for one in told.get("phases") or ()),
            level=told.get("level"),
            minimised=Objective(**told["minimised"]) if told.get("minimised") else None,
            natural=Forecast.of(told["natural"]) if told.get("natural") else None,
            runs=int(told.get("runs") or 0),
            provenance=told.get("provenance") or {},
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise MixingError(f"{url}: not a whole mixture file; run the mix step again") from None


def _interval(told: Mapping[str, float | None]) -> Interval:
    sides = {"value": math.nan, "low": -math.inf, "high": math.inf}  # what null stands for
    return Interval(**{name: end if (side := told[name]) is None else float(side) for name, end in sides.items()})


def _check(url: str, told: Any) -> None:
    if not isinstance(told, dict) or not isinstance(told.get("weights"), dict):
        raise MixingError(f'{url}: holds no weights; a mixture file has {{"weights": {{domain: share}}}}')
    if told.get("format", FORMAT) != FORMAT:
        raise MixingError(f"{url}: format {told['format']!r}, where {FORMAT!r} can be read")
    _check_weights(f"{url}: weights", told["weights"])
    for number, phase in enumerate(told.get("phases") or (), 1):
        if not isinstance(phase, dict) or not isinstance(phase.get("weights"), dict):
            raise MixingError(f"{url}: phase {number} has no weights; give each {{share, weights}}")
        _check_weights(f"{url}: phase {number}", phase["weights"])


def _check_weights(where: str, weights: Mapping[str, Any]) -> None:
    if not weights:
        raise MixingError(f"{where}: none; give each domain one")
    for domain, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1 + SUM_TOLERANCE:
            raise MixingError(f"{where}: {domain} is {weight!r}; a weight is a number from 0 to 1")
    total = math.fsum(weights.values())
    if abs(total - 1) > SUM_TOLERANCE:
        raise MixingError(f"{where}: sum to {total:.6f}; the weights of a mixture sum to 1")
