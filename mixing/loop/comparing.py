"""After the target was trained: what was predicted of its mixture, held against what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from mixing.loop.mixture_file import MixtureFile
from mixing.observations.points import MixingError
from mixing.optimum.objective import Objective

OBJECTIVE: Final = "objective"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One metric (or "objective"): its prediction and interval, and what the runs (seeds) gave.

    inside: of each run, whether it lies in the interval, which is made for single runs.
    """

    metric: str
    predicted: float
    low: float
    high: float
    measured: tuple[float, ...]
    inside: tuple[bool, ...]

    @property
    def mean(self) -> float:
        return math.fsum(self.measured) / len(self.measured)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All metrics that were predicted and measured. level: of the intervals; so many of the runs should be inside."""

    level: float | None
    rows: tuple[Compared, ...]

    @property
    def inside(self) -> float:
        """Share of all measured values that lie in their interval."""
        told = [inside for row in self.rows for inside in row.inside]
        return sum(told) / len(told)

    def told(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "inside": self.inside,
            "rows": [{**asdict(row), "mean": row.mean} for row in self.rows],
        }

    def lines(self) -> list[str]:
        """One a metric, for people."""
        return [
            f"{row.metric}: predicted {row.predicted:.4f} [{row.low:.4f}, {row.high:.4f}], measured {row.mean:.4f}"
            f" ({sum(row.inside)} of {len(row.inside)} inside)"
            for row in self.rows
        ]


def compare(
    mixture: MixtureFile, measured: Mapping[str, float] | Sequence[Mapping[str, float]], *, natural: bool = False
) -> Comparison:
    """Predictions of a mixture held against runs trained on it. measured: {metric: value}, one a run (seed).

    natural: the runs were trained on the file's natural mixture instead. The objective is worked out from its metrics.
    Predictions hold at the proxies' scale: of a larger model only the order of mixtures is expected to hold, and its
    losses to lie below. Raises MixingError where no metric is in both.
    """
    told = mixture.natural if natural else mixture
    if told is None:
        raise MixingError("compare: the mixture file tells of no natural mixture; compare with the mixture")
    runs = [measured] if isinstance(measured, Mapping) else list(measured)
    if mixture.minimised is not None:
        runs = [{**run, OBJECTIVE: _objective(mixture.minimised, run)} for run in runs]
    predicted = {
        **({} if told.objective is None else {OBJECTIVE: told.objective}),
        **dict(sorted(told.predicted.items())),
    }
    rows = []
    for metric, one in predicted.items():
        values = tuple(float(run[metric]) for run in runs if math.isfinite(run.get(metric, math.nan)))
        if values:
            inside = tuple(one.low <= value <= one.high for value in values)
            rows.append(
                Compared(metric=metric, predicted=one.value, low=one.low, high=one.high, measured=values, inside=inside)
            )
    if not rows:
        raise MixingError(
            f"compare: none of {', '.join(predicted) or 'no metric'} was measured; measure what was predicted"
        )
    return Comparison(level=mixture.level, rows=tuple(rows))


def _objective(minimised: Objective, run: Mapping[str, float]) -> float:
    """NaN where the run lacks one of its metrics."""
    names = tuple(dict.fromkeys((*minimised.weights, *minimised.worst)))
    values = np.array([[run.get(name, math.nan) for name in names]])
    return float(minimised.value(names, values)[0])


def metrics_of(trained: Mapping[str, Any]) -> dict[str, float]:
    """The metrics that OUT/trained.json of pretraining tells, named as the proxies name them."""
    found = {"bits_per_byte": trained.get("bits_per_byte"), "loss": trained.get("nats_per_token")}
    for name, score in (trained.get("by_domain") or {}).items():
        found[f"bits_per_byte/{name}"] = score["bits_per_byte"]
        found[f"loss/{name}"] = score["nats_per_token"]
    return {name: float(value) for name, value in found.items() if value is not None}
