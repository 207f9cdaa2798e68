"""Golden values of the laws, and that what is called an optimum is one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train.compute.laws import LAWS
from train.compute.numbers import BudgetError
from train.compute.published import deepseek, ladder, llama3_tokens
from train.compute.repetition import REPEATS_OF_TOKENS, effective_tokens, value_of_epochs
from train.compute.surface import Surface

BESIROGLU = LAWS["besiroglu"]
COMPUTE = st.floats(1e15, 1e27)
ANY_LAW = st.sampled_from(sorted(LAWS))


@pytest.mark.parametrize(
    ("flops", "parameters", "tokens", "ratio", "loss"),
    [
        (1e18, 80.5e6, 2.07e9, 25.7, 3.490),
        (1e19, 262e6, 6.36e9, 24.2, 2.927),
        (1e20, 853e6, 19.5e9, 22.9, 2.553),
        (1e21, 2.78e9, 60.0e9, 21.6, 2.306),
        (5.76e23, 72.2e9, 1.33e12, 18.4, 1.974),
    ],
)
def test_besiroglu_gives_its_published_optima(flops, parameters, tokens, ratio, loss):
    size, seen = BESIROGLU.optimum_of_flops(flops)
    assert size == pytest.approx(parameters, rel=2e-3)
    assert seen == pytest.approx(tokens, rel=4e-3)
    assert seen / size == pytest.approx(ratio, abs=0.05)
    assert BESIROGLU.loss(size, seen) == pytest.approx(loss, abs=6e-4)


@pytest.mark.parametrize(("law", "ratio"), [("hoffmann", 92.6), ("hoffmann_tex", 59.1)])
def test_hoffmann_disagrees_with_itself_by_its_rounding(law, ratio):
    size, seen = LAWS[law].optimum_of_flops(5.76e23)
    assert seen / size == pytest.approx(ratio, abs=0.05)


def test_exponent_of_besiroglu_is_the_published_one():
    assert BESIROGLU.compute_exponent == pytest.approx(0.5126, abs=5e-5)


@pytest.mark.parametrize(
    ("size", "tokens", "flops", "ratio"),
    [
        (0.75, 1.38, 1.034, None),
        (0.5, 2.52, 1.26, 109),
        (0.3, 8.7, 2.61, 627),
        (0.25, None, 4.47, 1542),
        (2, None, 1.15, None),
    ],
)
def test_overtraining_at_equal_loss_costs_what_the_law_says(size, tokens, flops, ratio):
    best, seen = BESIROGLU.optimum_of_flops(1e21)
    needed = BESIROGLU.tokens_for(size * best, BESIROGLU.loss(best, seen))
    assert needed is not None
    assert size * needed / seen == pytest.approx(flops, abs=0.006)
    if tokens is not None:
        assert needed / seen == pytest.approx(tokens, abs=0.02)
    if ratio is not None:
        assert needed / (size * best) == pytest.approx(ratio, abs=0.5)


@pytest.mark.parametrize(("epochs", "value"), [(1, 1.0), (2, 0.984), (4, 0.931), (8, 0.828), (16, 0.661), (40, 0.379)])
def test_value_of_an_epoch_falls_as_published(epochs, value):
    assert value_of_epochs(epochs) == pytest.approx(value, abs=6e-4)


def test_four_epochs_are_worth_three_and_three_quarters_and_endless_ones_sixteen():
    assert float(effective_tokens(4.0, 1.0)) == pytest.approx(3.73, abs=0.005)
    assert float(effective_tokens(1e9, 1.0)) == pytest.approx(1 + REPEATS_OF_TOKENS) == pytest.approx(16.39, abs=0.005)


def test_muennighoffs_constants_are_the_rounded_ones_of_the_paper():
    law = LAWS["muennighoff"]
    assert (round(law.parameter_scale), round(law.token_scale), round(law.irreducible, 2)) == (521, 1488, 1.87)


def test_llama_3s_rounded_constants_are_a_third_off_its_own_figure():
    assert llama3_tokens(3.8e25) == pytest.approx(10.5e12, rel=5e-3)


@pytest.mark.parametrize("flops", [1e18, 1e21, 1e24])
def test_deepseeks_scale_times_tokens_is_the_compute(flops):
    rule = deepseek(flops)
    assert rule.flops_per_token * rule.tokens == pytest.approx(flops, rel=2e-4)


def test_the_ladder_starts_at_108_million_parameters():
    assert ladder(108e6) == (2048 * 160, 0.0047 / 2)


@settings(deadline=None, max_examples=50)
@given(flops=COMPUTE, factor=st.floats(0.2, 5.0), name=ANY_LAW)
def test_no_other_size_is_better_at_equal_flops(flops, factor, name):
    law = LAWS[name]
    size, seen = law.optimum_of_flops(flops)
    assert law.loss(size * factor, seen / factor) >= law.loss(size, seen) - 1e-12


@settings(deadline=None, max_examples=50)
@given(flops=COMPUTE, name=ANY_LAW)
def test_the_four_closed_forms_name_one_optimum(flops, name):
    law = LAWS[name]
    size, seen = law.optimum_of_flops(flops)
    assert law.optimum_of_tokens(seen) == pytest.approx(size, rel=1e-9)
    assert law.optimum_of_parameters(size) == pytest.approx(seen, rel=1e-9)
    assert law.optimum_of_loss(law.loss(size, seen)) == pytest.approx((size, seen), rel=1e-5)
    assert 6 * size * seen == pytest.approx(flops, rel=1e-9)


@settings(deadline=None, max_examples=50)
@given(flops=COMPUTE, name=ANY_LAW)
def test_more_compute_means_more_of_both_and_less_loss(flops, name):
    law = LAWS[name]
    size, seen = law.optimum_of_flops(flops)
    more_size, more_seen = law.optimum_of_flops(2 * flops)
    assert more_size > size
    assert more_seen > seen
    assert law.loss(more_size, more_seen) < law.loss(size, seen)


@settings(deadline=None, max_examples=50)
@given(flops=st.floats(1e17, 1e25), inference=st.floats(1e6, 1e15), factor=st.floats(0.3, 3.0), name=ANY_LAW)
def test_inference_aware_optimum_is_the_cheapest_of_equal_loss_and_never_larger(flops, inference, factor, name):
    surface = Surface(LAWS[name])
    loss = surface.loss(*surface.optimum_of_flops(flops))
    free, _ = surface.optimum_of_loss(loss)
    size, seen = surface.optimum_of_loss(loss, inference)
    assert surface.loss(size, seen) == pytest.approx(loss, abs=1e-9)
    assert size <= free * (1 + 1e-6)
    other = float(surface.tokens_for(size * factor, loss))
    assert 6 * size * factor * other + 2 * size * factor * inference >= (6 * size * seen + 2 * size * inference) * (
        1 - 1e-9
    )


@settings(deadline=None, max_examples=50)
@given(flops=st.floats(1e17, 1e25))
def test_inference_aware_optimum_meets_its_first_order_condition(flops):
    # d/dN [6 N D(N) + 2 N I] = 0 with D(N) from the law at equal loss, worked out by hand.
    law, surface = BESIROGLU, Surface(BESIROGLU)
    loss = law.loss(*law.optimum_of_flops(flops))
    size, seen = surface.optimum_of_loss(loss, 1e12)
    slope = -(law.parameter_exponent * law.parameter_term(size) / size) / (
        law.token_exponent * law.token_term(seen) / seen
    )
    assert 6 * seen + 2e12 == pytest.approx(-6 * size * slope, rel=1e-4)


def test_without_inference_the_optimum_is_chinchillas():
    surface = Surface(BESIROGLU)
    loss = surface.loss(*surface.optimum_of_flops(1e21))
    tiny = surface.optimum_of_loss(loss, 1.0)
    assert tiny == pytest.approx(surface.optimum_of_loss(loss, 0.0), rel=1e-5)
    assert tiny == pytest.approx(BESIROGLU.optimum_of_flops(1e21), rel=1e-5)


@pytest.mark.parametrize("name", sorted(LAWS))
def test_a_loss_at_the_irreducible_one_is_refused_and_one_above_is_not(name):
    law = LAWS[name]
    with pytest.raises(BudgetError, match="irreducible"):
        law.optimum_of_loss(law.irreducible)
    assert law.optimum_of_loss(law.irreducible + 0.5)[0] > 0
