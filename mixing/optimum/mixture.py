"""The optimum as it is told: weights, tokens, epochs, and what stands behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mixing.observations.points import Floats
from mixing.optimum.bounds import Price


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """A mixture beside the optimum, under the same law.

    excess: its predicted objective less the optimum's. keeps: whether it keeps every constraint. change: total
    variation distance from the optimum. metrics, low, high: the predictions, and their interval where the law has one.
    """

    name: str
    weights: Mapping[str, float]
    value: float
    excess: float
    keeps: bool
    change: float
    metrics: Mapping[str, float]
    low: Mapping[str, float] | None = None
    high: Mapping[str, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """How the optimum was found and what is known of it.

    convex: the problem is, for sure; then no mixture is below `bound`, and gap is (value - bound) / |value|. Else it is
    the best of `starts` searches, of which `agreed` ended within 1e-6 of it, and bound and gap are None.
    excess: the largest amount by which a linear constraint is missed (rounding).
    """

    method: str
    convex: bool
    bound: float | None
    gap: float | None
    starts: int
    agreed: int
    excess: float


@dataclass(frozen=True, kw_only=True)
class Range:
    """Of a domain's share among mixtures that are about as good as the optimum."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Flatness:
    """Mixtures within `within` of the optimum's objective: ranges by domain, some of them, and the largest share of
    tokens that one of them moves to other domains."""

    within: float
    ranges: Mapping[str, Range]
    sample: tuple[Mapping[str, float], ...]
    farthest: float


@dataclass(frozen=True, kw_only=True)
class Shift:
    """The optimum as another law, or the same on fewer runs, has it.

    loss: how much worse it is than our optimum by our law. change: total variation distance.
    """

    name: str
    weights: Mapping[str, float]
    change: float
    loss: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """The best mixture under an objective and constraints.

    domains, weights: names and [m]. value: the predicted objective; low, high: its interval, as wide as if the errors
    of all metrics went together, or None. metrics and their interval by name.
    tokens, epochs: by domain, where the run's length and unique tokens are known, else None (inf: none are there).
    prices: of the constraints that bind. near: the near-optimal set. sensitivity: optima of other laws or fewer runs.
    unconstrained: the optimum over all mixtures, a diagnosis. comparisons: mixtures that people use. warnings: a line
    each.
    """

    domains: tuple[str, ...]
    weights: Floats
    value: float
    low: float | None
    high: float | None
    metrics: Mapping[str, float]
    metrics_low: Mapping[str, float] | None
    metrics_high: Mapping[str, float] | None
    tokens: Mapping[str, float] | None
    epochs: Mapping[str, float] | None
    certificate: Certificate
    prices: tuple[Price, ...]
    near: Flatness | None
    sensitivity: tuple[Shift, ...]
    unconstrained: Alternative | None
    comparisons: tuple[Alternative, ...]
    warnings: tuple[str, ...]

    def by_name(self) -> dict[str, float]:
        """{domain: weight}."""
        return dict(zip(self.domains, self.weights.tolist(), strict=True))

    def told(self) -> dict[str, Any]:
        """All of it as plain JSON values; numbers that are not finite are None."""
        near = None if self.near is None else asdict(self.near)
        found: dict[str, Any] = _plain(
            {
                "weights": self.by_name(),
                "value": self.value,
                "low": self.low,
                "high": self.high,
                "metrics": self.metrics,
                "metrics_low": self.metrics_low,
                "metrics_high": self.metrics_high,
                "tokens": self.tokens,
                "epochs": self.epochs,
                "certificate": asdict(self.certificate),
                "prices": [asdict(price) for price in self.prices],
                "near": near,
                "sensitivity": [asdict(shift) for shift in self.sensitivity],
                "unconstrained": None if self.unconstrained is None else asdict(self.unconstrained),
                "comparisons": [asdict(row) for row in self.comparisons],
                "warnings": list(self.warnings),
            }
        )
        return found


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(held) for name, held in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(held) for held in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
