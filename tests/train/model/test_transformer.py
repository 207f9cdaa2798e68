"""The model: deterministic from its seed, one graph, rotary positions that are relative, the same with less memory."""

from __future__ import annotations

import math

import pytest
import torch

from train.model.losses import token_losses
from train.model.settings import ModelSettings, RopeScaling
from train.model.transformer import Transformer, rotary_frequencies

SETTINGS = ModelSettings(vocab_size=61, layers=2, width=32, heads=4, key_value_heads=2)


def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    tokens = torch.arange(32).reshape(2, 16) * 7 % 61
    documents = torch.tensor([[0] * 5 + [1] * 7 + [-1] * 4, [0] * 16])
    positions = torch.tensor([[*range(5), *range(7), *range(4)], [*range(16)]])
    return tokens, positions, documents


def test_weights_follow_from_seed_and_shape_alone():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = Transformer(SETTINGS, seed=5)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    second, third = Transformer(SETTINGS, seed=5), Transformer(SETTINGS, seed=6)
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, second.state_dict()[name])
        assert "norm" in name or not torch.equal(weight, third.state_dict()[name])


def test_deviations_at_the_start_are_those_documented():
    model = Transformer(ModelSettings(vocab_size=500, layers=8, width=128, heads=4, query_key_value_bias=True))
    weights = dict(model.named_parameters())
    deviation = {name: weight.std().item() for name, weight in weights.items() if weight.ndim == 2}
    layer = "layers.3."
    assert deviation["embed_tokens.weight"] == pytest.approx(0.02, rel=0.02)
    assert deviation[layer + "self_attn.q_proj.weight"] == pytest.approx(1 / math.sqrt(128), rel=0.02)
    assert deviation[layer + "self_attn.o_proj.weight"] == pytest.approx(1 / math.sqrt(128) / 4, rel=0.02)
    assert deviation[layer + "mlp.down_proj.weight"] == pytest.approx(1 / math.sqrt(384) / 4, rel=0.02)
    assert not weights[layer + "self_attn.q_proj.bias"].any()
    assert (weights["norm.weight"] == 1).all()
    untied = Transformer(
        ModelSettings(vocab_size=50, layers=1, width=8, heads=2, tie_embeddings=False, zero_readout=True)
    )
    assert not untied.lm_head.weight.any()


def test_a_model_made_on_the_meta_device_is_initialised_alike():
    with torch.device("meta"):
        model = Transformer(SETTINGS, seed=None)
    model.to_empty(device="cpu")
    model.initialise(0)
    tokens, positions, documents = batch()
    assert model.lm_head.weight is model.embed_tokens.weight
    assert torch.equal(model(tokens, positions, documents), Transformer(SETTINGS)(tokens, positions, documents))


def test_later_tokens_never_reach_earlier_logits():
    model, (tokens, _, _) = Transformer(SETTINGS), batch()
    other = tokens.clone()
    other[:, 9] = 60
    found, changed = model(tokens), model(other)
    assert torch.equal(found[:, :9], changed[:, :9])
    assert not torch.equal(found[:, 9:], changed[:, 9:])


def test_positions_are_relative_and_default_to_the_row():
    model, (tokens, _, _) = Transformer(SETTINGS).double(), batch()
    rows = torch.arange(16).expand(2, 16)
    assert torch.equal(model(tokens), model(tokens, rows))
    torch.testing.assert_close(model(tokens), model(tokens, rows + 11), atol=1e-5, rtol=0)
    assert not torch.allclose(model(tokens), model(tokens, rows * 2), atol=1e-5)


def test_frequencies_survive_a_cast_to_bf16():
    assert torch.equal(rotary_frequencies(SETTINGS), 10_000.0 ** -(torch.arange(0, 8, 2) / 8))
    assert not list(Transformer(SETTINGS).bfloat16().buffers())


def test_llama3_scaling_keeps_fast_frequencies_and_slows_slow_ones():
    plain = ModelSettings(vocab_size=9, layers=1, width=128, heads=1, rope_theta=500_000.0)
    scaled = ModelSettings(vocab_size=9, layers=1, width=128, heads=1, rope_theta=500_000.0, rope_scaling=RopeScaling())
    ratio = rotary_frequencies(plain) / rotary_frequencies(scaled)
    turns = 8192 * rotary_frequencies(plain) / (2 * math.pi)
    assert (ratio[turns > 4] == 1).all()
    torch.testing.assert_close(ratio[turns < 1], torch.full_like(ratio[turns < 1], 8.0))
    assert ((ratio > 1) & (ratio < 8)).any()


def test_recomputed_activations_give_the_same_gradients():
    tokens, positions, documents = batch()
    found = []
    for recompute in (False, True):
        model = Transformer(SETTINGS)
        model.checkpoint_activations = recompute
        token_losses(model(tokens, positions, documents), tokens, documents >= 0)[0].backward()
        found.append([weight.grad for weight in model.parameters()])
    assert all(torch.equal(plain, again) for plain, again in zip(*found, strict=True))


def test_the_readout_can_stay_in_fp32_under_autocast():
    model, (tokens, _, _) = Transformer(SETTINGS), batch()
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model(tokens)
        model.logits_in_fp32 = True
        exact = model(tokens)
    assert (rounded.dtype, exact.dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(rounded.float(), exact, atol=0.02, rtol=0.02)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kernel", "gradient"), [("sdpa", True), ("flex", False)])
def test_the_model_compiles_as_one_graph(kernel, gradient):
    torch._dynamo.reset()
    model, inputs = Transformer(SETTINGS), batch()
    expected = model(*inputs)
    model.attention_kernel = kernel
    model.checkpoint_activations = gradient
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    with torch.set_grad_enabled(gradient):
        torch.testing.assert_close(compiled(*inputs), expected, atol=1e-5, rtol=0)
    torch._dynamo.reset()
