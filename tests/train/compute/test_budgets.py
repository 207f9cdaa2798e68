"""budget(): what may be asked together, what comes back, and one-line refusals."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train.compute import BudgetError, budget, parse_number
from train.compute.accelerators import ACCELERATORS
from train.compute.numbers import short

EIGHT_BILLION = {
    "layers": 32,
    "width": 4096,
    "heads": 32,
    "key_value_heads": 8,
    "feed_forward_width": 14_336,
    "vocab_size": 128_256,
    "tie_embeddings": False,
}


def plan(made, name):
    return next(plan for plan in made.plans if plan.name == name)


def test_flops_alone_give_the_optimum_and_the_same_loss_by_other_sizes():
    made = budget(flops=1e21)
    assert made.chosen.name == "compute-optimal"
    assert made.chosen.parameters == pytest.approx(2.78e9, rel=1e-3)
    half = plan(made, "size x 0.5")
    assert half.flops_ratio == pytest.approx(1.26, abs=0.005)
    assert half.tokens_per_parameter == pytest.approx(109, abs=0.5)
    assert {round(one.loss, 9) for one in made.plans} == {round(made.chosen.loss, 9)}


def test_each_pair_describes_the_same_run():
    full = budget(flops=1e21).chosen
    for pair in (
        {"parameters": full.parameters, "tokens": full.tokens},
        {"flops": 1e21, "parameters": full.parameters},
        {"flops": 1e21, "tokens": full.tokens},
        {"parameters": full.parameters, "loss": full.loss},
        {"tokens": full.tokens, "loss": full.loss},
        {"loss": full.loss},
        {"tokens": full.tokens},
        {"parameters": full.parameters},
    ):
        made = budget(**pair).chosen
        assert (made.parameters, made.tokens) == pytest.approx((full.parameters, full.tokens), rel=1e-5), pair
        assert made.flops_ratio == pytest.approx(1.0, abs=1e-6)


def test_llama_3_8b_is_as_overtrained_as_it_is():
    made = budget(**EIGHT_BILLION, tokens=15e12, sequence_tokens=8192, accelerators=1024)
    assert made.chosen.tokens_per_parameter == pytest.approx(1875, rel=0.01)
    assert made.chosen.exact
    assert made.token_flops.train * 15e12 == made.chosen.train_flops
    assert any("tokens a parameter" in note for note in made.notes)


def test_inference_makes_the_chosen_model_smaller_and_its_life_cheaper():
    made = budget(flops=1e22, inference_tokens=5e12)
    best = plan(made, "compute-optimal")
    assert made.chosen.name == "inference-aware"
    assert made.chosen.parameters < best.parameters
    assert made.chosen.lifetime_flops < best.lifetime_flops
    assert made.chosen.loss == pytest.approx(best.loss, abs=1e-9)


def test_a_fixed_size_stays_chosen_however_much_is_inferred():
    made = budget(parameters=7e9, tokens=1e12, inference_tokens=5e12)
    assert made.chosen.name == "as asked"
    assert plan(made, "inference-aware").lifetime_flops <= made.chosen.lifetime_flops


def test_scarce_tokens_are_repeated_and_the_loss_says_so():
    made = budget(flops=1e22, unique_tokens=4e10)
    fresh = plan(made, "if all were fresh")
    assert made.chosen.epochs > 4
    assert made.chosen.loss > fresh.loss
    assert made.chosen.effective_tokens < made.chosen.tokens
    assert any("epochs" in note for note in made.notes)


def test_domains_get_tokens_epochs_and_worth_by_their_weights():
    made = budget(
        parameters=1e9,
        tokens=20e9,
        unique_tokens={"web": 100e9, "code": 1e9, "maths": 5e9},
        weights={"web": 3, "code": 1},
    )
    rows = {row.domain: row for row in made.domains}
    assert list(rows) == ["code", "maths", "web"]
    assert (rows["code"].weight, rows["code"].tokens, rows["code"].epochs) == (0.25, 5e9, 5.0)
    assert (rows["web"].epochs, rows["web"].value) == (0.15, 1.0)
    assert (rows["maths"].tokens, rows["maths"].epochs) == (0.0, 0.0)
    assert rows["code"].value < 0.93
    assert sum(row.tokens for row in made.domains) == pytest.approx(20e9)


def test_unique_tokens_alone_plan_to_see_them_once():
    made = budget(unique_tokens=20e9)
    assert (made.chosen.tokens, made.chosen.epochs) == (20e9, 1.0)


def test_context_and_tokenizer_are_variables():
    made = budget(
        **EIGHT_BILLION, tokens=1e12, contexts=(2048, 131_072), bytes_per_token=4.4, tokenizers={"small": (3.3, 32_000)}
    )
    near, far, small = made.variants
    assert far.attention_share == pytest.approx(64 * near.attention_share)
    assert small.tokens * 3.3 == pytest.approx(1e12 * 4.4) == pytest.approx(made.text_bytes)
    assert small.parameters < near.parameters


def test_packed_documents_make_a_token_cheaper():
    long = budget(**EIGHT_BILLION, tokens=1e12, sequence_tokens=8192)
    packed = budget(**EIGHT_BILLION, tokens=1e12, sequence_tokens=8192, mean_square_length=1024)
    assert packed.token_flops.attention * 8 == long.token_flops.attention
    assert packed.chosen.train_flops < long.chosen.train_flops


def test_hours_are_flops_over_peak_times_mfu():
    made = budget(flops=1e21, accelerators=64, mfu=0.5)
    assert made.chosen.hours == pytest.approx(1e21 / (64 * 989.4e12 * 0.5) / 3600)
    rows = {row.accelerator: row for row in made.devices}
    assert set(rows) == set(ACCELERATORS)
    assert rows["a100"].hours / rows["h100"].hours == pytest.approx(989.4 / 312)


def test_every_accelerator_names_its_source():
    for name, device in ACCELERATORS.items():
        assert device.name == name
        assert len(device.source) > 10
        assert 5e13 < device.bf16_flops < 5e15
        assert 1e10 < device.memory_bytes < 5e11


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, "nothing to plan from; give one or two of flops, parameters, tokens and loss"),
        ({"flops": 1e20, "loss": 2.5}, "flops, loss: both given; each follows from the other"),
        ({"flops": 1e20, "parameters": 1e9, "tokens": 1e9}, "flops, parameters, tokens: 3 given; give one or two of"),
        ({"flops": -1}, "flops: Input should be greater than 0; got -1"),
        ({"flops": float("nan")}, "flops: Input should be a finite number"),
        ({"flops": float("inf")}, "flops: Input should be"),
        ({"flops": "much"}, "flops: Input should be a valid number"),
        ({"loss": 1.8}, "loss: 1.8 is not above 1.8172, the irreducible loss of law besiroglu"),
        ({"parameters": 1e6, "loss": 2.0}, "parameters, loss: 1M parameters do not reach 2 on any number of tokens"),
        ({"tokens": 1e7, "loss": 2.0}, "tokens, loss: no size reaches 2 on 10M tokens"),
        (
            {"flops": 1e20, "law": "kaplan"},
            "law: Input should be 'besiroglu', 'hoffmann', 'hoffmann_tex' or 'muennighoff'",
        ),
        ({"flops": 1e20, "accelerator": "h1000"}, "accelerator: 'h1000' is not known; one of a100-40gb, a100, h100"),
        ({"flops": 1e20, "mfu": 1.5}, "mfu: Input should be less than or equal to 1; got 1.5"),
        ({"flops": 1e20, "accelerators": 0}, "accelerators: Input should be greater than or equal to 1; got 0"),
        ({"flops": 1e20, "layers": 12}, "width: is missing; a shape is layers, width, heads and vocab_size"),
        ({"flops": 1e20, "contexts": (4096,)}, "contexts: needs the shape"),
        ({"flops": 1e20, "weights": {"a": 1}}, "weights: epochs follow from unique_tokens"),
        ({"flops": 1e20, "unique_tokens": 1e9, "weights": {"a": 1}}, "weights: need unique_tokens by domain"),
        (
            {"flops": 1e20, "unique_tokens": {"a": 1e9}, "weights": {"b": 1}},
            "weights: no domain 'b'; unique_tokens has a",
        ),
        (
            {"flops": 1e20, "unique_tokens": {"a": 0, "b": 1}, "weights": {"a": 1}},
            "weights: domain 'a' has weight 1 and no",
        ),
        ({"flops": 1e20, "unique_tokens": {"a": 1e9}, "weights": {"a": 0}}, "weights: all are 0"),
        (
            {"flops": 1e20, "tokenizers": {"x": (3, 256)}},
            "tokenizers: compared at equal bytes, so give bytes_per_token",
        ),
        ({**EIGHT_BILLION, "parameters": 8e9}, "parameters: follow from the shape"),
        ({**EIGHT_BILLION, "tokens": 1e9, "flops": 1e20}, "flops, tokens: the shape fixes the parameters"),
        ({**EIGHT_BILLION, "mean_square_length": 4096}, "mean_square_length: 4096 is above sequence_tokens 2048"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_line(asked, told):
    with pytest.raises(BudgetError) as caught:
        budget(**asked)
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


def test_a_shape_alone_is_planned_at_its_optimal_tokens():
    made = budget(**EIGHT_BILLION)
    assert made.chosen.flops_ratio == pytest.approx(1.0, abs=1e-6)
    assert made.chosen.parameters == made.shape.parameters


@settings(max_examples=40, deadline=None)
@given(
    flops=st.floats(1e12, 1e30),
    inference=st.sampled_from([0.0, 1e9, 1e14]),
    unique=st.none() | st.floats(1e3, 1e16),
    law=st.sampled_from(["besiroglu", "muennighoff", "hoffmann"]),
)
def test_any_compute_gets_a_finite_answer_or_one_line(flops, inference, unique, law):
    try:
        made = budget(flops=flops, inference_tokens=inference, unique_tokens=unique, law=law)
    except BudgetError:
        return
    told = json.loads(made.to_json())
    assert told["chosen"]["parameters"] > 0
    assert made.to_table().endswith("\n")


def test_plot_and_json_are_the_same_bytes_each_time(tmp_path):
    asked = {"flops": 1e21, "inference_tokens": 1e12, "unique_tokens": 1e10}
    for name in ("one.svg", "two.svg"):
        budget(**asked).plot(str(tmp_path / name))
    one, two = ((tmp_path / name).read_bytes() for name in ("one.svg", "two.svg"))
    assert one == two
    assert b"<svg" in one
    assert b"parameters" in one
    assert budget(**asked).to_json() == budget(**asked).to_json()


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1.3B", 1.3e9),
        ("15T", 15e12),
        ("5.76e23", 5.76e23),
        ("250_000", 250e3),
        ("1,000", 1e3),
        (" 8k ", 8e3),
        ("2z", 2e21),
    ],
)
def test_numbers_are_read_as_people_write_them(written, value):
    assert parse_number(written) == pytest.approx(value)


@pytest.mark.parametrize(
    "written", ["", "B", "-1", "1.3X", "nan", "inf", "1e999", "1 2", "1,3B", "1_", "1,,000", "\uff13"]
)
def test_what_is_no_number_is_refused(written):
    with pytest.raises(BudgetError, match=r"is not a number|is more than"):
        parse_number(written)


@pytest.mark.parametrize(
    ("value", "told"),
    [(999.4e6, "999M"), (999.6e6, "1B"), (1e9, "1B"), (1.234e12, "1.23T"), (12.0, "12"), (1e18, "1e+18"), (None, "-")],
)
def test_counts_are_told_in_three_digits(value, told):
    assert short(value) == told


def test_the_front_door_imports_nothing_heavy():
    import subprocess
    import sys

    told = "import sys, train.compute; print([m for m in ('numpy', 'torch', 'pydantic') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


@pytest.mark.parametrize(
    "asked",
    [
        {"parameters": 1e9, "tokens": 2e10},
        {"flops": 1e25},
        {"tokens": 2e10, "inference_tokens": 1e9},
        {"layers": 16, "width": 2048, "heads": 16, "vocab_size": 8192, "tokens": 2e10},
    ],
)
def test_a_run_that_repeats_few_tokens_without_end_is_described_all_the_same(asked, tmp_path):
    made = budget(**asked, unique_tokens=13.6e6)
    assert made.chosen.flops_ratio is None
    assert [plan.name for plan in made.plans[1:]] == ["if all were fresh"]
    assert any("no other plan reaches it" in note for note in made.notes)
    made.to_table(), made.to_json(), made.plot(str(tmp_path / "a.svg"))
    with pytest.raises(BudgetError, match="out of reach"):
        budget(loss=made.chosen.loss, unique_tokens=13.6e6)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"flops": 1e20, "vocab_size": 32000}, "vocab_size: needs the shape"),
        ({"flops": 1e20, "tie_embeddings": False}, "tie_embeddings: needs the shape"),
        ({"layers": 10**12, "width": 10**12, "heads": 1, "vocab_size": 2}, "at most 1e+20"),
        ({"flops": 1e20, "mfu": 1e-320}, "mfu: "),
    ],
)
def test_what_has_no_effect_or_no_meaning_is_refused(asked, told):
    with pytest.raises(BudgetError) as caught:
        budget(**asked)
    assert told in str(caught.value)
