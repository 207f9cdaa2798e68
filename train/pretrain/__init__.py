"""Pretraining, and the training loop that fine-tuning and proxies share.

Pretrain, Change              the recipe's `train:` section
run(settings, tokens=, out=)  pretrain a model on token shards -> Trained
plan_of(settings, shards)     the plan that it follows
Optimisation, SpikeGuard      the settings that any training loop has
Trainer, World, Stepped       one step on one batch (train.pretrain.trainer says how to use them)
Course, follow                a whole run over batches from anywhere (train.pretrain.loop)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.pretrain.distributed import World
    from train.pretrain.guard import SpikeGuard
    from train.pretrain.loop import Course, follow
    from train.pretrain.optimisation import Optimisation
    from train.pretrain.running import Trained, plan_of, run
    from train.pretrain.settings import Change, Pretrain
    from train.pretrain.state import TrainingError
    from train.pretrain.trainer import Stepped, Trainer

__all__ = [
    "Change",
    "Course",
    "Optimisation",
    "Pretrain",
    "SpikeGuard",
    "Stepped",
    "Trained",
    "Trainer",
    "TrainingError",
    "World",
    "follow",
    "plan_of",
    "run",
]

_HOMES = {
    "Change": "train.pretrain.settings",
    "Optimisation": "train.pretrain.optimisation",
    "Pretrain": "train.pretrain.settings",
    "SpikeGuard": "train.pretrain.guard",
    "Stepped": "train.pretrain.trainer",
    "Trainer": "train.pretrain.trainer",
    "TrainingError": "train.pretrain.state",
    "World": "train.pretrain.distributed",
    "Course": "train.pretrain.loop",
    "follow": "train.pretrain.loop",
    "Trained": "train.pretrain.running",
    "plan_of": "train.pretrain.running",
    "run": "train.pretrain.running",
}


def __getattr__(name: str) -> Any:
    # torch takes seconds to import, and settings need none of it.
    if name not in _HOMES:
        raise AttributeError(f"module 'train.pretrain' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
