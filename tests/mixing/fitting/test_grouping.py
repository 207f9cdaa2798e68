"""What is held out together, and that folds do not depend on how rows and domains came."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixing.fitting.grouping import canonical, folds, held_together
from mixing.observations.observations import Observations
from mixing.observations.points import Points


def runs_of(weights: np.ndarray, names: list[str] | None = None) -> Observations:
    domains = [f"domain {number}" for number in range(weights.shape[1])]
    return Observations.of(Points.of(domains, weights), ["loss"], np.arange(len(weights), dtype=float), runs=names)


def test_rows_of_a_run_and_of_a_mixture_are_one_group_through_others_too():
    weights = np.array([[0.5, 0.5], [0.2, 0.8], [0.5, 0.5], [0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])
    groups = held_together(runs_of(weights, ["a", "b", "c", "c", "d", "e"]))
    assert groups[0] == groups[2] == groups[3]
    assert groups[1] == groups[4]
    assert len({groups[0], groups[1], groups[5]}) == 3


def test_of_one_mixture_runs_are_held_out():
    groups = held_together(runs_of(np.full((4, 2), 0.5), ["a", "b", "b", "c"]))
    assert groups.tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize(("mixtures", "count"), [(1, 1), (2, 2), (12, 12), (13, 10), (300, 10)])
def test_few_mixtures_are_left_out_one_by_one_and_many_in_ten_folds_of_like_size(mixtures, count):
    weights = np.random.default_rng(0).dirichlet(np.ones(3), mixtures)
    sizes = np.bincount(folds(runs_of(weights)))
    assert len(sizes) == count
    assert sizes.max() - sizes.min() <= 1


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 30), st.integers(1, 5), st.integers(0, 99))
def test_folds_go_by_what_rows_hold_and_never_part_what_belongs_together(count, domains, seed):
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.ones(domains), count)[random.integers(0, count, count)]
    names = [f"run {number}" for number in random.integers(0, count, count)]
    runs = runs_of(weights, names)
    found = folds(runs, seed=seed)
    for fold in np.unique(found):
        inside = found == fold
        assert (
            not {name for name, held in zip(names, inside, strict=True) if held}
            & {name for name, held in zip(names, inside, strict=True) if not held}
            or len(np.unique(found)) == 1
        )
    rows, columns = random.permutation(count), random.permutation(domains)
    turned = Observations.of(
        Points.of([runs.domains[column] for column in columns], weights[rows][:, columns]),
        ["loss"], runs.values[rows], runs=[names[row] for row in rows],
    )  # fmt: skip
    assert folds(turned, seed=seed).tolist() == found[rows].tolist()
    assert np.allclose(canonical(turned).weights, canonical(runs).weights, atol=1e-12)
    assert canonical(turned).values.tolist() == canonical(runs).values.tolist()
