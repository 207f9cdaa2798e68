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


def test_metrics_have_their_own_shares_where_laws_differ_by_metric_and_one_set_where_they_do_not():
    errors = errors_of([1, 1])
    errors[0, :, 0] *= 0.4
    errors[1, :, 1] *= 0.4
    split = stack(errors, FOLDS)
    assert split.shares[0, 0] > 0.75
    assert split.shares[0, 1] < 0.25
    few = errors_of([1, 1], rows=20, metrics=13)
    assert stack(few, FOLDS[:20]).pooling >= 1


def test_shares_of_a_fold_do_not_know_its_errors():
    errors = errors_of([1, 1], rows=40)
    changed = errors.copy()
    changed[0, FOLDS[:40] == 3] *= 20
    for pooling in (0.0, 1.0, np.inf):
        one, other = (stack(table, FOLDS[:40], poolings=(pooling,)).held_out for table in (errors, changed))
        assert np.allclose(one[3], other[3])
        assert not np.allclose(one[4], other[4])


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(2, 12), st.integers(1, 3), st.integers(0, 999), st.sampled_from([1e-12, 1, 1e12]))
def test_shares_are_never_negative_and_sum_to_one(laws, rows, metrics, seed, size):
    random = np.random.default_rng(seed)
    errors = size * random.standard_normal((laws, rows, metrics)) * random.choice([0, 1, 3], (laws, 1, metrics))
    found = stack(errors, np.arange(rows) % 5)
    assert (found.shares >= 0).all()
    assert np.allclose(found.shares.sum(axis=0), 1)
    assert np.allclose(found.held_out.sum(axis=1), 1)
