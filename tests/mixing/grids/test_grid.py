"""Grids: names of cells, folding, building, and the order of quality."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixing.grids import Grid
from mixing.observations import MixingError
from mixing.optimum import Constraints

GRID = Grid.of(("web", "code"), {"web": ("low", "mid", "high")})


def test_cells_are_domains_and_a_domain_that_is_not_cut_keeps_its_name() -> None:
    assert GRID.names == ("web@low", "web@mid", "web@high", "code")
    assert GRID.domains == ("web", "code")
    assert GRID.levels == ("low", "mid", "high")
    assert GRID.levels_of("web") == ("low", "mid", "high")
    assert GRID.levels_of("code") == ()
    assert Grid.parse(GRID.names) == GRID
    assert Grid.of(("a", "b"), ("x", "y")).names == ("a@x", "a@y", "b@x", "b@y")


def test_an_axis_may_be_laid_over_another() -> None:
    over = Grid.of(GRID.names, ("phase1", "phase2"))
    assert over.names[:2] == ("web@low@phase1", "web@low@phase2")
    assert Grid.parse(over.names).domains == GRID.names


def test_the_order_of_levels_is_that_of_the_axis_and_not_of_the_names() -> None:
    grid = Grid.parse(("web@high", "web@low"), levels=("low", "high"))
    assert grid.levels_of("web") == ("low", "high")
    rows, limits, names = grid.ordered_rows()
    assert rows.tolist() == [[-1, 1]]
    assert (limits.tolist(), names) == ([0], ("ordered.web.low<=high",))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Grid.of(("web", "web"), ("x",)), "'web@x' stands twice"),
        (lambda: Grid.of(("web",), ("x", "x")), "stands twice"),
        (lambda: Grid.of(("web",), ("x@y",)), "holds '@'"),
        (lambda: Grid.of(("web",), ("",)), "is empty"),
        (lambda: Grid.of(("web",), {"wob": ("x",)}), "no domain 'wob'"),
        (lambda: Grid.of(("web",), {"web": ()}), "none of web"),
        (lambda: Grid.parse(("web@x",), levels=("y",)), "no 'x'; they are y"),
        (lambda: GRID.by_domain({"web": 1.0}), "no domain 'web'"),
        (lambda: GRID.build({"web": 1}, {"web": {"low": 1}}), "web@mid has nan"),
        (lambda: GRID.build({"web": 1}, {"web": {"low": 0, "mid": 0, "high": 0}}), "web sum to 0"),
        (lambda: GRID.build({"web": 0.5}, {"web": {"low": 1, "mid": 1, "high": 1}}), "sums to 0.5"),
        (lambda: GRID.ordered_rows({"web@low": 1.0, "web@mid": 1.0}), "web@high has nan"),
    ],
)
def test_a_grid_that_means_nothing_is_refused(make: Any, told: str) -> None:
    with pytest.raises(MixingError, match=told):
        make()


@given(domains=st.integers(1, 4), levels=st.integers(1, 4), seed=st.integers(0, 1000))
def test_what_is_built_folds_back(domains: int, levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"d{at}" for at in range(domains)]
    grid = Grid.of(names, [f"q{at}" for at in range(levels)])
    weights = dict(zip(names, rng.dirichlet(np.ones(domains)).tolist(), strict=True))
    tokens = {name: float(rng.integers(1, 1000)) for name in grid.names}
    cells = grid.build(weights, tokens)
    assert grid.by_domain(cells) == pytest.approx(weights, abs=1e-14)
    assert sum(grid.by_level(cells).values()) == pytest.approx(1)
    row = np.array([list(cells.values())])
    np.testing.assert_allclose((row @ grid.domain_matrix.T)[0], list(weights.values()), atol=1e-14)
    epochs = {name: cells[name] / tokens[name] for name in grid.names}
    for name in names:  # by tokens, every level of a domain is seen as often
        seen = [epochs[f"{name}@q{at}"] for at in range(levels)]
        assert max(seen) == pytest.approx(min(seen), rel=1e-9)


def test_shares_by_domain_and_level_or_by_cell_are_the_same() -> None:
    nested = GRID.build({"web": 0.8, "code": 0.2}, {"web": {"low": 1, "mid": 2, "high": 1}})
    flat = GRID.build({"web": 0.8, "code": 0.2}, {"web@low": 1, "web@mid": 2, "web@high": 1})
    assert nested == flat == pytest.approx({"web@low": 0.2, "web@mid": 0.4, "web@high": 0.2, "code": 0.2})


def test_ordered_rows_hold_where_epochs_rise_with_quality_and_not_else() -> None:
    unique = {"web@low": 6e9, "web@mid": 3e9, "web@high": 1e9}
    rows, limits, names = GRID.ordered_rows(unique)
    assert len(names) == 2
    even = np.array([0.48, 0.24, 0.08, 0.2])
    np.testing.assert_allclose(rows @ even, limits, atol=1e-15)
    better, worse = even + np.array([-0.1, 0, 0.1, 0]), even + np.array([0.1, 0, -0.05, -0.05])
    assert (rows @ better <= limits).all()
    assert not (rows @ worse <= limits).all()
    assert np.abs(rows).max() == 1


def test_ordered_rows_join_a_polytope() -> None:
    from dataclasses import replace

    held = Constraints(ceilings={"code": 0.5}).polytope(GRID.names)
    rows, limits, names = GRID.ordered_rows()
    held = replace(
        held,
        rows=np.concatenate([held.rows, rows]),
        limits=np.concatenate([held.limits, limits]),
        names=held.names + names,
    )
    assert held.contains(np.array([[0.1, 0.2, 0.3, 0.4], [0.3, 0.2, 0.1, 0.4]])).tolist() == [True, False]
