"""The worth of repeated tokens."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixing.observations.points import MixingError, Points
from mixing.observations.repetition import (
    HALF_LIFE,
    effective_tokens,
    effective_tokens_gradients,
    effective_weights,
    half_lives,
    marginal_value,
    next_epoch_value,
)


@pytest.mark.parametrize(
    ("tokens", "unique", "half_life", "worth"),
    [
        (0, 100, HALF_LIFE, 0),
        (50, 100, HALF_LIFE, 50),
        (100, 100, HALF_LIFE, 100),
        (200, 100, HALF_LIFE, 100 + 100 * HALF_LIFE * (1 - np.exp(-1 / HALF_LIFE))),
        (400, 100, HALF_LIFE, 100 + 100 * HALF_LIFE * (1 - np.exp(-3 / HALF_LIFE))),
        (1e12, 100, HALF_LIFE, 100 * (1 + HALF_LIFE)),
        (400, 100, 0, 100),
        (400, 100, np.inf, 400),
        (400, np.nan, HALF_LIFE, 400),
        (400, np.inf, HALF_LIFE, 400),
        (400, 0, HALF_LIFE, 0),
        (0, 0, HALF_LIFE, 0),
    ],
)
def test_worth_of_tokens_and_its_limits(tokens: float, unique: float, half_life: float, worth: float) -> None:
    assert effective_tokens(tokens, unique, half_life) == pytest.approx(worth, rel=1e-12)


def test_four_epochs_are_nearly_fresh_and_forty_are_not() -> None:
    assert effective_tokens(4, 1) / 4 > 0.9
    assert next_epoch_value(1, 1) > 0.96
    assert next_epoch_value(40, 1) < 0.1


@given(
    tokens=st.floats(1, 1e6),
    unique=st.floats(1, 1e6),
    half_life=st.floats(0.5, 100),
)
def test_gradients_are_those_of_finite_differences(tokens: float, unique: float, half_life: float) -> None:
    if abs(tokens / unique - 1) < 1e-3:  # the slope by U has a kink there in second order only, but steps straddle it
        return
    told = effective_tokens_gradients(tokens, unique, half_life)
    at = np.array([tokens, unique, half_life])
    for position, gradient in enumerate(told):
        step = at[position] * 1e-5
        up, down = at.copy(), at.copy()
        up[position] += step
        down[position] -= step
        measured = (effective_tokens(*up) - effective_tokens(*down)) / (2 * step)
        scale = effective_tokens(*at) / at[position]
        assert gradient == pytest.approx(float(measured), rel=1e-4, abs=1e-6 * float(scale))


@given(first=st.floats(0, 1e4), second=st.floats(0, 1e4), unique=st.floats(0.1, 1e4), half_life=st.floats(0, 50))
def test_worth_rises_is_concave_and_at_most_the_tokens(
    first: float, second: float, unique: float, half_life: float
) -> None:
    low, high = sorted((first, second))
    told = effective_tokens(np.array([low, (low + high) / 2, high]), unique, half_life)
    slack = 1e-9 * (1 + high)
    assert told[0] <= told[1] + slack <= told[2] + 2 * slack
    assert told[1] >= (told[0] + told[2]) / 2 - slack
    assert (told <= np.array([low, (low + high) / 2, high]) + slack).all()
    assert 0 <= marginal_value(high, unique, half_life) <= 1


def test_effective_weights_are_the_weights_where_nothing_is_known() -> None:
    points = Points.of(("a", "b"), [[0.3, 0.7]])
    worth, slope = effective_weights(points)
    np.testing.assert_array_equal(worth, points.weights)
    np.testing.assert_array_equal(slope, 1)


def test_effective_weights_and_their_slope_by_domain() -> None:
    def at(weights: list[float]) -> Points:
        return Points.of(("a", "b"), weights, tokens=1000.0, unique_tokens={"a": 100.0})

    worth, slope = effective_weights(at([0.5, 0.5]), half_lives(("a", "b"), {"a": 5.0}))
    assert worth[0] == pytest.approx([0.1 * (1 + 5 * (1 - np.exp(-4 / 5))), 0.5])
    assert slope[0] == pytest.approx([np.exp(-4 / 5), 1])
    assert effective_weights(at([0.0, 1.0]))[0].tolist() == [[0.0, 1.0]]


def test_half_life_of_an_unknown_domain_or_below_0_is_refused() -> None:
    assert half_lives(("a", "b"), {"b": 4}).tolist() == [HALF_LIFE, 4]
    with pytest.raises(MixingError, match="no domain 'c'"):
        half_lives(("a", "b"), {"c": 4})
    with pytest.raises(MixingError, match="0 or more"):
        half_lives(("a", "b"), -1)


def test_published_runs_are_ranked_better_by_effective_tokens_than_by_tokens(shared: Path) -> None:
    """On the single-size C4 runs of datablations the loss falls with D', not with D."""
    with (shared / "mixing/repetition/datablations.csv").open() as file:
        runs = [row for row in csv.DictReader(file) if row["corpus"] == "c4" and row["unique_tokens"]]
    told: dict[str, list[float]] = {"tokens": [], "effective": [], "loss": []}
    for row in runs:
        if row["params"] == "2810000000.0" and not row["variant"]:
            told["tokens"].append(float(row["tokens"]))
            told["effective"].append(float(effective_tokens(float(row["tokens"]), float(row["unique_tokens"]))))
            told["loss"].append(float(row["val_loss"]))

    def agreement(name: str) -> float:
        ranks = [np.argsort(np.argsort(values)) for values in (told[name], [-loss for loss in told["loss"]])]
        return float(np.corrcoef(ranks[0], ranks[1])[0, 1])

    assert len(told["loss"]) >= 10
    assert agreement("effective") > agreement("tokens") + 0.1
