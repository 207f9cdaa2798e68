"""The order of domains: within one of the exact share in every prefix, whatever the weights."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from train.feed.schedule import PERIOD, ROUNDED, exact_weights, schedule_of

few = some.lists(some.integers(0, 50), min_size=1, max_size=12)
extreme = some.lists(some.sampled_from([0, 1, 1, 2, 3, 999, 1000, 4096, 20_000]), min_size=1, max_size=40)
alike = some.tuples(some.integers(1, 9), some.integers(1, 300)).map(lambda one: [one[0]] * one[1])
weights_of = some.one_of(few, extreme, alike).filter(any)


@settings(deadline=None, max_examples=80)
@given(weights_of)
def test_counts_stay_within_one_of_the_share_in_every_prefix(weights: list[int]) -> None:
    given_weights = np.array(weights, np.int64)
    schedule = schedule_of(given_weights)
    period = schedule.period
    order = schedule.domains(0, 2 * period)
    position = np.arange(1, len(order) + 1)
    for domain, weight in enumerate(weights):
        count = np.cumsum(order == domain)
        assert (np.abs(count * period - weight * position) < period).all()  # |count - w p| < 1 in whole numbers
        assert count[period - 1] == weight


@settings(deadline=None, max_examples=60)
@given(weights_of, some.data())
def test_counts_and_positions_are_those_of_the_order(weights: list[int], data: some.DataObject) -> None:
    schedule = schedule_of(np.array(weights, np.int64))
    order = schedule.domains(0, 2 * schedule.period)
    at = data.draw(some.integers(0, len(order) - 1))
    assert schedule.counts(at).tolist() == np.bincount(order[:at], minlength=len(weights)).tolist()
    domain = int(order[at])
    assert schedule.position(domain, int((order[:at] == domain).sum())) == at
    far = data.draw(some.integers(0, 10**12))
    found = schedule.counts(far)
    assert found.sum() == far
    assert schedule.position(int(schedule.domains(far, 1)[0]), int(found[schedule.domains(far, 1)[0]])) == far


@settings(deadline=None, max_examples=40)
@given(weights_of, some.data())
def test_a_part_of_the_order_is_the_order_as_far_as_it_goes(weights: list[int], data: some.DataObject) -> None:
    whole = schedule_of(np.array(weights, np.int64))
    count = data.draw(some.integers(1, whole.period))
    part = schedule_of(np.array(weights, np.int64), count)
    assert part.table.tolist() == whole.table[:count].tolist()
    for domain in np.flatnonzero(weights).tolist():
        place = whole.position(domain, 0)
        assert part.position(domain, 0) == (place if place is not None and place < count else None)


def test_a_thousand_domains_over_the_longest_period_stay_within_one() -> None:
    random = np.random.default_rng(3)
    weights = exact_weights({f"{n:04d}": int(w) for n, w in enumerate(random.pareto(1.0, 1000) * 1e6 + 1)})
    schedule = schedule_of(np.array(list(weights.values()), np.int64))
    assert schedule.period == ROUNDED
    order, position = schedule.domains(0, ROUNDED), np.arange(1, ROUNDED + 1)
    for domain in [0, 1, *np.argsort(schedule.weights)[[0, 1, -2, -1]].tolist()]:
        count = np.cumsum(order == domain)
        assert (np.abs(count * ROUNDED - schedule.weights[domain] * position) < ROUNDED).all()


@pytest.mark.parametrize(
    ("weights", "found"),
    [
        ({"a": 1}, {"a": 1}),
        ({"a": 0.7, "b": 0.2, "c": 0.1}, {"a": 7, "b": 2, "c": 1}),
        ({"a": 3, "b": 0, "c": 6}, {"a": 1, "b": 0, "c": 2}),
        ({"a": Fraction(1, 3), "b": Decimal("0.5")}, {"a": 2, "b": 3}),
        ({"a": 1e-6, "b": 1.0}, {"a": 1, "b": 10**6}),
        ({"a": 1, "b": PERIOD - 1}, {"a": 1, "b": PERIOD - 1}),
        ({"a": 1, "b": PERIOD}, {"a": 1, "b": ROUNDED - 1}),  # one more than the longest period: rounded
        ({"a": 1e-30, "b": 1.0}, {"a": 1, "b": ROUNDED - 1}),
        ({"a": 1e-30, "b": 1e-20, "c": 0, "d": 1.0}, {"a": 1, "b": 1, "c": 0, "d": ROUNDED - 2}),
    ],
)
def test_weights_become_whole_numbers(weights: dict[str, float], found: dict[str, int]) -> None:
    assert exact_weights(weights) == found


@settings(deadline=None)
@given(some.lists(some.floats(0, 1e9), min_size=1, max_size=30).filter(any))
def test_rounded_weights_are_off_by_less_than_the_period_allows(weights: list[float]) -> None:
    found = exact_weights({str(n): weight for n, weight in enumerate(weights)})
    period = sum(found.values())
    assert period <= PERIOD
    whole = sum(Fraction(str(weight)) for weight in weights)
    raised = sum(0 < Fraction(str(weight)) / whole * period < 1 for weight in weights)
    for weight, count in zip(weights, found.values(), strict=True):
        assert (count > 0) == (weight > 0)
        assert abs(count - Fraction(str(weight)) / whole * period) <= 1 + raised


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ({"a": 0, "b": 0.0}, "weights: all are 0; at least one domain needs more"),
        ({"a": 1, "b": -0.1}, "weights: b has -0.1; a weight is a number, 0 or more"),
        ({"a": float("nan")}, "weights: a has nan; a weight is a number, 0 or more"),
        ({"a": float("inf")}, "weights: a has inf; a weight is a number, 0 or more"),
    ],
)
def test_weights_that_cannot_be_are_told(weights: dict[str, float], told: str) -> None:
    with pytest.raises(ValueError) as error:
        exact_weights(weights)
    assert str(error.value) == told
