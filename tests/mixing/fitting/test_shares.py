"""Shares by stacking: the right one where it is known, and equal ones where laws cannot be told apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixing.fitting.shares import stack


def errors_of(sizes: list[float], rows: int = 400, metrics: int = 3, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.array(sizes)[:, None, None] * random.standard_normal((len(sizes), rows, metrics))


FOLDS = np.arange(400) % 10


def test_independent_errors_of_one_size_get_equal_shares():
    found = stack(errors_of([1, 1, 1]), FOLDS).shares
    assert np.allclose(found, 1 / 3, atol=0.06)


def test_shares_of_independent_errors_go_by_their_precision():
    found = stack(errors_of([1, 1.5]), FOLDS).shares.mean(axis=1)
    assert found[0] == pytest.approx(1.5**2 / (1 + 1.5**2), abs=0.06)


def test_laws_that_say_the_same_share_alike():
    one = errors_of([1])
    assert np.allclose(stack(np.concatenate([one, one]), FOLDS).shares, 0.5)


def test_a_law_that_is_clearly_worse_has_no_share():
    assert stack(errors_of([1, 2.5]), FOLDS).shares[1].max() == 0


def test_metrics_have_their_own_shares_where_there_are_rows_to_tell_and_nearly_one_set_where_not():
    errors = errors_of([1, 1])
    errors[0, :, 0] *= 0.4
    errors[1, :, 1] *= 0.4
    many, few = stack(errors, FOLDS).shares, stack(errors[:, :10], FOLDS[:10]).shares
    assert many[0, 0] > 0.75
    assert many[0, 1] < 0.25
    assert np.ptp(few[0, :2]) < 0.7 * np.ptp(many[0, :2])


def test_a_row_that_all_laws_miss_does_not_decide():
    errors = errors_of([1, 2], metrics=1)
    odd = errors.copy()
    odd[:, 0] = [[300.0], [200.0]]
    assert stack(odd, FOLDS).shares[0, 0] == pytest.approx(stack(errors, FOLDS).shares[0, 0], abs=0.25)


def test_shares_of_a_fold_do_not_know_its_errors():
    errors = errors_of([1, 1], rows=40)
    changed = errors.copy()
    changed[0, FOLDS[:40] == 3] *= 1.5
    one, other = (stack(table, FOLDS[:40]).held_out for table in (errors, changed))
    assert np.allclose(one[3], other[3], atol=0.02)  # but for the usual size of a row's error
    assert not np.allclose(one[4], other[4], atol=0.02)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(2, 12), st.integers(1, 3), st.integers(0, 999), st.sampled_from([1e-12, 1, 1e12]))
def test_shares_are_never_negative_and_sum_to_one(laws, rows, metrics, seed, size):
    random = np.random.default_rng(seed)
    errors = size * random.standard_normal((laws, rows, metrics)) * random.choice([0, 1, 3], (laws, 1, metrics))
    found = stack(errors, np.arange(rows) % 5)
    assert (found.shares >= 0).all()
    assert np.allclose(found.shares.sum(axis=0), 1)
    assert np.allclose(found.held_out.sum(axis=1), 1)
