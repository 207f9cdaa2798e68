"""Curricula: phases keep the total exactly, whatever is brought forward, and train takes them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mixing.grids import Curriculum, curriculum
from mixing.observations import MixingError
from train.pretrain.settings import Pretrain

MIXTURE = {"web": 0.7, "code": 0.2, "math": 0.1}


@st.composite
def mixtures(draw: st.DrawFn) -> tuple[dict[str, float], list[float]]:
    size = draw(st.integers(1, 8))
    raw = draw(st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1)), min_size=size, max_size=size))
    raw[0] += 0.1
    lengths = draw(st.lists(st.floats(0.01, 1), min_size=1, max_size=4))
    total = sum(raw)
    return {f"d{at}": value / total for at, value in enumerate(raw)}, [length / sum(lengths) for length in lengths]


@given(given_=mixtures(), seed=st.integers(0, 1000), widest=st.sampled_from([0.0, 1.0, 3.0, 9.0]))
def test_phases_are_mixtures_whose_total_is_the_mixture(
    given_: tuple[dict[str, float], list[float]], seed: int, widest: float
) -> None:
    mixture, shares = given_
    rng = np.random.default_rng(seed)
    forward = {name: 10 ** float(rng.uniform(-widest, widest)) for name in mixture}
    found = curriculum(mixture, shares, forward)
    total = sum(share * row for share, row in zip(found.shares, found.weights, strict=True))
    np.testing.assert_allclose(total, list(mixture.values()), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.shares, shares, rtol=0, atol=1e-12)
    assert (found.weights >= 0).all()
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, rtol=0, atol=1e-12)


@given(given_=mixtures())
def test_without_a_wish_every_phase_is_the_mixture(given_: tuple[dict[str, float], list[float]]) -> None:
    mixture, shares = given_
    found = curriculum(mixture, shares)
    np.testing.assert_allclose(found.weights, np.tile(list(mixture.values()), (len(shares), 1)), atol=1e-12)


def test_a_domain_brought_forward_is_as_much_denser_in_the_last_phase_as_was_asked() -> None:
    found = curriculum(MIXTURE, (0.6, 0.3, 0.1), {"math": 8})
    odds = found.weights[:, 2] / found.weights[:, 0]
    np.testing.assert_allclose(odds[1:] / odds[:-1], np.sqrt(8), rtol=1e-9)
    np.testing.assert_allclose(found.weights[:, 1] / found.weights[:, 0], 2 / 7, rtol=1e-9)
    held_back = curriculum(MIXTURE, (0.6, 0.4), {"web": 0.25})
    assert held_back.weights[1, 0] < 0.7 < held_back.weights[0, 0]


@pytest.mark.parametrize(("share", "in_last"), [(0.2, 0.1), (0.05, 0.05)])
def test_as_much_as_the_last_phase_holds(share: float, in_last: float) -> None:
    found = curriculum(MIXTURE, (1 - share, share), {"math": 1e12})
    assert found.tokens[1, 2] == pytest.approx(in_last, abs=1e-4)
    np.testing.assert_allclose(found.total, [0.7, 0.2, 0.1], atol=1e-12)


def test_domains_in_another_order_are_in_the_same_phases() -> None:
    one = curriculum(MIXTURE, (0.8, 0.2), {"math": 5, "code": 2})
    other = curriculum(dict(reversed(MIXTURE.items())), (0.8, 0.2), {"code": 2, "math": 5})
    assert other.domains == one.domains[::-1]
    np.testing.assert_allclose(other.weights[:, ::-1], one.weights, atol=1e-12)


@pytest.mark.parametrize(
    ("mixture", "shares", "forward", "told"),
    [
        (MIXTURE, (0.5, 0.6), {}, "sum 1"),
        (MIXTURE, (1.0, 0.0), {}, "above 0"),
        (MIXTURE, (), {}, "give each phase"),
        ({"web": 0.5}, (1.0,), {}, "mixture: row 1: sums to 0.5"),
        (MIXTURE, (0.5, 0.5), {"maths": 2}, "forward: no domain 'maths'"),
        (MIXTURE, (0.5, 0.5), {"math": 0}, "forward: math has 0"),
        (MIXTURE, (0.5, 0.5), {"math": float("nan")}, "forward: math has nan"),
    ],
)
def test_a_wish_that_means_nothing_is_refused(mixture: Any, shares: Any, forward: Any, told: str) -> None:
    with pytest.raises(MixingError, match=told):
        curriculum(mixture, shares, forward)


def test_plain_values_and_cells_of_a_grid_give_the_curriculum_back() -> None:
    found = curriculum(MIXTURE, (0.9, 0.1), {"math": 5})
    assert set(found.cells) == {f"{name}@phase{at}" for name in MIXTURE for at in (1, 2)}
    assert sum(found.cells.values()) == pytest.approx(1, abs=1e-12)
    for back in (Curriculum.of(found.phases), Curriculum.of_cells(found.cells)):
        assert back.domains == found.domains
        np.testing.assert_allclose(back.tokens, found.tokens, atol=1e-15)
    assert found.grid.by_domain(found.cells) == pytest.approx(MIXTURE, abs=1e-12)
    assert found.grid.by_level(found.cells) == pytest.approx({"phase1": 0.9, "phase2": 0.1})
    partly = {"web@phase1": 0.7, "math@phase2": 0.3}
    np.testing.assert_allclose(Curriculum.of_cells(partly).weights, [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ({"web": 1.0}, "'web' is of no phase"),
        ({"web@high": 1.0}, "is of no phase"),
        ({"web@phase2": 1.0}, "above 0"),
        ({"web@phase1": 0.5}, "sums to 0.5"),
    ],
)
def test_cells_that_are_no_phases_are_refused(cells: dict[str, float], told: str) -> None:
    with pytest.raises(MixingError, match=told):
        Curriculum.of_cells(cells)


def test_shares_of_phases_are_constraints_that_an_optimum_over_the_grid_keeps() -> None:
    from mixing.optimum import Constraints, Group

    found = curriculum(MIXTURE, (0.9, 0.1), {"math": 5})
    groups = {name: Group(**told) for name, told in found.groups().items()}
    polytope = Constraints(groups=groups).polytope(found.grid.names)
    assert polytope.contains(np.array(list(found.cells.values()))).all()
    assert not polytope.contains(np.full(6, 1 / 6)).any()


@given(given_=mixtures(), steps=st.integers(20, 5000), ratio=st.floats(0.01, 100))
def test_whole_steps_keep_the_total_and_train_takes_them(
    given_: tuple[dict[str, float], list[float]], steps: int, ratio: float
) -> None:
    mixture, shares = given_
    assume(min(shares) * steps > 1)
    told = curriculum(mixture, shares, {"d0": ratio}).changes(steps)
    settings = Pretrain(steps=steps, **told)
    begins = [0, *(change.at_step for change in settings.changes), steps]
    rows = [settings.weights, *(change.weights for change in settings.changes)]
    total = dict.fromkeys(mixture, 0.0)
    for (begin, end), row in zip(itertools.pairwise(begins), rows, strict=True):
        assert row is not None
        for name, weight in row.items():
            total[name] += weight * (end - begin) / steps
    assert total == pytest.approx(mixture, abs=1e-12)


def test_a_phase_shorter_than_a_step_is_refused() -> None:
    with pytest.raises(MixingError, match="phase 2 of a run of 10 steps is shorter"):
        curriculum(MIXTURE, (0.98, 0.02)).changes(10)


@pytest.mark.parametrize("steps", [2, 3, 7, 10, 1000])
def test_a_phase_of_one_domain_takes_others_in_where_whole_steps_leave_no_other_way(steps: int) -> None:
    found = Curriculum.of_cells({"web@phase1": 0.7, "math@phase2": 0.3})
    whole, begins = found.in_steps(steps)
    assert begins == (0, round(0.7 * steps))
    np.testing.assert_allclose(whole.total, [0.7, 0.3], atol=1e-12)
    assert whole.weights[0, 0] >= 0.7
    assert whole.weights[1, 1] >= 0.3
