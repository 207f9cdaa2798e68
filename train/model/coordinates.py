"""The coordinate check of muP: after a few steps, activations are as large in a wide model as in a narrow one.

A parametrisation that is wrong anywhere shows here within seconds: some part grows or shrinks with the width.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from train.model.losses import token_losses
from train.model.parametrisation import parameter_groups
from train.model.settings import ModelSettings
from train.model.transformer import Transformer


@dataclass(frozen=True)
class Coordinate:
    """Mean absolute size of one part's output after so many steps, averaged over seeds."""

    width: int
    step: int
    part: str
    size: float


def coordinate_check(
    settings: ModelSettings,
    widths: Sequence[int],
    *,
    steps: int = 5,
    learning_rate: float = 2**-7,
    seeds: int = 3,
    rows: int = 4,
    sequence_tokens: int = 32,
) -> list[Coordinate]:
    """Train settings.at_width(w) for each width on one batch of random tokens with Adam; what each part puts out.

    Parts: the embedding, each layer's attention and feed-forward, and the logits, at steps 0 (the start) to `steps`.
    See growth for the reading; Yang et al. 2022 (arXiv:2203.03466), appendix D.1, for the method.
    """
    sizes: dict[tuple[int, int, str], float] = defaultdict(float)
    for width in widths:
        for seed in range(seeds):
            model = Transformer(settings.at_width(width), seed=seed)
            generator = torch.Generator().manual_seed(seed)
            tokens = torch.randint(settings.vocab_size, (rows, sequence_tokens + 1), generator=generator)
            for step, found in enumerate(_train(model, tokens, steps, learning_rate)):
                for part, size in found.items():
                    sizes[width, step, part] += size / seeds
    return [Coordinate(width, step, part, size) for (width, step, part), size in sizes.items()]


def growth(table: Sequence[Coordinate], step: int) -> dict[str, float]:
    """By part, the exponent with which its size after a step grows with width (least squares on logarithms).

    0 is flat, as muP has it from step 1 on (at step 0 logits shrink as width^-1/2, which muP wants); the standard
    parametrisation's grow.
    """
    points: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in table:
        if row.step == step:
            points[row.part].append((math.log(row.width), math.log(row.size)))
    return {part: _slope(found) for part, found in points.items()}


def _train(model: Transformer, tokens: Tensor, steps: int, learning_rate: float) -> list[dict[str, float]]:
    optimiser = torch.optim.AdamW(parameter_groups(model, learning_rate, 0.0), betas=(0.9, 0.95), eps=1e-12)
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    told = []
    for _ in range(steps + 1):
        sizes: dict[str, float] = {}
        hooks = [part.register_forward_hook(_measure(name, sizes)) for name, part in _parts(model)]
        total, count = token_losses(model(inputs), targets, torch.ones_like(targets, dtype=torch.bool))
        for hook in hooks:
            hook.remove()
        told.append(sizes)
        optimiser.zero_grad()
        (total / count).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return told


def _parts(model: Transformer) -> list[tuple[str, nn.Module]]:
    layers = [
        (f"layers.{i}.{name}", getattr(layer, name))
        for i, layer in enumerate(model.layers)
        for name in ("self_attn", "mlp")
    ]
    return [("embed_tokens", model.embed_tokens), *layers, ("lm_head", model.lm_head)]


def _measure(name: str, sizes: dict[str, float]) -> Callable[[nn.Module, Any, Tensor], None]:
    def hook(module: nn.Module, inputs: Any, output: Tensor) -> None:
        sizes[name] = output.detach().abs().mean().item()

    return hook


def _slope(points: Sequence[tuple[float, float]]) -> float:
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
