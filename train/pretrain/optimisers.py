"""Which parameter is updated by which optimiser, at which rate.

Decay and muP's multipliers come with the groups (train.model.parameter_groups): a group's rate is a multiple of the
run's learning rate, which is all that a schedule changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from train.pretrain.distributed import is_part
from train.pretrain.muon import Muon
from train.pretrain.optimisation import Optimisation

Groups = list[dict[str, Any]]
RATE, ROLE, HIDDEN = "rate_multiplier", "role", "hidden_matrix"  # as train.model.parameter_groups names them


def make_optimisers(groups: Groups, settings: Optimisation) -> list[torch.optim.Optimizer]:
    """AdamW for all groups, or Muon for the hidden matrices and AdamW for the others.

    groups: as train.model.parameter_groups gives them for settings.learning_rate and settings.weight_decay.
    """
    if settings.optimizer == "adamw":
        return [_adamw(groups, settings)]
    hidden = [_for_muon(group) for group in groups if group[ROLE] == HIDDEN]
    rest = [group for group in groups if group[ROLE] != HIDDEN]
    muon = [Muon(hidden, lr=settings.learning_rate, momentum=settings.momentum)] if hidden else []
    return [*muon, *([_adamw(rest, settings)] if rest else [])]


def set_rate(optimisers: Iterable[torch.optim.Optimizer], learning_rate: float) -> None:
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = learning_rate * group[RATE]


def _adamw(groups: Groups, settings: Optimisation) -> torch.optim.Optimizer:
    sharded = any(is_part(one) for group in groups for one in group["params"])
    on_gpu = all(one.is_cuda for group in groups for one in group["params"])
    return torch.optim.AdamW(
        groups,
        lr=settings.learning_rate,
        betas=settings.betas,
        eps=settings.epsilon,
        weight_decay=settings.weight_decay,
        fused=on_gpu or not sharded,
    )


def _for_muon(group: dict[str, Any]) -> dict[str, Any]:
    """muP's rate for updates that have the root mean square of AdamW's and are orthogonal.

    What must not grow with the width n is an update's spectral norm (Yang et al. 2023, arXiv:2310.17813). AdamW's n x n
    entries of size lr add up to lr * n, so its rate falls by the width ratio m; an orthogonal update of the same root
    mean square has lr * sqrt(n) only, so Muon's falls by sqrt(m). The decay a step, rate * weight_decay, stays.
    """
    rate = math.sqrt(group[RATE])
    return {**group, RATE: rate, "weight_decay": group["weight_decay"] * group[RATE] / rate}
