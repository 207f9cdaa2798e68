"""The keyed bijection is one, has its inverse, and prefers no order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from train.feed.permutation import deal, key_of, numbered_key, permute, unpermute


def order_of(count: int, key: np.uint64) -> list[int]:
    order = np.zeros(count, np.int64)
    deal(count, key, order)
    return order.tolist()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 1000, 4097])
def test_every_number_comes_once(count: int) -> None:
    for seed in range(3):
        assert sorted(order_of(count, key_of(seed))) == list(range(count))


@settings(deadline=None)
@given(some.integers(1, 1 << 40), some.data(), some.integers(0, 1 << 64))
def test_the_inverse_finds_the_place(count: int, data: some.DataObject, seed: int) -> None:
    number, key = data.draw(some.integers(0, count - 1)), key_of(seed)
    there = permute(number, count, key)
    assert 0 <= there < count
    assert unpermute(there, count, key) == number


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_each_order_of_a_few_comes_about_equally_often_over_epochs(count: int) -> None:
    draws = 24_000
    found = Counter(tuple(order_of(count, numbered_key(key_of("many"), epoch))) for epoch in range(draws))
    orders = {2: 2, 3: 6, 4: 24, 5: 120}[count]
    assert len(found) == orders
    chi_squared = sum((seen - draws / orders) ** 2 / (draws / orders) for seen in found.values())
    assert chi_squared < orders - 1 + 5 * (2 * (orders - 1)) ** 0.5 + 5  # five standard deviations


def test_neighbours_are_scattered() -> None:
    order = np.array(order_of(10_000, key_of(1)))
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.05
    assert (np.abs(np.diff(order)) == 1).sum() < 15  # 2 are expected


def test_keys_of_names_and_of_numbers_differ() -> None:
    assert key_of(1, "a") != key_of(1, "b")
    assert len({int(numbered_key(key_of(1, name), epoch)) for name in "abc" for epoch in range(1000)}) == 3000
