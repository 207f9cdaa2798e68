"""Cross entropy summed over the tokens that count, without ever holding the whole batch's logits in fp32."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK_ENTRIES = 1 << 22  # logits worked on at once: 16 MiB in fp32


def token_losses(logits: Tensor, targets: Tensor, loss_mask: Tensor, *, z_loss: float = 0.0) -> tuple[Tensor, Tensor]:
    """(sum of the losses in nats, how many tokens that is): scalars, fp32 at least and int64.

    logits: [..., V]; targets: int64[...]; loss_mask: bool[...], which targets count (the others may be anything, -100
    too). The caller divides by the count of the whole step, over micro-batches and ranks: means of means weigh a token
    by how full its micro-batch was. z_loss: weight of log(sum exp logits)^2 a token, added to the sum (1e-4: PaLM,
    Chowdhery et al. 2022, section 5). The gradient is made in the forward pass, in the logits' own dtype.
    """
    vocabulary = logits.shape[-1]
    flat, mask = logits.reshape(-1, vocabulary), loss_mask.reshape(-1)
    wanted = targets.reshape(-1).masked_fill(~mask, 0)
    total = cast(Tensor, _CrossEntropy.apply(flat, wanted, mask, z_loss))  # type: ignore[no-untyped-call]
    return total, mask.sum()


@torch.no_grad()
def losses_by_token(logits: Tensor, targets: Tensor) -> Tensor:
    """The loss of each target in nats, fp32 [...], without gradient: for evaluation by domain."""
    flat, wanted = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    wide = torch.promote_types(flat.dtype, torch.float32)
    parts = [
        F.cross_entropy(flat[part].to(wide), wanted[part], reduction="none")
        for part in _chunks(flat.shape[0], flat.shape[1])
    ]
    return torch.cat(parts).reshape(targets.shape) if parts else torch.zeros(targets.shape, dtype=wide)


def _chunks(tokens: int, vocabulary: int) -> list[slice]:
    size = max(1, CHUNK_ENTRIES // vocabulary)
    return [slice(start, start + size) for start in range(0, tokens, size)]


class _CrossEntropy(torch.autograd.Function):
    """Sum of masked losses of logits [n, V]; d loss / d logits = softmax - one-hot, chunk by chunk."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, mask: Tensor, z_loss: float) -> Tensor:
        wide = torch.promote_types(logits.dtype, torch.float32)
        total = torch.zeros((), dtype=wide, device=logits.device)
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        for part in _chunks(*logits.shape):
            scores, weight, column = logits[part].to(wide), mask[part].to(wide), targets[part, None]
            logarithms = scores.log_softmax(dim=-1)
            losses = -logarithms.gather(1, column)[:, 0]
            normaliser = scores.gather(1, column)[:, 0] + losses
            total += ((losses + z_loss * normaliser.square()) * weight).sum()
            if gradient is not None:
                slope = logarithms.exp_()
                slope *= (weight * (1 + 2 * z_loss * normaliser))[:, None]
                slope.scatter_add_(1, column, -weight[:, None])
                gradient[part] = slope
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * scale.to(gradient.dtype) if gradient is not None else None, None, None, None
