"""The loss on held-out conversations: nats a token that is trained, over all processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from train.feed.batch import Batch
from train.model.losses import losses_by_token
from train.pretrain.evaluation import LOGITS
from train.pretrain.trainer import Trainer
from train.sft.packing import EMPTY, Rows


@dataclass(frozen=True, kw_only=True)
class HeldOutRows:
    """Packed rows to measure on, and how many of them."""

    rows: Rows
    count: int

    @classmethod
    def of(cls, rows: Rows, most: int | None) -> HeldOutRows | None:
        """The first rows, at most so many; None where there are none."""
        count = rows.count if most is None else min(rows.count, most)
        return cls(rows=rows, count=count) if count else None


def held_out_loss(trainer: Trainer, held_out: HeldOutRows) -> dict[str, Any]:
    """{held_out_loss: nats a target, targets: how many}; all processes make as many passes and get the same answer."""
    world, width = trainer.world, held_out.rows.sequence_tokens + 1
    share = -(-held_out.count // world.size)
    numbers = np.arange(world.rank * share, (world.rank + 1) * share, dtype=np.int64)
    numbers[numbers >= held_out.count] = EMPTY
    vocabulary = getattr(trainer.model.settings, "vocab_size", 1 << 17)
    size = max(1, LOGITS // (vocabulary * width))
    sums = torch.zeros(2, dtype=torch.float64)
    trainer.model.eval()
    for start in range(0, share, size):
        sums += _sums(trainer, held_out.rows.batch(numbers[start : start + size]))
    trainer.model.train()
    nats, targets = world.sum(sums.to(world.device)).tolist()
    return {"held_out_loss": nats / targets, "targets": int(targets)}


@torch.no_grad()
def _sums(trainer: Trainer, batch: Batch) -> torch.Tensor:
    told = batch.torch(trainer.world.device)
    logits = trainer.logits(told.inputs, told.positions[:, :-1], told.documents[:, :-1])
    losses = losses_by_token(logits, told.targets).to(torch.float64)
    return torch.stack([losses[told.loss].sum(), told.loss.sum().to(torch.float64)]).cpu()
