"""Counts are those of the model itself: its parameters, and torch's own counter of operations."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from train.model.counts import forward_operations, parameters, training_operations
from train.model.settings import ModelSettings
from train.model.transformer import Transformer

SHAPES = [
    ModelSettings(vocab_size=61, layers=2, width=32, heads=4, key_value_heads=2),
    ModelSettings(vocab_size=61, layers=3, width=32, heads=4, head_width=16, tie_embeddings=False),
    ModelSettings(vocab_size=61, layers=2, width=32, heads=4, query_key_value_bias=True, feed_forward_width=50),
]


@pytest.mark.parametrize("settings", SHAPES)
def test_parameters_are_those_of_the_model(settings):
    model, counted = Transformer(settings), parameters(settings)
    sizes = {name: weight.numel() for name, weight in model.named_parameters()}
    assert counted.total == sum(sizes.values())
    assert counted.embedding == sizes["embed_tokens.weight"]
    assert counted.readout == sizes.get("lm_head.weight", 0)
    assert counted.attention == sum(size for name, size in sizes.items() if "self_attn" in name)
    assert counted.norms == sum(size for name, size in sizes.items() if "norm" in name)


def test_smollm2_has_its_published_135_million_parameters():
    smollm2 = ModelSettings(
        vocab_size=49_152, layers=30, width=576, heads=9, key_value_heads=3, feed_forward_width=1536
    )
    assert parameters(smollm2).total == 134_515_008


@pytest.mark.parametrize("settings", SHAPES)
def test_operations_of_matrix_products_are_those_torch_counts(settings):
    model, slots = Transformer(settings), 16
    with FlopCounterMode(display=False) as counter:
        model(torch.zeros((3, slots), dtype=torch.int64)).sum().backward()
    counted = training_operations(settings, [slots] * 3)
    scores = sum(count for name, count in counter.get_flop_counts()["Global"].items() if "attention" in str(name))
    assert counter.get_total_flops() - scores == counted.total - counted.attention_scores


def test_isolated_documents_cost_less_and_by_the_pairs_they_see():
    settings = SHAPES[0]
    whole, parts = forward_operations(settings, [100]), forward_operations(settings, [60, 40])
    assert whole.attention_scores == 4 * 5050 * 2 * 32
    assert parts.attention_scores == 4 * (1830 + 820) * 2 * 32
    assert whole._replace(attention_scores=0) == parts._replace(attention_scores=0)


def test_training_is_three_forward_passes_and_a_fourth_of_the_layers_if_recomputed():
    once = forward_operations(SHAPES[0], [9])
    assert training_operations(SHAPES[0], [9]).total == 3 * once.total
    assert training_operations(SHAPES[0], [9], recomputed=True).total == 4 * once.total - once.readout
