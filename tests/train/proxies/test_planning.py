"""Which runs there are, how long, and how much of a domain each may see."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from train.compute.flops import ModelShape
from train.pretrain.settings import Pretrain
from train.proxies.mixtures import Mixture
from train.proxies.planning import runs_of, unique_tokens
from train.proxies.settings import FREE, OF_RUNS, Proxies, ProxyError, ProxySize, pretrain_settings, shared_settings

SIZES = {"small": {"layers": 1, "width": 16, "heads": 2}, "large": {"layers": 2, "width": 32, "heads": 2}}
HALVES = Mixture("halves", {"code": 0.5, "web": 0.5})
HAVE = {"code": 10_000, "web": 90_000}


def made(**changes):
    told = {"mixtures": [{"web": 1.0}], "sizes": SIZES, "tokens": 10_000, **changes}
    return Proxies(**{name: value for name, value in told.items() if value is not None})


def test_every_mixture_size_and_seed_is_a_run_and_the_cheapest_come_first():
    runs = runs_of(made(seeds=(3, 1)), [HALVES, Mixture("web", {"code": 0.0, "web": 1.0})], HAVE, 300)
    assert [run.name for run in runs] == [
        f"{size}-{mixture}-seed{seed}"
        for size in ("small", "large")
        for mixture in ("halves", "web")
        for seed in (3, 1)
    ]


def test_a_run_has_whole_steps_and_a_size_may_have_a_length_of_its_own():
    sizes = {**SIZES, "long": {**SIZES["small"], "tokens": 16_385}}
    settings = made(sizes=sizes, batch_sequences=16, sequence_tokens=512)
    steps = {run.size_name: run.steps for run in runs_of(settings, [HALVES], HAVE, 300)}
    assert steps == {"small": 2, "large": 2, "long": 3}


def test_tokens_a_parameter_count_every_parameter():
    settings = made(tokens=None, tokens_per_parameter=20, batch_sequences=1, sequence_tokens=100)
    (run, _) = runs_of(settings, [HALVES], HAVE, 300)
    parameters = ModelShape(vocab_size=300, layers=1, width=16, heads=2).parameters
    assert run.steps == -(-20 * parameters // 100)


@given(
    target=st.floats(1e4, 1e12),
    tokens=st.integers(1000, 10**6),
    weight=st.floats(0.01, 0.99),
    have=st.integers(10**5, 10**9),
)
def test_epochs_of_a_domain_are_the_targets_whatever_its_weight(target, tokens, weight, have):
    weights, trainable = {"a": weight, "b": 1 - weight}, {"a": have, "b": 2 * have}
    unique = unique_tokens(made(target_tokens=target), weights, trainable, tokens)
    for domain, tokens_there in trainable.items():
        assert 1 <= unique[domain] <= tokens_there
        if 100 < tokens_there * tokens / target <= tokens_there:
            asked, seen = (
                weights[domain] * count / own for count, own in ((target, tokens_there), (tokens, unique[domain]))
            )
            assert seen == pytest.approx(asked, rel=0.01)


def test_the_target_may_have_other_tokens_than_these_shards_hold():
    settings = made(target_tokens=1e6, target_unique_tokens={"code": 5_000})
    assert unique_tokens(settings, HALVES.weights, HAVE, 10_000) == {"code": 50, "web": 900}


@pytest.mark.parametrize(
    ("epochs", "unique"),
    [
        (4.0, {"code": 2_500, "web": 2_500}),
        ({"code": 10.0}, {"code": 1_000, "web": 90_000}),
        (0.01, {"code": 10_000, "web": 90_000}),
    ],
)
def test_epochs_given_outright_size_the_part_by_the_weight(epochs, unique):
    assert unique_tokens(made(target_epochs=epochs), HALVES.weights, HAVE, 20_000) == unique


def test_without_a_target_all_is_used():
    assert unique_tokens(made(), HALVES.weights, HAVE, 20_000) == HAVE


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tokens": None}, "tokens, tokens_per_parameter: give exactly one"),
        ({"tokens_per_parameter": 20}, "tokens, tokens_per_parameter: give exactly one"),
        ({"mixtures": []}, "mixtures: none; give a list of {domain: weight}, or mixtures_file"),
        ({"target_tokens": 1e9, "target_epochs": 2}, "target_tokens, target_epochs: give one of them"),
        ({"target_unique_tokens": {"web": 1}}, "target_unique_tokens: needs target_tokens"),
        ({"seeds": (1, 1)}, "seeds: [1, 1] has one twice"),
        ({"seeds": ()}, "seeds"),
        ({"sizes": {}}, "sizes"),
        ({"sizes": {"a/b": SIZES["small"]}}, "sizes"),
        ({"mixtures": [{"web": -1}]}, "mixtures"),
        ({"held_out": 0}, "held_out"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, told):
    with pytest.raises(ValidationError) as caught:
        made(**changes)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"target_tokens": 1e9, "target_unique_tokens": {"wbe": 1}}, "target_unique_tokens: no domain 'wbe'"),
        ({"target_epochs": {"wbe": 1}}, "target_epochs: no domain 'wbe'; the tokens have code, web"),
        ({"max_epochs": {"wbe": 1}}, "max_epochs: no domain 'wbe'"),
    ],
)
def test_a_domain_that_is_not_there_is_refused(changes, told):
    with pytest.raises(ProxyError) as caught:
        runs_of(made(**changes), [HALVES], HAVE, 300)
    assert str(caught.value).startswith(told)


def test_weight_on_a_domain_without_tokens_is_refused():
    with pytest.raises(ProxyError, match="domain 'code' has weight and no tokens; give it weight 0"):
        runs_of(made(), [HALVES], {"code": 0, "web": 90_000}, 300)


def test_all_settings_of_the_loop_reach_the_run():
    settings = made(learning_rate=0.01, weight_decay=0.3, sequence_tokens=64, packing="best_fit", isolate=False)
    run = pretrain_settings(settings, ProxySize(layers=3, width=48, heads=4), {"web": 1.0}, seed=5, steps=7)
    ours = {field.name for field in fields(Proxies)} & {field.name for field in fields(Pretrain)}
    for name in ours - {"tokens", "seed", "workers"}:
        assert getattr(run, name) == getattr(settings, name), name
    assert (run.layers, run.width, run.heads, run.seed, run.steps, run.tokens) == (3, 48, 4, 5, 7, None)


def test_what_tells_runs_apart_or_measures_nothing_may_differ_within_a_folder():
    one = made(workers=2, keep_models=True)
    other = made(mixtures=[{"code": 1.0}], seeds=(7,), sizes={"small": SIZES["small"]})
    assert shared_settings(one) == shared_settings(other)
    assert shared_settings(one) != shared_settings(made(learning_rate=0.5))
    assert not (OF_RUNS | FREE) & set(shared_settings(one))
