"""Packed rows behave as if each document were alone: logits, losses, gradients; on both kernels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from train.model.attention import attend, isolation
from train.model.losses import losses_by_token, token_losses
from train.model.settings import ModelSettings
from train.model.transformer import Transformer

TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-10}


def model_of(dtype: torch.dtype = torch.float32, **changes: object) -> Transformer:
    shape = {"vocab_size": 61, "layers": 2, "width": 32, "heads": 4, "key_value_heads": 2, "initial_deviation": 0.3}
    return Transformer(ModelSettings(**(shape | changes)), seed=1).to(dtype)  # type: ignore[arg-type]


def packed(lengths: list[int], slots: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One row of documents with padding behind: tokens, positions, documents, each [1, slots]."""
    tokens = torch.from_numpy(np.random.default_rng(seed).integers(0, 61, slots))[None]
    documents, positions = torch.full((1, slots), -1), torch.zeros((1, slots), dtype=torch.int64)
    start = 0
    for number, length in enumerate(lengths):
        documents[0, start : start + length] = number
        positions[0, start : start + length] = torch.arange(length)
        start += length
    return tokens, positions, documents


def spans(lengths: list[int]) -> list[slice]:
    ends = np.cumsum(lengths)
    return [slice(int(end - length), int(end)) for end, length in zip(ends, lengths, strict=True)]


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("tied", [True, False])
def test_packed_equals_unpacked_in_logits_loss_and_gradients(dtype, tied):
    model, tolerance = model_of(dtype, tie_embeddings=tied), TOLERANCES[dtype]
    lengths = [7, 1, 12, 5]
    tokens, positions, documents = packed(lengths, 30)
    logits = model(tokens, positions, documents)
    counted = (documents[:, 1:] == documents[:, :-1]) & (documents[:, 1:] >= 0)
    total, count = token_losses(logits[:, :-1], tokens[:, 1:], counted)
    total.backward()
    gradients = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    model.zero_grad()
    alone_total = torch.zeros((), dtype=dtype)
    for span in spans(lengths):
        alone = model(tokens[:, span])
        torch.testing.assert_close(logits[:, span], alone, atol=tolerance, rtol=0)
        part, _ = token_losses(alone[:, :-1], tokens[:, span][:, 1:], torch.ones_like(tokens[:, span][:, 1:]) > 0)
        alone_total = alone_total + part
    alone_total.backward()
    assert int(count) == sum(length - 1 for length in lengths)
    torch.testing.assert_close(total, alone_total, atol=tolerance * total.item(), rtol=0)
    for name, weight in model.named_parameters():
        assert weight.grad is not None
        scale = max(1.0, weight.grad.abs().max().item())
        torch.testing.assert_close(gradients[name], weight.grad, atol=tolerance * scale, rtol=0)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=6), st.integers(0, 5), st.integers(0, 100))
def test_changing_one_document_changes_no_bit_of_another(lengths, padding, seed):
    model = model_of()
    slots = sum(lengths) + padding
    tokens, positions, documents = packed(lengths, slots, seed)
    changed = seed % len(lengths)
    span = spans(lengths)[changed]
    other = tokens.clone()
    other[:, span] = (other[:, span] + 1 + seed) % 61
    with torch.no_grad():
        before, after = model(tokens, positions, documents), model(other, positions, documents)
    elsewhere = torch.ones(slots, dtype=torch.bool)
    elsewhere[span] = False
    assert torch.equal(before[:, elsewhere], after[:, elsewhere])


def test_one_bit_of_leakage_would_be_seen_over_many_blocks_of_the_kernel():
    model = model_of()
    tokens, positions, documents = packed([700, 600, 130], 1430)
    other = tokens.clone()
    other[:, :700] = (other[:, :700] + 1) % 61
    with torch.no_grad():
        before, after = model(tokens, positions, documents), model(other, positions, documents)
        leaking = model(other, positions), model(tokens, positions)
    assert torch.equal(before[:, 700:], after[:, 700:])
    assert torch.isfinite(before).all()
    assert not torch.equal(*(logits[:, 700:] for logits in leaking))


def test_padding_changes_nothing_and_is_never_nan():
    model = model_of()
    tokens, positions, documents = packed([6, 9], 15)
    padded_tokens, padded_positions, padded_documents = packed([6, 9], 24)
    padded_tokens[:, :15] = tokens
    rows = torch.cat((padded_tokens, padded_tokens)), torch.cat((padded_positions, padded_positions))
    empty = torch.cat((padded_documents, torch.full((1, 24), -1)))
    plain, padded = model(tokens, positions, documents), model(*rows, empty)
    assert torch.isfinite(padded).all()
    torch.testing.assert_close(padded[:1, :15], plain, atol=1e-5, rtol=0)
    counted = torch.cat((documents >= 0, torch.zeros((1, 9), dtype=torch.bool)), dim=1)
    counted = torch.cat((counted, torch.zeros((1, 24), dtype=torch.bool)))
    total, count = token_losses(padded, rows[0], counted)
    assert int(count) == 15
    torch.testing.assert_close(total, losses_by_token(plain, tokens).sum())
    total.backward()
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters())


def test_rows_of_one_document_need_no_mask():
    assert isolation(None) is None
    assert isolation(torch.tensor([[0, 0, 0], [4, 4, 4]])) is None
    mask = isolation(torch.tensor([[0, 0, 1], [4, 4, -1]]))
    assert mask.tolist()[0] == [[[True, False, False], [True, True, False], [False, False, True]]]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("slots", [30, 130, 256])
def test_the_block_mask_of_cuda_gives_the_same_logits(slots):
    model = model_of()
    tokens, positions, documents = packed([7, 1, 12, slots // 3], slots)
    with torch.no_grad():
        expected = model(tokens, positions, documents)
        model.attention_kernel = "flex"
        found = model(tokens, positions, documents)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_a_query_head_uses_its_group_of_keys_and_values():
    query, key, value = torch.randn(1, 4, 5, 8), torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)
    found = attend(query, key, value, None, 0.2)
    scores = (0.2 * query[0, 2] @ key[0, 1].T).masked_fill(torch.ones(5, 5).triu(1) > 0, float("-inf"))
    torch.testing.assert_close(found[0, 2], scores.softmax(-1) @ value[0, 1])
