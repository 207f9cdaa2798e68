"""Muon: momentum whose matrices are made orthogonal before they are applied.

Source: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/ (the quintic Newton-Schulz iteration and its
coefficients, Nesterov momentum 0.95); Liu et al. 2025, arXiv:2502.16982 (weight decay, and the scale
0.2 * sqrt(max(rows, columns)) that gives an update the root mean square of an AdamW update, so that AdamW's learning
rate and decay can be used as they are).

torch.optim.Muon computes the same; it is not used because it rounds the iteration to bf16 on any device (here: only on
GPUs, so that a run on CPUs differs between 1 and 2 processes by float32 rounding only) and knows no sharded matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from train.pretrain.distributed import part_like, whole

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
SMALLEST_NORM = 1e-7
RMS_OF_ADAMW = 0.2


class Muon(torch.optim.Optimizer):
    """Muon for matrices [rows, columns] only; embeddings, readouts and vectors belong to AdamW.

    A matrix that FSDP2 shards is gathered for the iteration: each rank computes the whole update and applies its part.
    Raises ValueError for a parameter that is no matrix.
    """

    def __init__(
        self, groups: Iterable[dict[str, Any]], *, lr: float, weight_decay: float = 0.1, momentum: float = 0.95
    ) -> None:
        super().__init__(list(groups), {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError(f"Muon: a parameter of shape {tuple(parameter.shape)} is no matrix; use AdamW")

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(gradient)
        buffer = state["momentum_buffer"].lerp_(gradient, 1.0 - group["momentum"])
        update = newton_schulz(whole(gradient.lerp(buffer, group["momentum"]))).to(gradient.dtype)
        scale = RMS_OF_ADAMW * math.sqrt(max(parameter.shape))
        parameter.mul_(1.0 - group["lr"] * group["weight_decay"])
        parameter.add_(part_like(update, parameter), alpha=-group["lr"] * scale)


def newton_schulz(matrix: Tensor) -> Tensor:
    """About U V^T of matrix = U S V^T [rows, columns]: each singular value comes to lie in about 0.7 .. 1.2.

    bf16 on GPUs, as the iteration forgives its rounding; float32 elsewhere.
    """
    a, b, c = COEFFICIENTS
    made = matrix.to(torch.bfloat16 if matrix.is_cuda else torch.float32)
    wide = made.shape[0] <= made.shape[1]
    made = made if wide else made.T
    made = made / made.norm().clamp(min=SMALLEST_NORM)
    for _ in range(ITERATIONS):
        gram = made @ made.T
        made = torch.addmm(made, torch.addmm(gram, gram, gram, beta=b, alpha=c), made, beta=a)
    return made if wide else made.T
