"""Repetition: limits, monotony, and optima where unique tokens run out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train.compute.laws import LAWS
from train.compute.numbers import BudgetError
from train.compute.repetition import Supply
from train.compute.surface import Surface

LAW = LAWS["muennighoff"]
UNIQUE = st.floats(1e8, 1e12)


def supplied(unique, weights=None, law=LAW):
    return Surface(law, Supply.of(unique, weights))


@settings(deadline=None, max_examples=50)
@given(unique=UNIQUE, times=st.floats(0.01, 60.0))
def test_tokens_worth_undoes_effective_tokens(unique, times):
    supply = Supply.of(unique, None)
    again = supply.tokens_worth(supply.effective(np.array([unique * times])))
    assert float(again[0]) == pytest.approx(unique * times, rel=1e-6)


@settings(deadline=None, max_examples=50)
@given(unique=UNIQUE, times=st.floats(0.01, 100.0))
def test_a_repeat_is_worth_something_but_never_more_than_a_fresh_token(unique, times):
    supply = Supply.of(unique, None)
    worth, more = (float(supply.effective(unique * many)) for many in (times, times * 1.1))
    assert worth <= unique * times * (1 + 1e-12)
    assert worth < more <= supply.limit


@settings(deadline=None, max_examples=50)
@given(flops=st.floats(1e18, 1e25), unique=UNIQUE, factor=st.floats(0.3, 3.0))
def test_no_other_size_is_better_at_equal_flops_when_tokens_repeat(flops, unique, factor):
    surface = supplied(unique)
    size, seen = surface.optimum_of_flops(flops)
    assert 6 * size * seen == pytest.approx(flops, rel=1e-9)
    assert surface.loss(size * factor, seen / factor) >= surface.loss(size, seen) - 1e-9


@settings(deadline=None, max_examples=50)
@given(flops=st.floats(1e18, 1e25), unique=UNIQUE)
def test_fewer_unique_tokens_never_help(flops, unique):
    losses = [surface.loss(*surface.optimum_of_flops(flops)) for surface in (supplied(unique / 2), supplied(unique))]
    free = LAW.loss(*LAW.optimum_of_flops(flops))
    assert losses[0] >= losses[1] - 1e-9
    assert losses[1] >= free - 1e-9


@settings(deadline=None, max_examples=50)
@given(flops=st.floats(1e18, 1e25))
def test_unique_tokens_that_suffice_change_nothing(flops):
    size, seen = LAW.optimum_of_flops(flops)
    assert supplied(seen * 1.0000001).optimum_of_flops(flops) == (size, seen)
    assert supplied(seen * 1e6).loss(size * 3, seen / 3) == pytest.approx(LAW.loss(size * 3, seen / 3))


@settings(deadline=None, max_examples=50)
@given(flops=st.floats(1e19, 1e24), unique=UNIQUE)
def test_the_cheapest_run_to_a_loss_is_the_best_run_for_its_flops(flops, unique):
    surface = supplied(unique)
    size, seen = surface.optimum_of_flops(flops)
    loss = surface.loss(size, seen)
    if loss - surface.lowest() < 1e-3:
        return  # nothing left to gain: the surface is flat and its inverse undefined
    cheap_size, cheap_seen = surface.optimum_of_loss(loss)
    assert 6 * cheap_size * cheap_seen == pytest.approx(flops, rel=1e-4)
    assert surface.loss(cheap_size, cheap_seen) == pytest.approx(loss, abs=1e-7)


def test_repeating_beats_stopping_and_more_epochs_go_with_a_smaller_model_than_fresh_tokens_would():
    surface, flops = supplied(1e10), 1e22
    size, seen = surface.optimum_of_flops(flops)
    assert seen / 1e10 > 4
    assert surface.loss(size, seen) < surface.loss(flops / 6 / 1e10, 1e10)
    assert size < LAW.optimum_of_flops(flops)[0] * 1.5


@settings(deadline=None, max_examples=50)
@given(first=st.floats(1e8, 1e11), second=st.floats(1e8, 1e11), times=st.floats(0.1, 30))
def test_domains_in_their_own_proportion_are_worth_what_one_supply_is(first, second, times):
    tokens = (first + second) * times
    split = Supply.of({"a": first, "b": second}, None)
    assert float(split.effective(tokens)) == pytest.approx(float(Supply.of(first + second, None).effective(tokens)))


@settings(deadline=None, max_examples=50)
@given(weight=st.floats(0.01, 0.99), times=st.floats(1.0, 30))
def test_no_weights_are_worth_more_than_the_natural_ones(weight, times):
    unique = {"a": 3e9, "b": 1e9}
    tokens = 4e9 * times
    skewed = float(Supply.of(unique, {"a": weight, "b": 1 - weight}).effective(tokens))
    assert skewed <= float(Supply.of(unique, None).effective(tokens)) * (1 + 1e-12)


def test_parameters_for_undoes_the_loss():
    surface = supplied(1e10)
    for size in (1e8, 1e9, 3e9):
        assert surface.parameters_for(5e10, surface.loss(size, 5e10)) == pytest.approx(size, rel=1e-6)
    assert surface.parameters_for(1e7, 2.0) is None


def test_a_loss_below_what_repetition_can_reach_is_refused_with_that_limit():
    surface = supplied(1e9)
    with pytest.raises(BudgetError, match=f"stays above {surface.lowest():.4g}"):
        surface.optimum_of_loss(surface.lowest() - 0.01)
    assert surface.loss(*surface.optimum_of_loss(surface.lowest() + 0.05)) == pytest.approx(surface.lowest() + 0.05)
