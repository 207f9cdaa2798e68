"""Bits per byte on held-out text, by domain and by language: what models of different tokenizers are compared by.

bits per byte = sum of the nats of the predicted tokens / ln 2 / bytes of those tokens' text. How a document's first
token, EOS and long documents count is said in train.pretrain.held_out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from train.feed.batch import Batch
from train.model.losses import losses_by_token
from train.pretrain.held_out import HeldOut
from train.pretrain.rows import batch_rows, fill
from train.pretrain.trainer import Trainer

LOGITS = 1 << 25  # entries of the logits held at once: 128 MiB in float32


@dataclass(frozen=True, kw_only=True)
class Score:
    """nats: sum over the predicted tokens. targets: how many they are. bytes: of their text."""

    nats: float
    targets: int
    bytes: int

    @property
    def bits_per_byte(self) -> float | None:
        return self.nats / math.log(2) / self.bytes if self.bytes else None

    @property
    def nats_per_token(self) -> float | None:
        return self.nats / self.targets if self.targets else None

    def row(self) -> dict[str, Any]:
        return {
            "bits_per_byte": self.bits_per_byte,
            "nats_per_token": self.nats_per_token,
            "targets": self.targets,
            "bytes": self.bytes,
        }

    @classmethod
    def sum(cls, scores: list[Score]) -> Score:
        return cls(
            nats=math.fsum(one.nats for one in scores),
            targets=sum(one.targets for one in scores),
            bytes=sum(one.bytes for one in scores),
        )


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Scores of one model: of all held-out text, by domain and by language."""

    whole: Score
    by_domain: dict[str, Score]
    by_language: dict[str, Score]

    def row(self) -> dict[str, Any]:
        return {
            **self.whole.row(),
            "by_domain": {name: score.row() for name, score in self.by_domain.items()},
            "by_language": {name: score.row() for name, score in self.by_language.items()},
        }


def evaluate(trainer: Trainer, held_out: HeldOut, bytes_of_token: NDArray[np.int64]) -> Evaluation:
    """Score a model on held-out rows, shared out over the trainer's processes; all get the same answer."""
    world, batch, groups = trainer.world, held_out.batch, len(held_out.groups)
    most = -(-batch.rows // world.size) if batch.rows else 0
    own = batch_rows(batch, world.rank * most, (world.rank + 1) * most)
    if own.rows < most:  # where the model is sharded, all processes make as many passes
        own = fill(own, most - own.rows)
    sums = torch.zeros(3, groups, dtype=torch.float64)
    size = max(1, LOGITS // (len(bytes_of_token) * max(1, batch.tokens.shape[1])))
    trainer.model.eval()
    for start in range(0, most, size):
        _add(trainer, batch_rows(own, start, start + size), bytes_of_token, sums)
    trainer.model.train()
    nats, targets, counts = world.sum(sums.to(world.device)).tolist()
    told = {
        group: Score(nats=nats[at], targets=int(targets[at]), bytes=int(counts[at]))
        for at, group in enumerate(held_out.groups)
    }
    return Evaluation(
        whole=Score.sum(list(told.values())),
        by_domain=_by(told, 0),
        by_language=_by(told, 1),
    )


@torch.no_grad()
def _add(trainer: Trainer, part: Batch, bytes_of_token: NDArray[np.int64], sums: torch.Tensor) -> None:
    told = part.torch(trainer.world.device)
    logits = trainer.logits(told.inputs, told.positions[:, :-1], told.documents[:, :-1])
    losses = losses_by_token(logits, told.targets).cpu().numpy()[part.loss]
    assert part.domains is not None
    groups, targets = part.domains[:, 1:][part.loss], part.targets[part.loss]
    for at, values in enumerate((losses, np.ones_like(losses), bytes_of_token[targets])):
        sums[at] += torch.from_numpy(np.bincount(groups, weights=values, minlength=sums.shape[1]))


def _by(scores: dict[Any, Score], place: int) -> dict[str, Score]:
    names = sorted({group[place] for group in scores})
    return {name: Score.sum([score for group, score in scores.items() if group[place] == name]) for name in names}
