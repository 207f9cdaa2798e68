"""Segments: the settings of a plan from one step on, as the small record that the state of a run is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from math import isfinite
from typing import Any, Literal, get_args

from train.feed.packing import OVERFLOWS, Overflow, Packing
from train.feed.schedule import Weight, exact_weights

Method = Literal["concat", "best_fit"]
MOST_SEQUENCE_TOKENS = 1 << 24  # so that slots of a batch fit 32 bits
WINDOW_TOKENS = 1 << 20  # packed in about a millisecond; 512 rows of 2,048, which leaves 0.6% of padding on real text
LEAST_WINDOW_SEQUENCES = 256  # in fewer, the row that rounding adds costs more than half a percent
CHANGES = (
    "weights",
    "batch_sequences",
    "sequence_tokens",
    "packing",
    "window_sequences",
    "slack",
    "overflow",
    "max_epochs",
)


class PlanError(ValueError):
    """A plan that cannot be; the text says which setting and what would do."""


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A plan's settings from `step` on.

    weights: whole numbers by domain; their shares are the mixture. max_epochs: by domain, for those that have one.
    """

    step: int
    weights: Mapping[str, int]
    batch_sequences: int
    sequence_tokens: int
    packing: Method
    window_sequences: int | None
    slack: float
    overflow: Overflow
    max_epochs: Mapping[str, float]

    def __post_init__(self) -> None:
        self._whole("step", 0, 1 << 62)
        self._whole("batch_sequences", 1, 1 << 24)
        self._whole("sequence_tokens", 1, MOST_SEQUENCE_TOKENS)
        if self.window_sequences is not None:
            self._whole("window_sequences", 1, 1 << 24)
        _one_of("packing", self.packing, get_args(Method))
        _one_of("overflow", self.overflow, OVERFLOWS)
        if not isinstance(self.slack, int | float) or not 0 <= self.slack <= 1:
            raise PlanError(f"slack: {self.slack} is no share; it is between 0 and 1, 0.005 for half a percent")
        for name, epochs in self.max_epochs.items():
            if not isinstance(epochs, int | float) or not (isfinite(epochs) and epochs > 0):
                raise PlanError(f"max_epochs: {name} has {epochs}; more than 0, or leave it out for no limit")

    def _whole(self, name: str, least: int, most: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or not least <= value <= most:
            raise PlanError(f"{name}: {value}; a whole number from {least} to {most}")

    @property
    def how_packed(self) -> Packing:
        """What decides how a domain's tokens come into rows, whatever else changes."""
        if self.packing == "concat":
            return Packing("concat", 1, Fraction(0), "split")
        rows = self.window_sequences or max(LEAST_WINDOW_SEQUENCES, WINDOW_TOKENS // self.sequence_tokens)
        return Packing("best_fit", rows, Fraction(str(self.slack)), self.overflow)

    def ends(self, tokens: Mapping[str, int]) -> list[int | None]:
        """How many tokens of its endless stream each domain may give; None = all."""
        return [
            int(Fraction(str(self.max_epochs[name])) * count) if name in self.max_epochs else None
            for name, count in tokens.items()
        ]

    def changed(self, step: int, tokens: Mapping[str, int], changes: Mapping[str, Any]) -> Segment:
        """The segment that follows at `step`; what `changes` does not name stays."""
        unknown = sorted(set(changes) - set(CHANGES))
        if unknown:
            raise PlanError(f"{unknown[0]}: cannot change; what can is {', '.join(CHANGES)}")
        given = dict(changes)
        if "weights" in given:
            given["weights"] = whole_weights(given["weights"], tokens)
        if "max_epochs" in given:
            given["max_epochs"] = epochs_by_domain(given["max_epochs"], tokens)
        return replace(self, step=step, **given)

    def record(self) -> dict[str, Any]:
        """The segment as JSON."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return found | {"weights": dict(self.weights), "max_epochs": dict(self.max_epochs)}


def whole_weights(weights: Mapping[str, Weight] | None, tokens: Mapping[str, int]) -> dict[str, int]:
    """Weights of all domains as whole numbers in the order of domains; None = by their tokens."""
    if weights is None:
        weights = tokens
    _known("weights", weights, tokens)
    missing = [name for name in tokens if name not in weights]
    if missing:
        raise PlanError(f"weights: none for {', '.join(missing)}; give each domain one, 0 to leave it out")
    try:
        return exact_weights({name: weights[name] for name in tokens})
    except (ValueError, TypeError) as error:
        raise PlanError(str(error)) from error


def epochs_by_domain(
    max_epochs: float | Mapping[str, float | None] | None, tokens: Mapping[str, int]
) -> dict[str, float]:
    """The limit of each domain that has one; one number is for all."""
    if max_epochs is None:
        return {}
    if not isinstance(max_epochs, Mapping):
        return dict.fromkeys(tokens, max_epochs)
    _known("max_epochs", max_epochs, tokens)
    limits = {name: max_epochs.get(name) for name in tokens}
    return {name: limit for name, limit in limits.items() if limit is not None}


def _known(setting: str, given: Mapping[str, Any], tokens: Mapping[str, int]) -> None:
    unknown = [name for name in given if name not in tokens]
    if unknown:
        raise PlanError(f"{setting}: no tokens of a domain named {unknown[0]!r}; the domains are {', '.join(tokens)}")


def _one_of(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise PlanError(f"{name}: {value!r} is unknown; it is one of {', '.join(choices)}")
