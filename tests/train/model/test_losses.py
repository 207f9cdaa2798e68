"""The summed loss: torch's own cross entropy, whatever the chunks; only what counts is looked at."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from train.model import losses
from train.model.losses import losses_by_token, token_losses


@pytest.fixture(params=[1 << 22, 60])
def chunks(request, monkeypatch):
    monkeypatch.setattr(losses, "CHUNK_ENTRIES", request.param)


def batch(dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    logits = (3 * torch.randn(4, 9, 11, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()
    targets = torch.randint(11, (4, 9), generator=generator)
    mask = torch.rand(4, 9, generator=generator) < 0.6
    return logits, targets, mask


@pytest.mark.usefixtures("chunks")
def test_sum_count_and_gradient_equal_cross_entropy():
    logits, targets, mask = batch()
    total, count = token_losses(logits, targets, mask)
    (total / count).backward()
    found, logits.grad = logits.grad, None
    expected = F.cross_entropy(logits[mask], targets[mask])
    expected.backward()
    assert int(count) == int(mask.sum())
    torch.testing.assert_close(total / count, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(found, logits.grad, rtol=1e-10, atol=1e-14)


@pytest.mark.usefixtures("chunks")
def test_z_loss_passes_a_numerical_gradient_check():
    logits, targets, mask = batch()
    assert torch.autograd.gradcheck(lambda x: token_losses(x, targets, mask, z_loss=0.1)[0], logits)
    plain, squared = token_losses(logits, targets, mask)[0], logits[mask].logsumexp(-1).square().sum()
    torch.testing.assert_close(token_losses(logits, targets, mask, z_loss=0.1)[0], plain + 0.1 * squared)


def test_targets_that_do_not_count_may_be_anything():
    logits, targets, mask = batch()
    told = token_losses(logits, targets, mask)
    ignored = token_losses(logits, targets.masked_fill(~mask, -100), mask)
    assert torch.equal(told[0], ignored[0])
    ignored[0].backward()
    assert not logits.grad[~mask].any()


def test_nothing_that_counts_is_a_sum_of_zero_over_zero_tokens():
    logits, targets, mask = batch()
    total, count = token_losses(logits, targets, torch.zeros_like(mask))
    total.backward()
    assert (total.item(), int(count)) == (0.0, 0)
    assert not logits.grad.any()
    assert token_losses(logits[:, :0], targets[:, :0], mask[:, :0])[0].item() == 0.0


def test_bf16_logits_are_summed_in_fp32_and_get_a_bf16_gradient():
    logits, targets, mask = batch(torch.bfloat16)
    total, _ = token_losses(logits, targets, mask)
    total.backward()
    assert (total.dtype, logits.grad.dtype) == (torch.float32, torch.bfloat16)
    torch.testing.assert_close(total, F.cross_entropy(logits[mask].float(), targets[mask], reduction="sum"))


@pytest.mark.usefixtures("chunks")
def test_losses_by_token_are_those_that_are_summed():
    logits, targets, mask = batch()
    by_token = losses_by_token(logits, targets)
    assert by_token.shape == targets.shape
    torch.testing.assert_close(by_token[mask].sum(), token_losses(logits, targets, mask)[0].detach())
    assert losses_by_token(logits[:0], targets[:0]).shape == (0, 9)
